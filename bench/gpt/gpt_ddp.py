"""The peer of gpt/main.cpp: the same model, weights, batches and optimizer under PyTorch's DistributedDataParallel and Gloo.

Usage: torchrun --nproc_per_node=2 gpt_ddp.py --warmup 3 --steps 9. Without a launcher: the model alone.
"""

import argparse
import json
import os
import pathlib
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from peer_block import Block  # noqa: E402

VOCABULARY, LENGTH, LAYERS, WIDTH, HEADS, SAMPLES = 4096, 128, 4, 256, 8, 8


class Gpt(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList(Block(WIDTH, WIDTH // HEADS) for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)
        torch.manual_seed(1)
        for name, parameter in self.named_parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, 0, 0.02)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.tokens(tokens[:, :-1]) + self.places.weight
        for block in self.blocks:
            x = block(x)
        logits = functional.linear(self.norm(x), self.tokens.weight)
        return functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())


def take_steps(model: nn.Module, tokens: torch.Tensor, count: int) -> tuple[torch.Tensor, float]:
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    times = []
    for _ in range(count):
        begin = time.perf_counter()
        optimizer.zero_grad()
        loss = model(tokens)
        loss.backward()
        optimizer.step()
        times.append(1000 * (time.perf_counter() - begin))
    return torch.tensor(times), loss.item()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--warmup", type=int, default=3)
    parser.add_argument("--steps", type=int, default=9)
    args = parser.parse_args()
    torch.set_num_threads(1)
    rank = int(os.environ.get("RANK", 0))
    tokens = torch.randint(0, VOCABULARY, (SAMPLES, LENGTH + 1), generator=torch.Generator().manual_seed(100 + rank))
    model: nn.Module = Gpt()
    together = "RANK" in os.environ
    if together:
        dist.init_process_group("gloo")
        model = nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    times, loss = take_steps(model, tokens, args.warmup + args.steps)
    if together:
        dist.all_reduce(times, dist.ReduceOp.MAX)
    if rank == 0:
        print(json.dumps({"step_ms": times[args.warmup:].tolist(), "loss": loss}))
    if together:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()

"""The peer of gpt2/main.cpp: the same shape, batch and optimizer in PyTorch. It does not synchronize with the GPU between steps.

Usage: gpt2_torch.py --precision fp16 --batch-size 16 [--compile]
"""

import argparse
import json
import math
import pathlib
import resource
import sys
import time
from statistics import median

import torch
from torch import nn
from torch.nn import functional

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from peer_block import Block  # noqa: E402

VOCABULARY, HEAD = 50304, 64


class Gpt2(nn.Module):
    def __init__(self, layers: int, width: int, context: int) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*(Block(width, HEAD) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        for name, parameter in self.named_parameters():
            if parameter.dim() > 1:
                is_residual = name.endswith(("projection.weight", "down.weight"))
                nn.init.normal_(parameter, 0, 0.02 / math.sqrt(2 * layers) if is_residual else 0.02)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    def forward(self, ids: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        x = self.blocks(self.tokens(ids) + self.places.weight)
        logits = functional.linear(self.norm(x), self.tokens.weight)
        return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def make_optimizer(model: nn.Module) -> torch.optim.Optimizer:
    parameters = list(model.parameters())
    return torch.optim.AdamW([{"params": [p for p in parameters if p.dim() > 1], "weight_decay": 0.01},
                              {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0}], lr=1e-4, fused=True)


def take_steps(model: nn.Module, tokens: torch.Tensor, args: argparse.Namespace) -> tuple[list[float], list[float]]:
    """The time of each step in ms, and the losses."""
    device = tokens.device.type
    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}[args.precision]
    optimizer, scaler = make_optimizer(model), torch.amp.GradScaler(device, enabled=dtype == torch.float16)
    ids, targets = tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()
    moments, losses = [moment(device)], []
    for _ in range(args.warmup + args.steps):
        optimizer.zero_grad()
        with torch.autocast(device, dtype):
            loss = model(ids, targets)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1)
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.detach())
        moments.append(moment(device))
    last = torch.stack(losses).tolist()
    return [between(*pair) for pair in zip(moments[args.warmup:], moments[args.warmup + 1:])], last


def moment(device: str) -> torch.cuda.Event | float:
    if device == "cpu":
        return time.perf_counter()
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


def between(begin: torch.cuda.Event | float, end: torch.cuda.Event | float) -> float:
    return 1000 * (end - begin) if isinstance(begin, float) else begin.elapsed_time(end)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--precision", choices=["bf16", "fp16"], default="bf16")
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--context", type=int, default=1024)
    parser.add_argument("--warmup", type=int, default=5)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--compile", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    tokens = torch.randint(0, VOCABULARY, (args.batch_size, args.context + 1), generator=torch.Generator().manual_seed(100))
    model: nn.Module = Gpt2(args.layers, args.width, args.context).to(args.device)
    if args.compile:
        model = torch.compile(model)
    times, losses = take_steps(model, tokens.to(args.device), args)
    on_cpu = args.device == "cpu"
    memory = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss if on_cpu else torch.cuda.max_memory_allocated()
    print(json.dumps({"step_ms": times, "tokens_per_second": 1000 * args.batch_size * args.context / median(times),
                      "losses": losses, "memory_gb": memory / 1e9}))


if __name__ == "__main__":
    main()

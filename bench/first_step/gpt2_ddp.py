"""The peer of `tandem summarize train --preset demo`: the same model and work in PyTorch, with minimal imports.

Usage: torchrun --standalone --nproc_per_node=2 gpt2_ddp.py TRAIN.CSV
"""

import csv
import pathlib
import sys

import torch
import torch.distributed as dist
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from torch import nn
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, DistributedSampler

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from peer_block import Block  # noqa: E402

VOCABULARY, CONTEXT, LAYERS, WIDTH, HEADS, SAMPLES, EPOCHS = 512, 192, 2, 64, 4, 16, 6
NO_TARGET, END = -1, "<|endoftext|>"


class Gpt2(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.Sequential(*(Block(WIDTH, WIDTH // HEADS) for _ in range(LAYERS)))
        self.norm = nn.LayerNorm(WIDTH)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, 0, 0.02)

    def forward(self, ids: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        x = self.tokens(ids) + self.places.weight[:ids.size(1)]
        logits = functional.linear(self.norm(self.blocks(x)), self.tokens.weight)
        return functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=NO_TARGET)


def train_tokenizer(texts: list[str]) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=[END], show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return tokenizer


def share_tokenizer(texts: list[str]) -> Tokenizer:
    """Rank 0 trains it; the others have no free core for the same work."""
    trained = [train_tokenizer(texts).to_str() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(trained)
    return Tokenizer.from_str(trained[0])


def encode(tokenizer: Tokenizer, rows: list[dict[str, str]]) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Ids, and targets for the positions before a summary token or the end."""
    dialogues = tokenizer.encode_batch_fast([f"{row['dialogue']}{END}" for row in rows])
    summaries = tokenizer.encode_batch_fast([f"{row['summary']}{END}" for row in rows])
    samples = []
    for dialogue, summary in zip(dialogues, summaries):
        ids = torch.tensor((dialogue.ids + summary.ids)[:CONTEXT + 1])
        targets = ids[1:].clone()
        targets[:len(dialogue.ids) - 1] = NO_TARGET
        samples.append((ids[:-1], targets))
    return samples


def collate(samples: list[tuple[torch.Tensor, torch.Tensor]]) -> tuple[torch.Tensor, torch.Tensor]:
    ids, targets = zip(*samples)
    return pad_sequence(ids, batch_first=True), pad_sequence(targets, batch_first=True, padding_value=NO_TARGET)


def main() -> None:
    dist.init_process_group("gloo")
    torch.manual_seed(1)
    with open(sys.argv[1], newline="") as file:
        rows = list(csv.DictReader(file))
    samples = encode(share_tokenizer([text for row in rows for text in row.values()]), rows)
    sampler = DistributedSampler(samples, seed=1)
    loader = DataLoader(samples, SAMPLES, sampler=sampler, collate_fn=collate)
    model = nn.parallel.DistributedDataParallel(Gpt2())
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, fused=True)
    step, num_steps = 0, EPOCHS * len(loader)
    for epoch in range(EPOCHS):
        sampler.set_epoch(epoch)
        for ids, targets in loader:
            optimizer.zero_grad()
            loss = model(ids, targets)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1)
            optimizer.step()
            step += 1
            if dist.get_rank() == 0 and (step == 1 or step % 100 == 0):
                print(f"step {step}/{num_steps} | loss {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

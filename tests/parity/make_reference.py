#!/usr/bin/env python3
"""Makes the numbers in reference/ that parity_test.cpp holds Tandem to, with PyTorch alone. Usage: make_reference.py

start.json    the first weights, and the tokens and targets of each step
joined.json   one process on the whole batch; its plain batch norm is what a SyncBatchNorm over ranks must equal
ddp2.json, ddp4.json   PyTorch's DistributedDataParallel over Gloo, plain batch norm, broadcast buffers: rank 0's state

Everything is computed in fp64, with one thread; `losses_fp32` are those of the same run in fp32.
"""

import json
import os
import pathlib
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing
from torch import nn
from torch.nn.parallel import DistributedDataParallel

FOLDER = pathlib.Path(__file__).resolve().parent / "reference"
SEED = 20260205
STEPS, BATCH, LENGTH, WORDS = 10, 8, 5, 11
OPTIMIZERS = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.2, momentum=0.9, weight_decay=0.01),
    "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=0.01, weight_decay=0.1),
}


class TinyModel(nn.Module):
    """Predicts the next token. No bias before the batch norm: its gradient would be zero up to rounding."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(WORDS, 6)
        self.frozen = nn.Linear(6, 8, bias=False).requires_grad_(False)
        self.mix = nn.Linear(8, 8, bias=False)
        self.norm = nn.BatchNorm1d(8)
        self.project = nn.Linear(8, 6)
        self.head = self.embed.weight

    def forward(self, tokens):
        hidden = self.mix(self.frozen(self.embed(tokens)))
        hidden = torch.tanh(self.norm(hidden.transpose(1, 2))).transpose(1, 2)
        return nn.functional.linear(self.project(hidden), self.head)


def first_state():
    torch.manual_seed(SEED)
    model = TinyModel().double()
    with torch.no_grad():
        model.norm.weight.uniform_(0.5, 1.5)
        model.norm.bias.uniform_(-0.5, 0.5)
    return model.state_dict()


def make_batches():
    generator = torch.Generator().manual_seed(SEED)
    return torch.randint(WORDS, (2, STEPS, BATCH, LENGTH), generator=generator)


def train(model, optimizer, tokens, targets):
    """The loss of each step."""
    losses = []
    for step in range(STEPS):
        loss = nn.functional.cross_entropy(model(tokens[step]).flatten(0, 1), targets[step].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def train_joined(name, dtype):
    model = TinyModel().to(dtype)
    model.load_state_dict(first_state())
    losses = train(model, OPTIMIZERS[name](model.parameters()), *make_batches())
    return losses, model.state_dict()


def train_rank(rank, size, port, name, path):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=size)
    model = TinyModel().double()
    model.load_state_dict(first_state())
    ddp = DistributedDataParallel(model)
    mine = slice(rank * BATCH // size, (rank + 1) * BATCH // size)
    losses = torch.tensor(train(ddp, OPTIMIZERS[name](ddp.parameters()), *make_batches()[:, :, mine]), dtype=torch.double)
    dist.all_reduce(losses)
    if rank == 0:
        torch.save((losses / size, model.state_dict()), path)
    dist.destroy_process_group()


def train_ddp(size, name):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    path = FOLDER / f"rank0.{os.getpid()}"
    try:
        torch.multiprocessing.spawn(train_rank, (size, port, name, path), nprocs=size)
        losses, state = torch.load(path)
        return losses.tolist(), state
    finally:
        path.unlink(missing_ok=True)


def as_lists(state):
    return {name: tensor.flatten().tolist() for name, tensor in state.items()}


def write(name, content):
    """JSON of nested objects, one line per innermost value."""
    rows = []
    for key, members in content.items():
        lines = [f"    {json.dumps(member)}: {json.dumps(value)}" for member, value in members.items()]
        rows.append(f"  {json.dumps(key)}: {{\n" + ",\n".join(lines) + "\n  }")
    (FOLDER / name).write_text("{\n" + ",\n".join(rows) + "\n}\n")


def joined_results():
    for name in OPTIMIZERS:
        losses, state = train_joined(name, torch.double)
        losses_fp32, _ = train_joined(name, torch.float)
        yield name, {"losses": losses, "losses_fp32": losses_fp32, **as_lists(state)}


def ddp_results(size):
    for name in OPTIMIZERS:
        losses, state = train_ddp(size, name)
        yield name, {"losses": losses, **as_lists(state)}


def main():
    torch.set_num_threads(1)
    FOLDER.mkdir(exist_ok=True)
    tokens, targets = make_batches()
    write("start.json", {"weights": as_lists(first_state()),
                         "batches": {"tokens": tokens.flatten().tolist(), "targets": targets.flatten().tolist()}})
    write("joined.json", dict(joined_results()))
    for size in (2, 4):
        write(f"ddp{size}.json", dict(ddp_results(size)))


if __name__ == "__main__":
    main()

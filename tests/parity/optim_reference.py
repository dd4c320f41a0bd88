#!/usr/bin/env python3
"""Prints the results of torch's schedulers and torch.amp.GradScaler: the literals of schedule_test.cpp and loss_scaler_test.cpp.

Usage: python3 tests/parity/optim_reference.py, with a torch of 2.10 or newer.
"""

from __future__ import annotations

import torch
from torch.optim import lr_scheduler as schedulers

PEAK = 0.5


def rates(make: object, num_steps: int) -> list[float]:
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=PEAK)
    scheduler = make(optimizer)
    found = []
    for _ in range(num_steps):
        found.append(round(optimizer.param_groups[0]["lr"], 12))
        optimizer.step()
        scheduler.step()
    return found


def warm_cosine(optimizer: torch.optim.Optimizer) -> schedulers.LRScheduler:
    """Four steps of linear warm-up from 0, then eight of cosine decay."""
    up = schedulers.LambdaLR(optimizer, lambda step: step / 4)
    down = schedulers.CosineAnnealingLR(optimizer, T_max=8)
    return schedulers.SequentialLR(optimizer, [up, down], milestones=[4])


def print_schedules() -> None:
    print("linear", rates(lambda o: schedulers.LinearLR(o, 1.0, 0.0, total_iters=5), 6))
    print("cosine, min 0.1", rates(lambda o: schedulers.CosineAnnealingLR(o, T_max=5, eta_min=0.1 * PEAK), 6))
    print("warm cosine", rates(warm_cosine, 12))
    print("poly 0.9", rates(lambda o: schedulers.PolynomialLR(o, total_iters=5, power=0.9), 6))
    print("one-cycle", rates(lambda o: schedulers.OneCycleLR(o, PEAK, total_steps=10, final_div_factor=4), 10))
    print("one-cycle of 7", rates(lambda o: schedulers.OneCycleLR(o, PEAK, total_steps=7, final_div_factor=4), 7))


def print_scaler() -> None:
    """One letter per step, o: overflow, .: none; returns the scale after each."""
    scaler = torch.amp.GradScaler("cpu", init_scale=64.0, growth_interval=3)
    weight = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.0)
    for letter in "..o...oo....o......":
        optimizer.zero_grad()
        scaler.scale(weight.sum() * (float("inf") if letter == "o" else 1.0)).backward()
        scaler.step(optimizer)
        scaler.update()
        print(letter, scaler.get_scale(), scaler._get_growth_tracker())


print_schedules()
print_scaler()

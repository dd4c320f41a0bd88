"""The peer of all_reduce/main.cpp: torch.distributed with Gloo. Usage: tandem run -n 2 all_reduce_gloo.py --bytes 4096."""

import argparse
import json
import statistics
import time

import torch
import torch.distributed as dist


def median_seconds(tensor: torch.Tensor, iterations: int) -> float:
    seconds = []
    for _ in range(2 * iterations):
        begin = time.perf_counter()
        dist.all_reduce(tensor)
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds[iterations:])


def largest_error(tensor: torch.Tensor) -> float:
    ramp = torch.arange(tensor.numel()).remainder(1000).float()
    rank, size = dist.get_rank(), dist.get_world_size()
    tensor.copy_(ramp * (rank + 1))
    dist.all_reduce(tensor)
    return (tensor - ramp * (size * (size + 1) // 2)).abs().max().item()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--bytes", type=int, default=4096)
    parser.add_argument("--iterations", type=int, default=100)
    args = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    tensor = torch.zeros(args.bytes // 4)
    seconds = median_seconds(tensor, args.iterations)
    error = largest_error(tensor)
    if dist.get_rank() == 0:
        print(json.dumps({"us": 1e6 * seconds, "max_diff": error}))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

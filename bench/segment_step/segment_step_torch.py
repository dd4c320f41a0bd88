"""The peer of segment_step/main.cpp: the same network, weights, batch, losses and optimizer in PyTorch, channels-last.

Usage: segment_step_torch.py FOLDER [--prepare] [--device cuda:0 --precision bf16 --compile --autotune]. With --prepare, the folder gets weights
and a batch.
"""

import argparse
import json
import pathlib
import resource
import sys
import time

import torch
from safetensors.torch import load_file, save_file
from torch.nn import functional

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "tests" / "python"))
from plain_deeplab import Deeplab, entropy  # noqa: E402

CLASSES = 21


def random_batch(batch: int, crop: int) -> dict[str, torch.Tensor]:
    """Images of noise; thin scribbles, pseudo labels in rectangles (about a third of an image), maps of all values."""
    draw = torch.Generator().manual_seed(7)
    labels = torch.full((batch, crop, crop), 255, dtype=torch.uint8)
    pseudo = torch.zeros(batch, crop, crop, dtype=torch.uint8)
    for i in range(batch):
        top, left = torch.randint(crop // 3, (2,), generator=draw).tolist()
        number = 1 + i % (CLASSES - 1)
        pseudo[i, top:top + crop * 3 // 5, left:left + crop * 3 // 5] = number
        labels[i, top + crop // 4, left:left + crop // 2] = number
        labels[i, crop - 3:, ::2] = 0
    maps = [torch.randint(256, (batch, crop, crop), generator=draw, dtype=torch.uint8) for _ in range(2)]
    return {"images": torch.randn(batch, 3, crop, crop, generator=draw), "labels": labels, "pseudo": pseudo, "near_scribble": maps[0],
            "near_contour": maps[1]}


def prepare(folder: pathlib.Path, batch: int, crop: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(1)
    model = Deeplab("aspp", CLASSES, layers=50, width=64)
    for module in model.modules():
        if isinstance(module, torch.nn.Conv2d):
            torch.nn.init.normal_(module.weight, 0, (2 / (module.kernel_size[0] ** 2 * module.out_channels)) ** 0.5)
    for name, parameter in model.named_parameters():
        if name.endswith("bn3.weight"):
            torch.nn.init.constant_(parameter, 0.1)  # or rounding would soon change the losses
    save_file(model.state_dict(), folder / "model.safetensors")
    save_file(random_batch(batch, crop), folder / "batch.safetensors")


def loss_of(model: torch.nn.Module, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    logits, (lorm_sum, lorm_count) = model(batch["images"], batch["pseudo"])
    loss = functional.cross_entropy(logits, batch["labels"], ignore_index=255)
    loss = loss + functional.cross_entropy(logits, batch["pseudo"], ignore_index=255, label_smoothing=0.1)
    for name in ("near_scribble", "near_contour"):
        total, count = entropy(logits, batch[name])
        loss = loss + total / count
    return loss + lorm_sum / lorm_count


def take_steps(model: torch.nn.Module, batch: dict[str, torch.Tensor], args: argparse.Namespace) -> tuple[list[float], list[float]]:
    device, dtype = torch.device(args.device).type, {"fp32": torch.float, "bf16": torch.bfloat16, "fp16": torch.float16}[args.precision]
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, weight_decay=5e-4, fused=True)
    scaler = torch.amp.GradScaler(device, init_scale=1024, enabled=args.precision == "fp16")  # no step overflows
    moments, losses = [moment(device)], []
    for _ in range(args.warmup + args.steps):
        optimizer.zero_grad()
        with torch.autocast(device, dtype, enabled=args.precision != "fp32"):
            loss = loss_of(model, batch)
        scaler.scale(loss).backward()
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
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--prepare", action="store_true")
    parser.add_argument("--batch-size", type=int, default=2, help="of --prepare")
    parser.add_argument("--crop", type=int, default=129, help="of --prepare")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", choices=["fp32", "bf16", "fp16"], default="fp32")
    parser.add_argument("--warmup", type=int, default=1)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--autotune", action="store_true", help="torch.backends.cudnn.benchmark")
    args = parser.parse_args()
    if args.prepare:
        prepare(args.folder, args.batch_size, args.crop)
        return
    torch.set_num_threads(1)
    torch.backends.cudnn.benchmark = args.autotune
    model: torch.nn.Module = Deeplab("aspp", CLASSES, layers=50, width=64)
    model.load_state_dict(load_file(args.folder / "model.safetensors"))
    model = model.to(args.device, memory_format=torch.channels_last)
    batch = {name: tensor.to(args.device) for name, tensor in load_file(args.folder / "batch.safetensors").items()}
    batch["images"] = batch["images"].contiguous(memory_format=torch.channels_last)
    batch |= {name: batch[name].long() for name in ("labels", "pseudo")}
    times, losses = take_steps(torch.compile(model) if args.compile else model, batch, args)
    on_cpu = torch.device(args.device).type == "cpu"
    memory = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss if on_cpu else torch.cuda.max_memory_allocated()
    print(json.dumps({"step_ms": times, "losses": losses, "memory_gb": memory / 1e9}))


if __name__ == "__main__":
    main()

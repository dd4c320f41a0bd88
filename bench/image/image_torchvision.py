"""The peer of image/main.cpp: torchvision's transforms v2 on images that Pillow decodes, on one thread.

image_torchvision.py FOLDER --prepare writes 24 images and plan.json, what is done to each; without it they are timed."""

import argparse
import json
import pathlib
import random
import statistics
import sys
import time

import numpy
import torch
from PIL import Image

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "python"))
from torchvision_peer import add_torchvision

CROP, MEAN = 465, [124, 116, 104]


def make_image(number: int) -> Image.Image:
    """Shapes and shades with noise: a file of about the size of a photograph."""
    noise = numpy.random.default_rng(number)
    y, x = numpy.mgrid[:375, :500]
    planes = [127 + 70 * numpy.sin(x / noise.uniform(9, 60) + c) * numpy.cos(y / noise.uniform(9, 60)) for c in range(3)]
    pixels = numpy.stack(planes, -1) + noise.normal(0, 9, (375, 500, 3))
    for _ in range(12):
        top, left, size = noise.integers(0, 340), noise.integers(0, 460), noise.integers(10, 120)
        pixels[top:top + size, left:left + size] += noise.integers(-90, 90, 3)
    return Image.fromarray(pixels.clip(0, 255).astype(numpy.uint8))


def prepare(folder: pathlib.Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    draw, plan = random.Random(19), []
    for number in range(24):
        make_image(number).save(folder / f"{number}.jpg", quality=90)
        scale = draw.uniform(0.5, 2)
        height, width = round(375 * scale), round(500 * scale)
        top, left = (draw.randint(min(size - CROP, 0), max(size - CROP, 0)) for size in (height, width))
        plan.append({"file": f"{number}.jpg", "height": height, "width": width, "degrees": draw.uniform(-10, 10) if number % 2 else 0,
                     "blurs": int(number // 2 % 2), "flips": int(number // 4 % 2), "top": top, "left": left})
    (folder / "plan.json").write_text(json.dumps(plan))


def load(folder: pathlib.Path, row: dict, functional) -> Image.Image:
    image = Image.open(folder / row["file"]).convert("RGB")
    bilinear = functional.InterpolationMode.BILINEAR
    image = functional.resize(image, [row["height"], row["width"]], bilinear)
    if row["degrees"]:
        image = functional.rotate(image, row["degrees"], bilinear, fill=MEAN)
    if row["blurs"]:
        image = functional.gaussian_blur(image, [5, 5], [1.1, 1.1])
    if row["flips"]:
        image = functional.horizontal_flip(image)
    left, top = max(-row["left"], 0), max(-row["top"], 0)
    right, bottom = (max(begin + CROP - row[side], 0) for side, begin in (("width", row["left"]), ("height", row["top"])))
    if left or top or right or bottom:
        image = functional.pad(image, [left, top, right, bottom], fill=MEAN)
    return functional.crop(image, row["top"] + top, row["left"] + left, CROP, CROP)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--prepare", action="store_true")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    if options.prepare:
        prepare(options.folder)
        return
    torch.set_num_threads(1)
    add_torchvision()
    from torchvision.transforms.v2 import functional
    plan = json.loads((options.folder / "plan.json").read_text())
    some_pixels = []
    for row in plan:
        some_pixels += numpy.asarray(load(options.folder, row, functional)).reshape(-1)[::1009].tolist()
    times = []
    for _ in range(options.repeats):
        begin = time.perf_counter()
        for row in plan:
            load(options.folder, row, functional)
        times.append(1e3 * (time.perf_counter() - begin) / len(plan))
    print(json.dumps({"ms": statistics.median(times), "pixels": some_pixels}))


if __name__ == "__main__":
    main()

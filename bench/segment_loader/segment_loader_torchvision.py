"""The peer of segment_loader/main.cpp: torchvision's transforms v2 in a DataLoader, on files that Pillow decodes, on one thread.

segment_loader_torchvision.py FOLDER --prepare writes 24 images and their planes. Without it they are timed, changed as FOLDER/plan.json says,
which ours prints. An image is scaled, rotated, blurred, mirrored and cut out by torchvision, its planes (labels, pseudo labels, both maps) too
but for the blur, without interpolation. All of them are Pillow's images until they are put into a batch: as tv_tensors they took twice as long."""

import argparse
import json
import math
import pathlib
import sys
import time

import numpy
import torch
from PIL import Image

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "python"))
from torchvision_peer import add_torchvision

MEAN = [124, 116, 104]
PLANES = {"labels": 255, "pseudo": 255, "near_scribble": 0, "near_contour": 0}  # and what lies beyond their edge


def make_planes(number: int) -> dict[str, Image.Image]:
    """Shapes and shades with noise: a JPEG of about the size of a photograph's. Pseudo labels are discs, scribbles strokes in them."""
    noise = numpy.random.default_rng(number)
    y, x = numpy.mgrid[:375, :500]
    planes = [127 + 70 * numpy.sin(x / noise.uniform(9, 60) + c) * numpy.cos(y / noise.uniform(9, 60)) for c in range(3)]
    pixels = numpy.stack(planes, -1) + noise.normal(0, 9, (375, 500, 3))
    labels, pseudo = numpy.full((375, 500), 255, numpy.uint8), numpy.zeros((375, 500), numpy.uint8)
    nearest = numpy.full((375, 500), 1e9)
    for _ in range(5):
        down, across, radius, label = *noise.integers(0, [375, 500]), noise.integers(20, 90), noise.integers(1, 21)
        distance = numpy.hypot(y - down, x - across)
        pixels[distance < radius] += noise.integers(-90, 90, 3)
        pseudo[distance < radius] = label
        labels[(distance < radius) & (abs(y - down) < 2)] = label
        nearest = numpy.minimum(nearest, abs(distance - radius))
    near = (nearest * math.e ** 3).clip(0, 255).astype(numpy.uint8)
    arrays = {"image": pixels.clip(0, 255).astype(numpy.uint8), "labels": labels, "pseudo": pseudo, "near_scribble": 255 - near,
              "near_contour": near}
    return {name: Image.fromarray(array) for name, array in arrays.items()}


def prepare(folder: pathlib.Path) -> None:
    for number in range(24):
        for name, image in make_planes(number).items():
            path = folder / name / f"{number}.{'jpg' if name == 'image' else 'png'}"
            path.parent.mkdir(parents=True, exist_ok=True)
            image.save(path, **({"quality": 90} if name == "image" else {}))


class Samples:
    """A map-style dataset: each change with the functions of torchvision, in the order of the guide."""

    def __init__(self, folder: pathlib.Path, crop: int, rows: list[dict]) -> None:
        from torchvision.transforms import InterpolationMode
        from torchvision.transforms.v2 import functional
        self.folder, self.crop, self.rows, self.functional, self.modes = folder, crop, rows, functional, InterpolationMode

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        row, modes = self.rows[index], self.modes
        image = Image.open(self.folder / "image" / f"{index}.jpg").convert("RGB")
        sample = {"image": self.change(image, row, modes.BILINEAR, MEAN, row["blurs"])}
        for name, fill in PLANES.items():
            sample[name] = self.change(Image.open(self.folder / name / f"{index}.png"), row, modes.NEAREST, fill, False)
        return sample

    def change(self, image: Image.Image, row: dict, mode, fill: list[int] | int, blurs: bool) -> torch.Tensor:
        height, width = (max(1, round(size * row["scale"])) for size in self.functional.get_size(image))
        image = self.functional.resize(image, [height, width], mode)
        if row["degrees"]:
            image = self.functional.rotate(image, row["degrees"], mode, fill=fill)
        if blurs:
            image = self.functional.gaussian_blur(image, [5, 5], [1.1, 1.1])
        if row["flips"]:
            image = self.functional.horizontal_flip(image)
        image = self.cut(image, self.begin(height, row["down"]), self.begin(width, row["across"]), height, width, fill)
        return torch.from_numpy(numpy.array(image))

    def begin(self, size: int, where: float) -> int:
        return -((self.crop - size) // 2) if size <= self.crop else min(int(where * (size - self.crop + 1)), size - self.crop)

    def cut(self, image: Image.Image, top: int, left: int, height: int, width: int, fill: list[int] | int) -> Image.Image:
        before_x, before_y = max(-left, 0), max(-top, 0)
        after_x, after_y = max(left + self.crop - width, 0), max(top + self.crop - height, 0)
        if before_x or before_y or after_x or after_y:
            image = self.functional.pad(image, [before_x, before_y, after_x, after_y], fill=fill)
        return self.functional.crop(image, top + before_y, left + before_x, self.crop, self.crop)


def some_pixels(batches) -> list[int]:
    values = []
    for batch in batches:
        for name, plane in batch.items():
            values += plane.flatten()[::1009 if name == "image" else 1013].tolist()
    return values


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--prepare", action="store_true")
    options = parser.parse_args()
    if options.prepare:
        prepare(options.folder)
        return
    torch.set_num_threads(1)
    add_torchvision()
    plan = json.loads((options.folder / "plan.json").read_text())

    def batches(rows: list[dict]) -> torch.utils.data.DataLoader:
        return torch.utils.data.DataLoader(Samples(options.folder, plan["crop"], rows), batch_size=plan["batch"])

    times = []
    for rows in plan["epochs"]:
        begin = time.perf_counter()
        for _ in batches(rows):
            pass
        times.append(1e3 * (time.perf_counter() - begin) / len(rows))
    print(json.dumps({"ms": sum(times[1:]) / len(times[1:]), "pixels": some_pixels(batches(plan["compared"]))}))


if __name__ == "__main__":
    main()

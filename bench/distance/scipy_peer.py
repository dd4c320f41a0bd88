"""The peer of distance/main.cpp: scipy's exact Euclidean distance transform. Usage: scipy_peer.py --map s|c|squared."""

import argparse
import json
import math
import statistics
import time

import numpy
from scipy import ndimage

DISCS = ((120, 140, 70), (250, 300, 90), (90, 410, 45))


def make_labels(has_strokes: bool) -> numpy.ndarray:
    """Three discs, or a stroke of three pixels' width in each."""
    y, x = numpy.mgrid[:375, :500]
    labels = numpy.zeros((375, 500), numpy.uint8)
    for centre_y, centre_x, radius in DISCS:
        down, across = y - centre_y, x - centre_x
        half = numpy.fix(across / 2).astype(int)
        labels |= (abs(down - half) < 2) & (2 * abs(across) < radius) if has_strokes else down ** 2 + across ** 2 < radius ** 2
    return labels


def contours(mask: numpy.ndarray) -> numpy.ndarray:
    padded = numpy.pad(mask, 1, mode="edge")
    inside = padded[:-2, 1:-1] & padded[2:, 1:-1] & padded[1:-1, :-2] & padded[1:-1, 2:]
    return mask & ~inside


def make_map(kind: str, labels: numpy.ndarray) -> numpy.ndarray:
    if kind == "squared":
        return numpy.rint(ndimage.distance_transform_edt(labels == 0) ** 2)
    factor = math.e ** (0.5 if kind == "s" else 3)
    distances = ndimage.distance_transform_edt(labels == 0 if kind == "s" else contours(labels) == 0)
    values = numpy.rint(numpy.minimum(255, factor * distances)).astype(numpy.uint8)
    return 255 - values if kind == "s" else values


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--map", default="s")
    kind = parser.parse_args().map
    labels = make_labels(kind != "c")
    seconds = []
    for _ in range(30):
        begin = time.perf_counter()
        made = make_map(kind, labels)
        seconds.append(time.perf_counter() - begin)
    print(json.dumps({"ms": 1e3 * statistics.median(seconds), "map": made.astype(int).ravel().tolist()}))


if __name__ == "__main__":
    main()

"""Writes dialogues of the length of builtin:dialogues, with their summaries, for gpt2_ddp.py."""

import csv
import pathlib
import random

NAMES = ["Adam", "Alice", "Anna", "Ben", "Carl", "Clara", "Daniel", "Diana", "Emma", "Eric", "Eva", "Felix", "Frank", "Grace"]
VERBS = ["cook", "dance", "draw", "eat", "film", "jog", "paint", "play", "read", "rest", "sing", "study", "talk", "train", "wait"]
PLACES = ["lake", "park", "beach", "library", "school", "museum", "garden", "station", "harbor", "market", "theater", "stadium"]
TIMES = ["on Monday", "on Tuesday", "on Wednesday", "on Thursday", "on Friday", "at noon", "at midnight", "at dawn", "at dusk"]
DIALOGUES = [
    "{a}: Hi {b}, do you want to {verb} with me?\n{b}: Sure, where?\n{a}: How are you?\n{a}: We can go to the {place}.\n"
    "{b}: Good, see you {time}.",
    "{a}: {b}, are you free {time}?\n{b}: Yes, what do you want to do?\n{b}: My phone is old.\n{a}: I would like to {verb}.\n"
    "{b}: Then let us meet at the {place}.",
]
SUMMARY = "{a} and {b} will {verb} at the {place} {time}."


def write_dialogues(path: pathlib.Path, count: int) -> None:
    draw = random.Random(1)
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["dialogue", "summary"])
        for _ in range(count):
            a, b = draw.sample(NAMES, 2)
            slots = {"a": a, "b": b, "verb": draw.choice(VERBS), "place": draw.choice(PLACES), "time": draw.choice(TIMES)}
            writer.writerow([draw.choice(DIALOGUES).format(**slots), SUMMARY.format(**slots)])

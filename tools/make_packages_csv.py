#!/usr/bin/env python3
"""Writes the table of builtin:packages from the installed Debian packages. Usage: make_packages_csv.py > packages.csv

Each row is a package that Debian maintains: its long description (as `dialogue`) and its synopsis (as `summary`). Packages of one
source share texts, so they are in the same `split`: the held-out set has no near duplicates in the training set.
"""

import csv
import re
import subprocess
import sys
import zlib

FIELDS = ("Package", "source:Package", "Maintainer", "binary:Synopsis", "Description")
HELD_OUT_SHARE = 3  # one source of three, so that scores have at least 200 samples
MAX_LENGTH = 1200  # of a description; the rest is mostly lists of files and options


def packages() -> list[list[str]]:
    line = "\x1f".join(f"${{{field}}}" for field in FIELDS) + "\x1e"
    listed = subprocess.run(["dpkg-query", "-W", "-f", line], check=True, capture_output=True, text=True).stdout
    return [package.split("\x1f") for package in listed.split("\x1e") if package]


def unwrapped(description: str) -> str:
    """One line per paragraph or list item. A dot marks a blank line in Debian."""
    paragraphs = [""]
    for line in description.splitlines()[1:]:
        begins_anew = line == " ." or re.match(r"\s+[*o+-] ", line)
        if begins_anew and paragraphs[-1]:
            paragraphs.append("")
        if line != " .":
            paragraphs[-1] += " " + line.strip()
    while len("\n".join(paragraphs)) > MAX_LENGTH and len(paragraphs) > 1:
        paragraphs.pop()
    return "\n".join(paragraph.strip() for paragraph in paragraphs).strip()


def main() -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["id", "source", "dialogue", "summary", "split"])
    known = set()
    for name, source, maintainer, synopsis, description in sorted(packages()):
        text = unwrapped(description)
        if "debian" in maintainer.lower() and text and (text, synopsis) not in known:
            known.add((text, synopsis))
            split = "test" if zlib.crc32(source.encode()) % HELD_OUT_SHARE == 0 else "train"
            writer.writerow([name, source, text, synopsis, split])


if __name__ == "__main__":
    main()

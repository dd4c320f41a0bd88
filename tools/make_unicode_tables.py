#!/usr/bin/env python3
"""Writes src/text/unicode_tables.cpp: the letters, numbers and white space of Unicode 15.0. Usage: make_unicode_tables.py [FILE].

The categories come from unicodedata if it has version 15.0 (Python 3.12), else from ICU 72. Exit code 3 if there is neither.
"""

import ctypes
import itertools
import sys
import textwrap
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path

TARGET = Path(__file__).parents[1] / "src" / "text" / "unicode_tables.cpp"
# The property White_Space, which is not a category; unchanged since Unicode 6.3.
WHITE_SPACE = {*range(0x09, 0x0E), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000}
ICU_LETTERS, ICU_NUMBERS = range(1, 6), range(9, 12)  # of its enum UCharCategory
NUM_CODE_POINTS = 0x110000

HEADER = """// Made by tools/make_unicode_tables.py.

#include "text/unicode_tables.h"

namespace tandem {
namespace {

using enum CharClass;

// clang-format off
constexpr ClassRange kRanges[] = {
"""
FOOTER = """};
// clang-format on

}  // namespace

std::span<const ClassRange> class_ranges() { return kRanges; }

}  // namespace tandem
"""


def python_letter() -> Callable[[int], str] | None:
    """The first letter of a code point's category, by unicodedata."""
    return (lambda point: unicodedata.category(chr(point))[0]) if unicodedata.unidata_version == "15.0.0" else None


def icu_letter() -> Callable[[int], str] | None:
    try:
        char_type = ctypes.CDLL("libicuuc.so.72").u_charType_72
    except OSError:
        return None
    char_type.restype = ctypes.c_int8
    names = {kind: "L" for kind in ICU_LETTERS} | {kind: "N" for kind in ICU_NUMBERS}
    return lambda point: names.get(char_type(point), "")


def ranges(letter: Callable[[int], str]) -> Iterator[tuple[int, int, str]]:
    """First, last and class of each run of one class; what is in no run is of the class Other."""
    def class_of(point: int) -> str:
        return "Space" if point in WHITE_SPACE else {"L": "Letter", "N": "Number"}.get(letter(point), "")
    for name, points in itertools.groupby(range(NUM_CODE_POINTS), class_of):
        if name:
            run = list(points)
            yield run[0], run[-1], name


def table(letter: Callable[[int], str]) -> str:
    entries = [f"{{0x{first:X},0x{last:X},{name}}}," for first, last, name in ranges(letter)]
    lines = textwrap.wrap(" ".join(entries), width=116, break_on_hyphens=False)
    return HEADER + "".join(f"    {line}\n" for line in lines) + FOOTER


def main(args: list[str]) -> int:
    letter = python_letter() or icu_letter()
    if letter is None:
        print(f"neither unicodedata ({unicodedata.unidata_version}) nor an ICU here has Unicode 15.0", file=sys.stderr)
        return 3
    Path(args[0] if args else TARGET).write_text(table(letter))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""What the checkers share: the files of a tree, the code of a file without its comments and strings, the report."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import lru_cache
from pathlib import Path
from typing import Iterable

CPP = (".cpp", ".cc", ".cu", ".h", ".hpp", ".cuh")
CPP_TOKEN = re.compile(
    r'(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<string>R"(?P<mark>[^()\\\s]*)\(.*?\)(?P=mark)"'
    r"|\"(?:\\.|[^\"\\\n])*\"|(?<!\w)'(?:\\.|[^'\\\n])+')", re.S)
HASH_TOKEN = re.compile(
    r"(?P<comment>(?<!\S)#[^\n]*)|(?P<string>\"{3}.*?\"{3}|'{3}.*?'{3}"
    r"|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*')", re.S)

Finding = tuple[str, int, str]  # path, line, sentence


def list_files(root: Path) -> list[str]:
    """Paths from root: what git would commit; without git, every file outside build*/ and dot folders."""
    if (root / ".git").exists():
        git = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(git, check=True, capture_output=True, text=True).stdout.split("\0")
        return sorted(path for path in set(listed) if (root / path).is_file())
    found = []
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = [name for name in subfolders if not name.startswith((".", "build"))]
        found += [Path(folder, name).relative_to(root).as_posix() for name in names]
    return sorted(found)


@lru_cache(maxsize=None)
def view(path: str, text: str, *kept: str) -> str:
    """The text with only the kept kinds (code, comment, string) in place and all else blank, line for line."""
    parts, end = [], 0
    for token in (CPP_TOKEN if path.endswith(CPP) else HASH_TOKEN).finditer(text):
        parts += [("code", text[end:token.start()]), (token.lastgroup, token[0])]
        end = token.end()
    parts.append(("code", text[end:]))
    return "".join(part if kind in kept else re.sub(r"[^\n]", " ", part) for kind, part in parts)


def line_of(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


def report(name: str, num_files: int, findings: Iterable[Finding]) -> int:
    """Prints the findings, or that there are none, and returns the exit code."""
    if num_files == 0:
        print(f"{name}: no source file found, so nothing was checked", file=sys.stderr)
        return 2
    lines = [f"{path}:{line}: {sentence}" for path, line, sentence in sorted(findings)]
    print("\n".join(lines) if lines else f"{name}: {num_files} files, 0 findings")
    return 1 if lines else 0

"""What the tests of the checkers share: small trees, and what a checker says of one."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from types import ModuleType


def write_tree(root: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


def run_check(checker: ModuleType, root: Path) -> tuple[int, list[str]]:
    """Its exit code and its lines."""
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
        code = checker.main([str(root)])
    return code, out.getvalue().splitlines()

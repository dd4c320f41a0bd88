"""What the tests of the checkers share: small trees, and the findings of a checker in one."""

from __future__ import annotations

import contextlib
import io
import tempfile
import unittest
from pathlib import Path
from types import ModuleType


def write_tree(root: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


def run_check(checker: ModuleType, root: Path) -> tuple[int, list[str]]:
    """The exit code and the lines of a checker."""
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
        code = checker.main([str(root)])
    return code, out.getvalue().splitlines()


class TreeTest(unittest.TestCase):
    """Runs one checker on small trees."""

    checker: ModuleType

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)

    def check(self, files: dict[str, str]) -> tuple[int, list[str]]:
        root = Path(tempfile.mkdtemp(dir=self.root))
        write_tree(root, files)
        return run_check(self.checker, root)

    def green(self, files: dict[str, str]) -> None:
        code, lines = self.check(files)
        self.assertEqual((0, 1), (code, len(lines)), lines)

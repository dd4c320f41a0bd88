"""Checks docs/launch.md: its tables list every flag of `tandem run`, torchrun and accelerate."""

import importlib.metadata
import os
import pathlib
import re
import subprocess
import unittest
from typing import NamedTuple

from doc_links import lost_targets

BUILD = pathlib.Path(os.environ["TANDEM_BUILD"])
SOURCE = pathlib.Path(os.environ["TANDEM_SOURCE"])
PAGE = (SOURCE / "docs" / "launch.md").read_text()
NO_VARIABLE = {"--config", "--dump-config", "--help"}


class Row(NamedTuple):
    flags: list[str]
    variable: str
    status: str
    words: str


def tandem(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([BUILD / "bin" / "tandem", *arguments], capture_output=True, text=True, timeout=60)


def names(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def rows() -> list[Row]:
    lines = re.findall(r"^\|( `-.*)\|$", PAGE.partition("\n## Every flag\n")[2].partition("\n### ")[0], re.M)
    cells = [[cell.strip() for cell in line.split("|")] for line in lines]
    return [Row(names(flags), "".join(names(variable)), status, words) for flags, variable, _, status, words in cells]


def refused() -> list[str]:
    lines = re.findall(r"^\| (`--.*) \|$", PAGE.partition("\n### Refused\n")[2], re.M)
    return [flag for line in lines for flag in names(line.split(" | ")[0])]


def help_flags(command: str) -> set[str]:
    """Every name before the explanation of a flag, long and short."""
    shown = re.findall(r"^  ((?:-\w, |    )--[\w-]+(?:, --[\w-]+)*)", tandem(command, "--help").stdout, re.M)
    return {name.strip() for line in shown for name in line.split(",")}


def matches(flag: str, pattern: str) -> bool:
    return re.fullmatch(pattern.replace("*", ".*"), flag.replace("_", "-")) is not None


def peer_flags(parser) -> list[str]:
    return [name for action in parser._actions for name in action.option_strings]


class Table(unittest.TestCase):
    def test_has_every_flag_that_help_lists_and_no_other(self):
        told = [flag for row in rows() for flag in row.flags]
        self.assertEqual(len(told), len(set(told)))
        self.assertEqual(set(told), help_flags("run"))

    def test_names_the_variable_of_each_flag(self):
        for row in rows():
            derived = "" if row.flags[0] in NO_VARIABLE else f"PET_{row.flags[0][2:].upper().replace('-', '_')}"
            self.assertEqual(row.variable, derived)

    def test_says_default_only_of_what_takes_its_default_only(self):
        for row in rows():
            flag = row.flags[0]
            other = tandem("run", "--dry-run", flag, "something", "true")
            refusal = rf"^error: {flag[2:]} is something, which tandem does not support .*\nhint: .*\n$"
            self.assertEqual(row.status, "default only" if re.match(refusal, other.stderr) else "honoured", flag)
            if row.status == "default only":
                default = "".join(names(row.words)[:1])
                taken = tandem("run", "--dry-run", flag, default, "true")
                self.assertEqual((other.returncode, taken.returncode, taken.stderr), (2, 0, ""), flag)

    def test_says_refused_of_what_is_refused_in_one_sentence(self):
        self.assertGreater(len(refused()), 20)
        for pattern in refused():
            flag = pattern.replace("*", "x")
            result = tandem("run", flag, "true")
            self.assertRegex(result.stderr, rf"^error: tandem run: .*{re.escape(flag)}.*\nhint: .*\n$")
            self.assertEqual(result.returncode, 2)

    def assert_lists(self, flags: list[str]) -> None:
        known = [flag for row in rows() for flag in row.flags] + refused()
        missing = [flag for flag in flags if not any(matches(flag, pattern) for pattern in known)]
        self.assertEqual(missing, [])

    def skip_unless(self, package: str) -> None:
        (described,) = re.findall(rf"\b{'torchrun' if package == 'torch' else package} (\d+\.\d+)[ ;]", PAGE)
        try:
            installed = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            self.skipTest(f"{package} is not installed")
        if not installed.startswith(f"{described}."):
            self.skipTest(f"the page is about {package} {described}, and {installed} is installed")

    def test_has_every_flag_of_torchrun(self):
        self.skip_unless("torch")
        from torch.distributed.run import get_args_parser
        self.assert_lists(peer_flags(get_args_parser()))

    def test_has_every_flag_of_accelerate(self):
        self.skip_unless("accelerate")
        from accelerate.commands.launch import launch_command_parser
        self.assert_lists(peer_flags(launch_command_parser()))


class Page(unittest.TestCase):
    def test_speaks_of_no_flag_that_does_not_exist(self):
        known = set(refused()).union(*(help_flags(command) for command in ("run", "ps", "logs", "stack", "stop")))
        known |= {f"--no-{flag[2:]}" for flag in help_flags("run")}
        known |= {"--ntasks-per-node", "--listen", "--wait-for-client", "--local-rank", "--lr"}  # of srun, debugpy and scripts
        for flag in re.findall(r"(?<![\w`-])`?(--[a-z][\w-]+)", PAGE):
            self.assertTrue(any(matches(flag, pattern) for pattern in known), flag)

    def test_points_to_what_exists(self):
        self.assertEqual(lost_targets(PAGE, SOURCE), [])


if __name__ == "__main__":
    unittest.main()

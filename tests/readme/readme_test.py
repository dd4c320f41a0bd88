"""Checks README.md: its programs compile and agree, its commands print what it shows, its files exist."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
from typing import NamedTuple

for folder in ("install", "launch"):
    sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / folder))
from consumer import BUILD, PREFIX, SOURCE, build_program, run, tandem  # noqa: E402
from support import STRANGE  # noqa: E402

README = (SOURCE / "README.md").read_text()

# Varies between runs and machines.
CHANCE = ((r"process \d+", "process N"), (r"\d+\.\d s\b", "T s"), (r"\bport \d+", "port N"), (r"-[0-9a-f]{6}\b", "-NAME"),
          (r"OMP_NUM_THREADS=\d+: \d+ usable cores?", "OMP_NUM_THREADS=N: N usable cores"), (r"peak memory \d+ MiB", "peak memory N MiB"),
          (r'( in |File ")/\S*?(?=/[\w.-]+(/rank\d+\.log|"|,|$))', r"\1FOLDER"))


class Block(NamedTuple):
    language: str
    text: str
    follows: bool  # only blank lines between it and the block before


def all_blocks() -> list[Block]:
    found, end = [], 0
    for match in re.finditer(r"^```(\w+)\n((?:(?!```).*\n)*)^```$", README, re.M):
        found.append(Block(match[1], match[2], not README[end:match.start()].strip()))
        end = match.end()
    return found


def diff_lines() -> list[str]:
    (diff,) = [block for block in all_blocks() if block.language == "diff"]
    return diff.text.splitlines()


def shell_blocks() -> list[tuple[str, str]]:
    """Each shell block with the output block that directly follows it, or nothing."""
    pairs = zip(all_blocks(), [*all_blocks()[1:], Block("", "", False)])
    return [(block.text, after.text if after.language == "text" and after.follows else "")
            for block, after in pairs if block.language == "sh"]


def reading_line() -> list[str]:
    (line,) = re.findall(r"^Read the code in six files:((?:.|\n)*?)\n\n", README, re.M)
    return re.findall(r"`([^`]+)`", line)


def without_chance(text: str) -> list[str]:
    """Sorted, because the lines of two streams may be interleaved."""
    for pattern, word in CHANCE:
        text = re.sub(pattern, word, text, flags=re.M)
    return sorted(line for line in text.splitlines() if line and not line.startswith("ninja:"))


def environment() -> dict[str, str]:
    """Make uses the build under test, build/COMPILER-PRESET or build/PRESET; `tandem` on PATH is the installed one."""
    compiler, _, preset = ("" if BUILD.name == "build" else BUILD.name).rpartition("-")
    chosen = {"CXX": os.environ.get("CXX", compiler), "PRESET": preset}
    kept = {key: value for key, value in os.environ.items() if not key.startswith("MAKE") and not STRANGE.match(key)}
    return {**kept, **{key: value for key, value in chosen.items() if value}, "PATH": f"{PREFIX}/bin:{os.environ['PATH']}"}


class Readme(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def shell(self, script: str) -> subprocess.CompletedProcess:
        """Runs make in the source tree, everything else in a temporary folder."""
        folder = SOURCE if script.startswith("make") else self.folder
        return subprocess.run(["bash", "-ec", script], cwd=folder, env={**environment(), "TANDEM_STATE_DIR": f"{self.folder}/jobs"},
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=500)

    def test_both_sides_of_the_diff_compile_and_print_the_same(self):
        sides = {"before": " -", "after": " +"}
        with tempfile.TemporaryDirectory() as temporary:
            built = {}
            for side, kept in sides.items():
                program = "\n".join(line[1:] for line in diff_lines() if (line[:1] or " ") in kept)
                built[side] = build_program(pathlib.Path(temporary) / side, program)
            alone = run([built["before"]])
            world_of_one = run([built["after"]])
            together = tandem("run", "--device", "cpu", "-n", "2", str(built["after"]))
        self.assertRegex(alone.stdout, r"^\d\.\d+$")
        self.assertEqual(alone.stdout, together.stdout, together.stderr)
        self.assertEqual(alone.stdout, world_of_one.stdout, world_of_one.stderr)

    def test_the_diff_changes_few_lines(self):
        self.assertLessEqual(len([line for line in diff_lines() if line.startswith("+")]), 6)

    def test_commands_print_what_is_shown(self):
        shown = [(script, output) for script, output in shell_blocks() if output]
        self.assertEqual(len(shown), 2)
        for script, output in shown:
            result = self.shell(script)
            self.assertEqual(result.returncode, 0, result.stdout)
            self.assertEqual(without_chance(result.stdout), without_chance(output), script)

    def test_the_demo_builds_nothing_twice_and_reaches_its_score(self):
        (screen,) = [block.text for block in all_blocks() if "this model" in block.text]
        result = self.shell("make demo")
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertIn("ninja: no work to do.", result.stdout)
        for line in screen.partition("\n\n")[0].splitlines():
            if not line.startswith("this model"):
                self.assertIn(f"{line}\n", result.stdout)
        (rouge2,) = re.findall(r"^this model +\S+  (\S+)", result.stdout, re.M)
        self.assertGreaterEqual(float(rouge2), 0.80)
        self.assertEqual(len(re.findall("^dialogue  .*\n(?: .*\n)*reference .*\npredicted ", result.stdout, re.M)), 3)
        self.assertRegex(result.stdout, r"(?m)^folder    .*/runs/summarize-train-")
        self.assertRegex(result.stdout, r"(?m)^wrote 256 summaries to runs/latest/submission.csv\n(tandem: .*\n)*next      \S+/tandem summarize train ")

    def test_commands_without_output_run(self):
        scripts = [script for script, output in shell_blocks() if not output]
        self.assertEqual(scripts, ["make demo\n", "make test\nmake help\n", "!tandem run train.py\n"])
        (self.folder / "train.py").touch()
        for command in "".join(scripts[1:]).splitlines():  # the demo has its own test
            # `make test` would run this test again, so it is a dry run.
            result = self.shell(command.replace("make test", "make -n test").lstrip("!"))
            self.assertEqual(result.returncode, 0, f"{command}\n{result.stdout}")

    def test_the_translation_shows_the_same_commands(self):
        translation = (SOURCE / "README.zh-CN.md").read_text()
        for script, _ in shell_blocks():
            self.assertIn(f"```sh\n{script}```", translation)
        for name in reading_line():
            self.assertIn(f"`{name}`", translation)

    def test_every_file_it_names_exists(self):
        links = re.findall(r"\]\(([^)#:]+)\)", README)
        for name in links + reading_line():
            self.assertTrue((SOURCE / name).exists(), name)

    def test_the_reading_line_leads_to_the_sum_of_the_all_reduce(self):
        files = reading_line()
        self.assertEqual(len(files), 6)
        self.assertEqual(files[-1], "src/comm/shm/exchange.cpp")
        self.assertIn("case Collective::AllReduce: return reduce(", (SOURCE / files[-1]).read_text())
        self.assertIn("`src/comm/shm/tree.h` sums", README)
        self.assertIn("return a + b;", (SOURCE / "src/comm/shm/tree.h").read_text())


if __name__ == "__main__":
    unittest.main()

"""docs/segment.md is true: its commands and flags exist, its links lead somewhere, and its errors are said."""

import pathlib
import re
import shlex
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "launch"))
from doc_links import lost_targets  # noqa: E402
from support import SOURCE, LaunchTest  # noqa: E402

PAGE = (SOURCE / "docs" / "segment.md").read_text()
COMMANDS = ("prepare", "train", "evaluate", "predict", "score", "export", "shapes")
OF_LAUNCHERS = {"--nproc_per_node", "--standalone", "--use_env"}
OF_THE_GUIDE = {"--batchsize", "--logdir", "--model_path", "--distributed", "--world_size", "--local_rank", "--dist_url", "--shrink_factor"}

REFUSED = {
    "train --preset demo --l-pseudo 1 --dataset ScribbleOnly": "l-pseudo is 1, but there are no pseudo labels",
    "train --preset demo --sync-bn on --shards 2": "sync-bn is on in exact mode",
    "train --preset demo --dist_url tcp://localhost:23456": "--dist_url is tcp://localhost:23456, and only env:// is supported",
}


class Page(LaunchTest):
    def help_of(self, command: str) -> str:
        return self.run_tandem("segment", command, "--help").stdout

    def test_links_lead_somewhere(self):
        self.assertEqual(lost_targets(PAGE, SOURCE), [])

    def test_commands_are_those_of_the_program(self):
        said = self.run_tandem("segment", "--help").stdout
        for command in COMMANDS:
            self.assertRegex(said, rf"(?m)^\s+{command}\b")
            self.assertIn(f"`tandem segment {command}`", PAGE)

    def test_flags_are_known(self):
        known = set()
        for command in COMMANDS:
            known |= set(re.findall(r"--[a-z][\w.-]*", self.help_of(command)))
        for flag in set(re.findall(r"(?<![\w-])--[a-z][\w.-]*[a-z]", PAGE)) - OF_LAUNCHERS - OF_THE_GUIDE:
            self.assertIn(flag.replace("_", "-"), known, flag)

    def test_command_lines_are_understood(self):
        lines = [line for block in re.findall(r"^```sh\n(.*?)^```$", PAGE, re.M | re.S) for line in block.splitlines()]
        trainings = [shlex.split(line)[2:] for line in lines if line.startswith("tandem segment train")]
        self.assertGreaterEqual(len(trainings), 3)
        for words in trainings:
            result = self.run_tandem("segment", *words, "--device", "cpu", "--dump-config")
            self.assertEqual(result.returncode, 0, (words, result.stderr))

    def test_errors_are_said(self):
        for words, message in REFUSED.items():
            result = self.run_tandem("segment", *words.split(), "--device", "cpu")
            self.assertNotEqual(result.returncode, 0, words)
            self.assertIn(f"error: {message}", result.stderr)
            self.assertIn("hint: ", result.stderr)
            self.assertIn(message.replace("tcp://localhost:23456", "tcp://..."), PAGE)


if __name__ == "__main__":
    unittest.main()

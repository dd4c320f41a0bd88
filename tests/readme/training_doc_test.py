"""Checks docs/training.md: it shows the example and the output of its commands."""

import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "launch"))
from support import BUILD, SOURCE, LaunchTest  # noqa: E402

PAGE = (SOURCE / "docs" / "training.md").read_text()


class TrainingDoc(LaunchTest):
    def test_shows_the_example_as_it_is(self):
        [(path, code)] = re.findall(r"^`(examples/\S+)`:\n\n```cpp\n(.*?)```", PAGE, re.M | re.S)
        self.assertEqual(code, (SOURCE / path).read_text())

    def model(self, folder: str) -> bytes:
        return (self.folder / folder / "step-00000200" / "model.safetensors").read_bytes()

    def test_shows_what_it_prints_and_ends_in_the_same_bytes_on_one_rank(self):
        shown = re.findall(r"```sh\ntandem (run [^\n]*)\n```\n\n```text\n(.*?)```", PAGE, re.S)
        self.assertEqual(len(shown), 2)
        for command, output in shown:
            result = self.run_tandem(*command.replace("build/bin", str(BUILD / "bin")).split())
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(result.stdout, output)
        whole = self.run_tandem("run", str(BUILD / "bin" / "examples" / "07_resume"), "--shards", "4", "--folder", "whole")
        self.assertEqual(whole.returncode, 0, whole.stderr)
        self.assertEqual(self.model("whole"), self.model("checkpoints"))

    def test_links_to_what_is_there(self):
        for target in re.findall(r"\]\(([\w-]+\.md)\)", PAGE):
            self.assertTrue((SOURCE / "docs" / target).exists(), target)


if __name__ == "__main__":
    unittest.main()

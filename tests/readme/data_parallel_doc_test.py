"""Checks docs/data-parallel.md: it shows the examples and their output."""

import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "launch"))
from support import BUILD, SOURCE, LaunchTest  # noqa: E402

PAGE = (SOURCE / "docs" / "data-parallel.md").read_text()


class DataParallelDoc(LaunchTest):
    def test_shows_the_examples_as_they_are(self):
        shown = re.findall(r"^`(examples/\S+)`:\n\n```cpp\n(.*?)```", PAGE, re.M | re.S)
        self.assertEqual(len(shown), 2)
        for path, code in shown:
            self.assertEqual(code, (SOURCE / path).read_text(), path)

    def test_shows_what_they_print(self):
        shown = re.findall(r"```sh\ntandem (run [^\n]*)\n```\n\n```text\n(.*?)```", PAGE, re.S)
        self.assertEqual(len(shown), 2)
        for command, output in shown:
            words = command.replace("build/bin", str(BUILD / "bin")).split()
            result = self.run_tandem(*words)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(result.stdout, output)

    def test_has_no_placeholders(self):
        self.assertEqual(re.findall(r"@\w+@", PAGE), [])

    def test_names_files_and_sections_that_exist(self):
        headings = {re.sub(r"[^\w -]", "", text).strip().lower().replace(" ", "-") for text in re.findall(r"^#+ (.*)$", PAGE, re.M)}
        for anchor in re.findall(r"\]\(#([^)]+)\)", PAGE):
            self.assertIn(anchor, headings)


if __name__ == "__main__":
    unittest.main()

"""docs/how-to.md and docs/install.md show code of programs that tests/install builds and runs."""

import pathlib
import re
import sys
import textwrap
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "launch"))
from doc_links import lost_targets  # noqa: E402
from support import SOURCE  # noqa: E402

PROGRAMS = SOURCE / "tests" / "install" / "programs"


def words_of(code: str) -> str:
    """The layout of a page may differ from that of the file."""
    return re.sub(r"\s+", "", code)


class HowToDoc(unittest.TestCase):
    def test_shows_code_of_the_programs(self):
        programs = [words_of(path.read_text()) for path in PROGRAMS.glob("*.cpp")]
        page = (SOURCE / "docs" / "how-to.md").read_text()
        blocks = re.findall(r"^```cpp\n(.*?)^```$", page, re.M | re.S)
        self.assertGreater(len(blocks), 5)
        for block in blocks:
            self.assertTrue(any(words_of(block) in program for program in programs), block)

    def test_shows_the_precompiled_header_of_the_programs(self):
        page = (SOURCE / "docs" / "install.md").read_text()
        (block,) = [code for code in re.findall(r"^ *```cmake\n(.*?)^ *```$", page, re.M | re.S) if "precompile" in code]
        self.assertIn(textwrap.dedent(block), (PROGRAMS / "CMakeLists.txt").read_text())

    def test_links_to_what_is_there(self):
        for name in ("how-to.md", "install.md"):
            self.assertEqual(lost_targets((SOURCE / "docs" / name).read_text(), SOURCE), [], name)


if __name__ == "__main__":
    unittest.main()

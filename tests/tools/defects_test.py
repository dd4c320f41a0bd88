"""The patches of tests/defects apply to this tree, so that `make defects` can run at any time."""

import subprocess
import unittest
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]


class Patches(unittest.TestCase):
    def test_apply_to_this_tree(self):
        patches = sorted((SOURCE / "tests" / "defects").glob("*.patch"))
        self.assertGreaterEqual(len(patches), 13)
        for patch in patches:
            with self.subTest(patch.stem):
                result = subprocess.run(["git", "apply", "--check", patch], cwd=SOURCE, capture_output=True, text=True)
                self.assertEqual(result.stderr, "", "make the patch again from the code as it is now")


if __name__ == "__main__":
    unittest.main()

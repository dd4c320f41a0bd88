"""The summary of a test run: nothing that did not run counts as passed, and an empty run is red."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

RUN_TESTS = pathlib.Path(__file__).parents[2] / "tools" / "run_tests.py"


def run_tests(*tests: str) -> tuple[int, list[str]]:
    """Exit code and last lines for a build folder that holds these CTest commands."""
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "CTestTestfile.cmake").write_text("\n".join(tests))
        result = subprocess.run([sys.executable, RUN_TESTS, folder], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                text=True, timeout=60)
        return result.returncode, result.stdout.splitlines()


GOOD = 'add_test(good "true")'
BAD = 'add_test(bad "false")'
GPU = """add_test(gpu "echo" "not run: needs a GPU")
set_tests_properties(gpu PROPERTIES SKIP_REGULAR_EXPRESSION "not run: ")"""
ZSH = """add_test(zsh "echo" "test_x ... skipped 'zsh is not installed'")
set_tests_properties(zsh PROPERTIES SKIP_REGULAR_EXPRESSION "skipped")"""


class RunTests(unittest.TestCase):
    def test_passing_tests_are_green(self):
        code, lines = run_tests(GOOD)
        self.assertEqual((code, lines[-1]), (0, "tests: 1 passed, 0 failed, 0 skipped"))

    def test_a_failing_test_is_red_and_named(self):
        code, lines = run_tests(GOOD, BAD)
        self.assertNotEqual(code, 0)
        self.assertEqual(lines[-2:], ["failed: bad", "tests: 1 passed, 1 failed, 0 skipped"])

    def test_a_skipped_test_is_counted_apart_with_its_reason(self):
        code, lines = run_tests(GOOD, GPU, ZSH)
        self.assertEqual(code, 0)
        self.assertEqual(lines[-1], "tests: 1 passed, 0 failed, 2 skipped")
        self.assertEqual(set(lines[-3:-1]), {"not run: 1 (needs a GPU)", "not run: 1 (zsh is not installed)"})

    def test_a_run_of_nothing_but_skipped_tests_is_red(self):
        code, lines = run_tests(GPU)
        self.assertNotEqual(code, 0)
        self.assertEqual(lines[-1], "tests: 0 passed, 0 failed, 1 skipped")

    def test_an_empty_run_is_red(self):
        self.assertNotEqual(run_tests()[0], 0)

    def test_a_test_program_that_is_not_there_has_failed(self):
        code, lines = run_tests(GOOD, 'add_test(missing "/no/such/program")')
        self.assertNotEqual(code, 0)
        self.assertEqual(lines[-1], "tests: 1 passed, 1 failed, 0 skipped")

    def test_a_disabled_test_has_failed(self):
        code, lines = run_tests(GOOD, 'add_test(off "true")', "set_tests_properties(off PROPERTIES DISABLED TRUE)")
        self.assertNotEqual(code, 0)
        self.assertEqual(lines[-1], "tests: 1 passed, 1 failed, 0 skipped")


if __name__ == "__main__":
    unittest.main()

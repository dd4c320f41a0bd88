"""Workers find each other under plain torchrun, whose agent hosts the store, as they do under `tandem run`."""

import importlib.util
import os
import pathlib
import subprocess
import sys
import unittest

EXAMPLE = pathlib.Path(os.environ["TANDEM_BUILD"]) / "bin" / "examples" / "01_hello_ranks"


class Torchrun(unittest.TestCase):
    def run_two_ranks(self, *arguments: str) -> subprocess.CompletedProcess:
        if importlib.util.find_spec("torch") is None:
            self.skipTest(f"{sys.executable} has no torchrun")
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", *arguments]
        result = subprocess.run(command, capture_output=True, text=True, timeout=300)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def test_ranks_meet_in_the_store_of_the_agent(self):
        self.assertIn("together: 500500", self.run_two_ranks("--no-python", str(EXAMPLE)).stdout)


if __name__ == "__main__":
    unittest.main()

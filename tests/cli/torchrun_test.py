"""Workers connect under plain torchrun, whose agent hosts the store, as under `tandem run`."""

import importlib.util
import os
import pathlib
import subprocess
import sys
import unittest

EXAMPLES = pathlib.Path(os.environ["TANDEM_BUILD"]) / "bin" / "examples"


class Torchrun(unittest.TestCase):
    def run_two_ranks(self, *arguments: str) -> subprocess.CompletedProcess:
        if importlib.util.find_spec("torch") is None:
            self.skipTest(f"{sys.executable} has no torchrun")
        # As --standalone does it, but by number: torchrun cannot start where the name localhost is not known.
        meeting = ["--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0", "--local-addr", "127.0.0.1"]
        command = [sys.executable, "-m", "torch.distributed.run", *meeting, "--nproc-per-node", "2", *arguments]
        result = subprocess.run(command, capture_output=True, text=True, timeout=300,
                                env={**os.environ, "CUDA_VISIBLE_DEVICES": ""})
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def test_ranks_meet_in_the_store_of_the_agent(self):
        self.assertIn("together: 500500", self.run_two_ranks("--no-python", str(EXAMPLES / "01_hello_ranks")).stdout)

    def test_ranks_train_one_model(self):
        self.assertIn("2 replicas, equal bit for bit", self.run_two_ranks("--no-python", str(EXAMPLES / "03_ddp")).stdout)


if __name__ == "__main__":
    unittest.main()

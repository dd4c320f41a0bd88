"""Notebook cells, run by an actual kernel: their output, and clean-up when they are interrupted."""

import importlib.util
import os
import queue
import re
import subprocess
import sys
import time
import unittest

from support import LIMIT, TANDEM, LaunchTest, processes_with, wait_until

SECOND = 1.0  # after a cell has been interrupted no rank is left

# Two ranks, each with a child, and a child in a session of its own.
FAMILY = """
import os, subprocess, time
subprocess.Popen(["sleep", "1000"])
subprocess.Popen(["sleep", "1000"], start_new_session=True)
open(f"ready{os.environ['RANK']}", "w").close()
time.sleep(1000)
"""

# A bar that would be drawn a hundred times.
PROGRESS = """
import sys
for step in range(100):
    print(f"\\rstep {step}/100", end="", flush=True)
print("\\nterminal:", sys.stdout.isatty())
"""


class NotebookTest(LaunchTest):
    shell = "sh"

    def setUp(self):
        super().setUp()
        for module in ("ipykernel", "jupyter_client"):
            if importlib.util.find_spec(module) is None:
                self.skipTest(f"{sys.executable} has no {module}")
        from jupyter_client.manager import KernelManager
        self.env |= {"PATH": f"{TANDEM.parent}:{os.path.dirname(sys.executable)}:{self.env['PATH']}", "SHELL": self.shell,
                     "IPYTHONDIR": str(self.folder / "ipython"), "JUPYTER_RUNTIME_DIR": str(self.folder / "runtime")}
        self.kernel = KernelManager(connection_file=str(self.folder / "kernel.json"))
        self.kernel.start_kernel(env=self.env, cwd=str(self.folder), stderr=subprocess.DEVNULL)
        self.addCleanup(self.end_kernel)
        self.client = self.kernel.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=LIMIT)
        self.write("family.py", FAMILY)

    def end_kernel(self):
        if self.client is not None:
            self.client.stop_channels()
        if self.kernel.has_kernel:
            self.kernel.shutdown_kernel(now=True)
        self.kernel.cleanup_resources()

    def begin_cell(self, code: str) -> str:
        return self.client.execute(code)

    def end_cell(self, request: str) -> str:
        """The output of a cell when it has ended."""
        shown = ""
        end = time.monotonic() + LIMIT
        while True:
            try:
                message = self.client.get_iopub_msg(timeout=max(0.1, end - time.monotonic()))
            except queue.Empty:
                self.fail(f"the cell does not end; it has shown {shown!r}")
            if message["parent_header"].get("msg_id") != request:
                continue
            if message["msg_type"] == "stream":
                shown += message["content"]["text"]
            if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                return shown.replace("\r\n", "\n")

    def cell(self, code: str) -> str:
        return self.end_cell(self.begin_cell(code))

    def begin_family(self, command: str = "!tandem run -n 2 family.py") -> str:
        request = self.begin_cell(command)
        wait_until(lambda: all((self.folder / f"ready{rank}").exists() for rank in range(2)), "both ranks have begun")
        self.assertGreaterEqual(len(self.ranks()), 6)
        return request

    def ranks(self) -> list[int]:
        """Processes of the job without the kernel and the launcher."""
        return sorted({*processes_with(self.mark)} & {*processes_with("TANDEM_RUN_ID=")})

    def assert_no_rank_left(self) -> None:
        wait_until(lambda: not self.ranks(), "no rank is left", limit=SECOND)


class Cell(NotebookTest):
    def test_shows_the_output(self):
        shown = self.cell("!tandem run -n 2 sh -c 'echo hello from $RANK of $WORLD_SIZE; echo and more >&2'")
        self.assertIn("hello from 0 of 2\n", shown)
        self.assertIn("and more\n", shown)
        self.assertRegex(shown, r"tandem: 2 ranks, \d+\.\d s, all succeeded\n$")
        self.assertEqual(self.cell("print(_exit_code)"), "0\n")
        self.assertEqual(self.cell("!tandem run -q sh -c 'exit 3' 2>/dev/null\nprint(_exit_code)"), "3\n")

    def test_that_fails_says_so_in_its_last_line_with_the_exit_code(self):
        self.write("broken.py", "raise ValueError('shard 7')")
        for command, code in (("-n 2 broken.py", 1), ("-n 2 sh -c 'kill -9 $$'", 137), ("./not_there", 4), ("--bogus true", 2),
                              ("--expect-connect -n 2 true", 5)):
            shown = self.cell(f"!tandem run {command}")
            self.assertRegex(shown, rf"\ntandem: .*\bexit code {code}\n$")
            self.assertLessEqual(shown.count("ValueError: shard 7"), 1)

    def test_shows_progress_as_plain_lines(self):
        self.write("progress.py", PROGRESS)
        shown = self.cell("!tandem run -q progress.py")
        self.assertEqual(shown, "step 0/100\nstep 99/100\nterminal: False\n")

    def test_that_is_interrupted_leaves_no_rank(self):
        request = self.begin_family()
        self.kernel.interrupt_kernel()
        self.end_cell(request)
        self.assert_no_rank_left()
        self.assertEqual(self.cell("print('the kernel lives')"), "the kernel lives\n")

    def test_that_is_interrupted_leaves_no_rank_that_ignores_it(self):
        self.write("stubborn.py", "import signal\nfor name in ('INT', 'TERM', 'HUP'): signal.signal(getattr(signal, 'SIG' + name), signal.SIG_IGN)\n" + FAMILY)
        request = self.begin_family("!tandem run -n 2 stubborn.py")
        self.kernel.interrupt_kernel()
        self.end_cell(request)
        self.assert_no_rank_left()

    def test_that_is_interrupted_as_a_function_leaves_no_rank(self):
        request = self.begin_family("import subprocess\nsubprocess.run(['tandem', 'run', '-n', '2', 'family.py'])")
        self.kernel.interrupt_kernel()
        self.end_cell(request)
        self.assert_no_rank_left()

    def test_leaves_no_rank_when_the_kernel_is_shut_down(self):
        self.begin_family()
        self.kernel.shutdown_kernel(now=False)
        self.assert_no_rank_left()

    def test_leaves_no_rank_when_the_kernel_is_killed(self):
        self.begin_family()
        self.kernel.shutdown_kernel(now=True)
        self.assert_no_rank_left()


class Bash(NotebookTest):
    """With a shell between the kernel and tandem that does not exec."""

    shell = "bash"

    def test_that_is_interrupted_leaves_no_rank(self):
        request = self.begin_family("!tandem run -n 2 family.py; echo after")
        self.kernel.interrupt_kernel()
        self.end_cell(request)
        self.assert_no_rank_left()


class Detached(NotebookTest):
    def test_job_goes_on_after_its_cell_and_other_cells_see_it(self):
        self.write("train.py", "import time\nprint('epoch 1', flush=True)\nopen('begun', 'w').close()\n"
                               "def all_reduce():\n    time.sleep(1000)\nall_reduce()\n")
        shown = self.cell("!tandem run --detach -n 2 train.py")
        name = re.search(r"(?m)^(train-[0-9a-f]+)$", shown)[1]
        wait_until(lambda: (self.folder / "begun").exists(), "the job goes on")
        self.assertRegex(self.cell("!tandem ps"), rf"{name} +running +2 ")
        wait_until(lambda: "epoch 1" in self.cell("!tandem logs"), "the log is there")
        wait_until(lambda: "in all_reduce" in self.cell("!tandem stack"), "the ranks stand in their function")
        self.assertRegex(self.cell(f"!tandem stack {name}"), r"ranks 0, 1\n(?s:.*)line 5 in all_reduce")
        self.assertRegex(self.cell(f"!tandem stop {name}"), rf"tandem: {name} stopped after ")
        self.assertFalse(self.ranks())
        self.assertRegex(self.cell("!tandem ps --all"), rf"{name} +stopped ")


if __name__ == "__main__":
    unittest.main()

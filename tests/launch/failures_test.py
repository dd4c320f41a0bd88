"""The failure report: the rank that caused the failure, its error message, and a hint."""

import importlib.util
import json
import os
import pathlib
import signal
import subprocess
import sys
import unittest

from support import LIMIT, TANDEM, LaunchTest

# Rank 1 raises while the others wait for it, and is gone last: they lose their connection, and fail or are stopped before it.
GLOO = """
import atexit, os, sys, time
import torch, torch.distributed as dist
rank = int(os.environ["RANK"])
open(f"pid{rank}", "w").write(str(os.getpid()))
dist.init_process_group("gloo")
dist.barrier()
if rank == 1:
    def linger():
        while any(os.path.exists("/proc/" + open(f"pid{other}").read()) for other in (0, 2, 3)):
            time.sleep(0.01)  # poll
    atexit.register(linger)
    atexit.register(dist.destroy_process_group)
    raise ValueError("the third shard is broken")
dist.all_reduce(torch.ones(10))
"""

HOG = """
import sys
held = []
print("eating", flush=True)
while True:
    held.append(bytearray(b"x" * 1_000_000))
"""


class Cause(LaunchTest):
    def test_is_the_rank_that_raised_though_others_fail_before_it_is_gone(self):
        if importlib.util.find_spec("torch") is None:
            self.skipTest(f"{sys.executable} has no torch")
        self.write("train.py", GLOO)
        result = self.run_ranks("-n", "4", sys.executable, "train.py", env={"GLOO_SOCKET_IFNAME": "lo"})
        self.assertRegex(result.stderr, r"\ntandem: rank 1 failed: exit code 1 ")
        self.assertIn("ValueError: the third shard is broken", result.stderr)
        self.assertIn('File "' + str(self.folder / "train.py"), result.stderr)
        self.assertEqual(result.returncode, 1)

    def test_is_printed_once_if_the_rank_is_shown(self):
        self.write("broken.py", "import os, sys\nif os.environ['RANK'] == sys.argv[1]: raise ValueError('shard 7')\nopen('/dev/zero').read()")
        for streams in ({}, {"capture_output": False, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}):
            for flags, rank, count in (([], "0", 1), ([], "1", 1), (["--tee", "all"], "0", 2), (["-r", "0:2"], "0", 1)):
                result = self.run_ranks("-n", "2", *flags, sys.executable, "broken.py", rank, **streams)
                told = result.stdout + (result.stderr or "")
                self.assertEqual(told.count("ValueError: shard 7"), count, told)
                self.assertIn(f"tandem: rank {rank} failed: exit code 1 ", told)
        result = self.run_ranks("-n", "2", "sh", "-c", "[ $RANK = 1 ] || { echo no disk >&2; exit 3; }")
        self.assertEqual(result.stderr.count("no disk"), 1, result.stderr)

    def test_keeps_an_exit_code_that_comes_late(self):
        script = ("import os, sys, time\n"
                  "if os.environ['RANK'] == '0':\n"
                  "    while not os.path.exists('raised'): time.sleep(0.01)  # poll\n"
                  "    raise ConnectionResetError(104, 'Connection reset by peer')\n"
                  "import atexit\n"
                  "def linger():\n"
                  "    open('raised', 'w').close()\n"
                  "    while os.path.exists(f'/proc/{os.getppid()}') and not os.path.exists('over'): time.sleep(0.01)  # poll\n"
                  "def late(kind, value, trace):\n"
                  "    sys.__excepthook__(kind, value, trace)\n"
                  "    sys.stderr.flush(); open('raised', 'w').close(); time.sleep(0.5); os._exit(42)  # poll\n"
                  "sys.excepthook = late\n"
                  "raise KeyError('mine')\n")
        self.write("late.py", script)
        result = self.run_ranks("-n", "2", sys.executable, "late.py")
        self.assertEqual(result.returncode, 42, result.stderr)
        self.assertIn("KeyError: 'mine'", result.stderr)

    def test_is_a_rank_that_has_not_even_spoken_when_the_others_lose_it(self):
        self.write("slow.py", "import os, sys, time\n"
                   "if os.environ['RANK'] != '1':\n"
                   "    while not os.path.exists('closing'): time.sleep(0.01)  # poll\n"
                   "    raise ConnectionResetError(104, 'Connection reset by peer')\n"
                   "try:\n    raise ValueError('the third shard is broken')\n"
                   "finally:\n"
                   "    open('closing', 'w').close()\n"
                   "    while sum('\"event\":\"exit\"' in line for line in open(os.environ['TANDEM_LOG_DIR'] + '/launch.jsonl')) < 1:\n"
                   "        time.sleep(0.01)  # poll\n")
        result = self.run_ranks("-n", "3", sys.executable, "slow.py")
        self.assertRegex(result.stderr, r"\ntandem: rank 1 failed: exit code 1 ")
        self.assertIn("ValueError: the third shard is broken", result.stderr)

    def test_is_not_a_rank_that_was_well_whatever_it_had_logged(self):
        script = ("import os, time, traceback\n"
                  "if os.environ['RANK'] == '1':\n"
                  "    while not os.path.exists('logged'): time.sleep(0.01)  # poll\n"
                  "    os._exit(3)\n"
                  "try: 1 / 0\n"
                  "except ZeroDivisionError: traceback.print_exc()\n"
                  "open('logged', 'w').close()\ntime.sleep(1000)  # poll\n")
        self.write("well.py", script)
        result = self.run_ranks("-n", "2", sys.executable, "well.py")
        self.assertRegex(result.stderr, r"\ntandem: rank 1 failed: exit code 3 ")
        self.assertEqual(result.returncode, 3)

    def test_is_told_by_an_error_file_alone(self):
        script = "import sys, os\nsys.stderr = open(os.devnull, 'w')\nsys.stdout = sys.stderr\nraise RuntimeError('said nowhere')"
        self.write("silent.py", script)
        result = self.run_ranks(sys.executable, "silent.py")
        self.assertIn("RuntimeError: said nowhere", result.stderr)

    def test_is_not_that_of_an_earlier_job_with_the_same_log_folder(self):
        logs = {"TANDEM_LOG_DIR": str(self.folder / "logs")}
        self.assertIn("ValueError: old", self.run_ranks(self.write("old.py", "raise ValueError('old')"), env=logs).stderr)
        self.assertTrue((self.folder / "logs" / "rank0.error0.json").exists())
        self.assertNotIn("ValueError", self.run_ranks("sh", "-c", "exit 3", env=logs).stderr)

    def test_is_passed_on_in_torchruns_format(self):
        error = self.folder / "outer.json"
        self.run_ranks("-n", "2", sys.executable, "-c", "raise ValueError('boom')", env={"TORCHELASTIC_ERROR_FILE": str(error)})
        told = json.loads(error.read_text())["message"]
        self.assertEqual((told["message"], told["errorCode"]), ("ValueError: boom", 1))
        self.assertIn("Traceback", told["extraInfo"]["py_callstack"])

    def test_does_not_need_the_injected_module(self):
        result = self.run_ranks("--no-inject", sys.executable, "-c", "raise ValueError('boom')")
        self.assertIn("ValueError: boom", result.stderr)
        self.assertFalse((self.job_folder() / "python").exists())

    def test_is_the_what_of_a_cpp_program(self):
        source = self.write("throws.cpp", '#include <stdexcept>\nint main() { throw std::runtime_error("shape 3 is not 4"); }\n')
        subprocess.run(["c++", source, "-o", self.folder / "throws"], check=True, timeout=LIMIT)
        result = self.run_ranks("-n", "2", "./throws")
        self.assertEqual(result.returncode, 128 + signal.SIGABRT)
        self.assertIn("shape 3 is not 4", result.stderr)
        self.assertIn("signal 6 (Aborted)", result.stderr)

    def test_is_told_with_the_last_lines_where_there_is_no_error(self):
        result = self.run_ranks("sh", "-c", "echo loading data; echo it is not there >&2; exit 3")
        self.assertRegex(result.stderr, r"tandem: rank 0 failed: exit code 3 ")
        self.assertIn("it is not there", result.stderr.split("failed: exit code 3")[1])


class Words(LaunchTest):
    def test_for_each_signal(self):
        for name in ("SEGV", "ABRT", "BUS", "FPE", "ILL", "KILL", "TERM", "XCPU", "PIPE", "TRAP", "SYS", "ALRM"):
            number = getattr(signal, f"SIG{name}")
            result = self.run_ranks("sh", "-c", f"kill -{name} $$")
            self.assertEqual(result.returncode, 128 + number, name)
            self.assertIn(f"rank 0 failed: signal {number} ({signal.strsignal(number)}", result.stderr, name)
            self.assertRegex(result.stderr, r"\nhint: \S", name)

    def test_for_a_missing_module(self):
        result = self.run_ranks("-n", "2", sys.executable, "-c", "import ultralitics")
        self.assertIn("ModuleNotFoundError: No module named 'ultralitics'", result.stderr)
        self.assertRegex(result.stderr, r"hint: .*ultralitics")

    def test_for_a_missing_program(self):
        self.assert_error(self.run_ranks("-n", "2", "no-such-program"), 4, "no-such-program", "PATH", "./no-such-program")

    def test_for_a_port_in_use_inside_a_rank(self):
        if importlib.util.find_spec("torch") is None:
            self.skipTest(f"{sys.executable} has no torch")
        script = ("import socket, torch.distributed as dist\n"
                  "taken = socket.create_server(('', 0))\n"
                  "dist.TCPStore('127.0.0.1', taken.getsockname()[1], 1, True)\n")
        result = self.run_ranks(sys.executable, "-c", script)
        self.assertRegex(result.stderr, r"(?i)address already in use")
        self.assertRegex(result.stderr, r"hint: .*port")

    def test_for_memory_that_the_kernel_took_back(self):
        cgroup = self.limited_cgroup(200 << 20)
        self.write("hog.py", HOG)
        command = ["sh", "-c", f'echo $$ >"{cgroup}/cgroup.procs" && exec "$@"', "sh", TANDEM, "run", "-n", "2", sys.executable, "hog.py"]
        result = subprocess.run(command, env=self.env, cwd=self.folder, capture_output=True, text=True, timeout=2 * LIMIT)
        self.assertEqual(result.returncode, 137, result.stderr)
        self.assertRegex(result.stderr, r"signal 9 \(Killed\)")
        self.assertRegex(result.stderr, r"hint: .*memory")
        self.assertIn("209.7MB" if "209.7MB" in result.stderr else "200", result.stderr)

    def limited_cgroup(self, limit: int) -> pathlib.Path:
        for parent, name in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
            group = pathlib.Path(parent) / f"tandem-test-{os.getpid()}"
            try:
                group.mkdir()
            except OSError:
                continue
            self.addCleanup(self.remove_cgroup, group)
            try:
                (group / name).write_text(str(limit))
                return group
            except OSError:
                continue
        self.skipTest("no right to make a cgroup with a memory limit")

    def remove_cgroup(self, group: pathlib.Path) -> None:
        self.kill_what_is_left()
        self.assert_nothing_left()
        group.rmdir()


if __name__ == "__main__":
    unittest.main()

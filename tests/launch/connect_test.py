"""Ranks that never connect to each other are told apart from those that do, and a launcher inside of a rank is named."""

import importlib.util
import json
import subprocess
import sys
import unittest

from support import BUILD, LIMIT, LaunchTest

# Trains until the file `end` appears.
APART = """
import os, time, torch
model = torch.nn.Linear(2, 1)
last = time.monotonic() + 60
while not os.path.exists("end") and time.monotonic() < last:
    model(torch.ones(1, 2)).sum().backward()
    time.sleep(0.05)  # poll
"""

# Meets at MASTER_PORT, or at a place of its own.
TOGETHER = """
import os, sys, time, torch, torch.distributed as dist
place = sys.argv[1] if len(sys.argv) > 1 else "env://"
dist.init_process_group("gloo", init_method=place, rank=int(os.environ["RANK"]), world_size=int(os.environ["WORLD_SIZE"]))
time.sleep(float(sys.argv[2]) if len(sys.argv) > 2 else 0)
total = torch.ones(1)
dist.all_reduce(total)
assert total.item() == 2
dist.barrier()
os._exit(0)
"""

# Rank 0 makes a process group of its own, at MASTER_PORT.
ALONE = """
import os, torch, torch.distributed as dist
if os.environ["RANK"] == "0":
    dist.init_process_group("gloo", rank=0, world_size=1)
exec(open("apart.py").read())
os._exit(0)
"""

# A rank that starts two workers, which meet at a port of their own.
SPAWN = """
import os, socket, time, torch, torch.distributed as dist, torch.multiprocessing as multiprocessing
def work(rank, port):
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    last = time.monotonic() + 60
    while not os.path.exists("end") and time.monotonic() < last:
        time.sleep(0.05)  # poll
    dist.barrier()
    os._exit(0)
if __name__ == "__main__":
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    multiprocessing.spawn(work, (port,), nprocs=2)
"""

ACCELERATE = """
import json, os, torch
from accelerate import Accelerator
accelerator = Accelerator()
torch.manual_seed(0)
model = accelerator.prepare(torch.nn.Linear(2, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
rank = int(os.environ["RANK"])
for _ in range(3):
    accelerator.backward(model(torch.full((1, 2), rank + 1.0)).square().sum())  # other data on each rank
    optimizer.step()
    optimizer.zero_grad()
told = [accelerator.num_processes, [parameter.tolist() for parameter in model.parameters()]]
json.dump(told, open(f"told{rank}", "w"))
os._exit(0)
"""


class ConnectTest(LaunchTest):
    def setUp(self):
        super().setUp()
        for module in ("torch", "accelerate"):
            if importlib.util.find_spec(module) is None:
                self.skipTest(f"{sys.executable} has no {module}")
        self.env |= {"PYTHON_EXEC": sys.executable, "GLOO_SOCKET_IFNAME": "lo", "HF_HOME": str(self.folder / "hf")}
        for name, text in (("apart.py", APART), ("together.py", TOGETHER), ("alone.py", ALONE), ("spawn.py", SPAWN), ("acc.py", ACCELERATE)):
            self.write(name, text)

    def start_ranks(self, *arguments) -> subprocess.Popen:
        return self.start("run", "-n", "2", "--connect-timeout", "500ms", *arguments, stdout=subprocess.DEVNULL)

    def read_until(self, process: subprocess.Popen, *facts: str) -> str:
        """Lines of standard error, to the first that has all of these."""
        told = ""
        while line := process.stderr.readline():
            told += line
            if all(fact in line for fact in facts):
                return told
        raise AssertionError(f"{facts} never came: {told}")

    def finish(self, process: subprocess.Popen) -> str:
        self.write("end", "")
        return process.communicate(timeout=LIMIT)[1]

    def events(self) -> list[dict]:
        return [json.loads(line) for line in (self.job_folder() / "launch.jsonl").read_text().splitlines()]

    def result(self, *arguments, code=0) -> dict:
        result = self.run_ranks("-n", "2", "--json", *arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, capture_output=False)
        self.assertEqual(result.returncode, code, result.stderr)
        return json.loads(result.stderr)


class Apart(ConnectTest):
    def test_ranks_are_told_of_while_they_run_and_at_the_end(self):
        process = self.start_ranks("apart.py")
        told = self.read_until(process, "tandem: ranks 0, 1 ", "connect")
        self.assertNotIn("never", told)  # they still may
        self.assertIn("init_process_group", self.read_until(process, "--no-expect-connect"))
        rest = self.finish(process)
        self.assertRegex(rest, r"tandem: ranks 0, 1 never connect.* 2 separate models")
        self.assertNotIn("hint", rest)  # it was given
        self.assertNotIn("all succeeded\n", rest)
        self.assertEqual(process.returncode, 0)
        self.assertEqual(sum(event["event"] == "unconnected" for event in self.events()), 2)

    def test_ranks_are_an_error_where_a_connection_is_expected(self):
        process = self.start_ranks("--quiet", "--expect-connect", "apart.py")
        self.read_until(process, "tandem: ranks 0, 1 ", "connect", "job is stopped", " --expect-connect ", " --connect-timeout (500ms) ")
        rest = process.communicate(timeout=LIMIT)[1]  # they are stopped
        self.assertEqual((process.returncode, self.events()[-1]["outcome"]), (5, "unconnected"), rest)
        self.assert_nothing_left()

    def test_a_rank_that_is_only_connected_to_itself_is_not_connected(self):
        self.assertEqual(self.result("--expect-connect", "--connect-timeout", "3s", "alone.py", code=5)["connected"], False)

    def test_ranks_are_left_in_peace_on_request(self):
        self.write("end", "")
        result = self.run_ranks("-n", "2", "--connect-timeout", "1ms", "--no-expect-connect", "apart.py")
        self.assertNotIn("connect", result.stderr)
        self.assertIn("all succeeded\n", result.stderr)

    def test_programs_without_torch_are_left_in_peace_unless_it_is_expected(self):
        self.write("wait.py", "import time\ntime.sleep(1.5)\n")
        result = self.run_ranks("-n", "2", "--connect-timeout", "1ms", "wait.py")
        self.assertNotIn("connect", result.stderr)
        told = self.result("--expect-connect", "true", code=5)
        self.assertEqual((told["outcome"], told["connected"]), ("unconnected", False))
        note = self.run_ranks("-n", "1", "--expect-connect", "true")
        self.assertEqual(note.returncode, 0)
        self.assertIn("expect-connect has no effect", note.stderr)


class Together(ConnectTest):
    def test_ranks_are_not_told_of_wherever_they_meet(self):
        for place in ("env://", f"file://{self.folder}/store"):
            told = self.result("--expect-connect", "together.py", place, "2")
            self.assertEqual((told["outcome"], told["connected"]), ("succeeded", True), place)

    def test_ranks_that_meet_for_a_moment_are_seen_by_what_they_leave(self):
        self.assertEqual(self.result("--connect-timeout", "1ms", "together.py")["connected"], True)

    def test_ranks_of_our_library_meet_in_memory(self):
        program = BUILD / "bin/examples/01_hello_ranks"
        if not program.exists():
            self.skipTest("the examples are not built")
        self.assertEqual(self.result("--expect-connect", program)["connected"], True)

    def test_ranks_of_accelerate_train_one_model_on_the_cpu(self):
        self.assertEqual(self.result("acc.py")["connected"], True)
        told = [json.loads((self.folder / f"told{rank}").read_text()) for rank in range(2)]
        self.assertEqual(told[0][0], 2)
        self.assertEqual(told[0], told[1])  # the same weights, from other data


class Inner(ConnectTest):
    def test_torchrun_is_named(self):
        inner = (sys.executable, "-m", "torch.distributed.run", "--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0",
                 "--local-addr", "127.0.0.1", "--nproc_per_node=2", "apart.py")
        process = self.start_ranks("bash", "-c", '"$@"; exit $?', "bash", *inner)
        told = self.read_until(process, "tandem: rank ", " launcher ", "torch.distributed.run")
        self.assertIn("`tandem run torchrun ...`", told + process.stderr.readline() + process.stderr.readline())
        self.assertRegex(self.finish(process), r"tandem: ranks 0, 1 never connect")

    def test_workers_of_a_rank_that_only_meet_each_other_are_named(self):
        process = self.start_ranks("spawn.py")
        self.read_until(process, "tandem: rank ", " 2 processes ", "connected to each other")
        self.assertRegex(self.finish(process), r"tandem: ranks 0, 1 never connect")
        self.assertEqual(process.returncode, 0)


if __name__ == "__main__":
    unittest.main()

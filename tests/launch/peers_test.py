"""`tandem run` gives programs the same environment as torchrun and accelerate, compared with the real ones."""

import importlib.util
import json
import os
import pathlib
import re
import shlex
import socket
import subprocess
import sys
import unittest

from support import LIMIT, TANDEM, LaunchTest, wait_until

HERE = pathlib.Path(__file__).resolve().parent

# What torchrun and we set differently, and why. Everything else is the same, variable by variable.
DIFFERENCES = {
    "MASTER_PORT": "every job has its own",
    "TORCHELASTIC_USE_AGENT_STORE": "torchrun hosts the store, with us rank 0 does",
    "TORCHELASTIC_ERROR_FILE": "lies in the folder of the job",
    "TORCHELASTIC_RUN_ID": "without --rdzv-id torchrun's is `none`, ours the name of the job",
    "TORCHELASTIC_SIGNALS_TO_HANDLE": "torchrun's note to itself, which leaks",
    "ACCELERATE_USE_CPU": "without it Accelerate trains a model per CPU rank",
    "OMP_NUM_THREADS": "torchrun says 1, we share out the cores",
    "GOMP_SPINCOUNT": "ours lets other processes have the cores of threads that wait",
    "PYTHONPATH": "ours has the folder of the caller and of the script",
    "PYTHONFAULTHANDLER": "ours shows the stack of a crash",
    "PYTHONUNBUFFERED": "torchrun says python -u",
    "_": "the program that a shell started",
}
OURS = re.compile("TANDEM_(CONTROL_FD|DEVICES|LOG_DIR|MEMORY|RUN_ID|SECRET|STACK_DIR|STARTED_AT)$")

# As --standalone does it, but by number: torchrun cannot start where the name localhost is not known.
MEETING = ("--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0", "--local-addr", "127.0.0.1")
TORCHRUN = (sys.executable, "-m", "torch.distributed.run", *MEETING)
ACCELERATE = (sys.executable, "-m", "accelerate.commands.launch")

TELL = """
import json, os, sys
told = {"environment": dict(os.environ), "arguments": sys.argv, "folder": os.getcwd(), "executable": sys.executable}
rank = os.environ.get("RANK", "0")
json.dump(told, open(os.path.join(os.environ["TELL"], rank), "w"))
"""

DDP = """
import os, sys, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
ddp = DistributedDataParallel(model)
optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
data = torch.Generator().manual_seed(100 + rank)
losses = []
for step in range(5):
    x = torch.randn(4, 8, generator=data)
    loss = (ddp(x) - x.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
everyone = [None] * world
dist.all_gather_object(everyone, losses)
total = sum(parameter.double().sum().item() for parameter in model.parameters())
open(f"{sys.argv[1]}.{rank}", "w").write(repr((rank, world, total, everyone)))
dist.destroy_process_group()
os._exit(0)  # torch 2.13 aborts now and then while it tears down its threads, without a launcher too
"""

STATE = TELL + """
from accelerate import Accelerator
state = Accelerator().state
told["state"] = [state.num_processes, state.process_index, state.local_process_index, state.mixed_precision,
                 str(state.distributed_type), str(state.device)]
json.dump(told, open(os.path.join(os.environ["TELL"], rank), "w"))
"""

RECORDED = """
import os, sys
from torch.distributed.elastic.multiprocessing.errors import record

@record
def main():
    if os.environ["RANK"] == "1":
        sys.stderr = sys.stdout = open(os.devnull, "w")
        raise RuntimeError("only the error file knows")
    import signal
    signal.pause()

main()
"""


class PeerTest(LaunchTest):
    needs: tuple[str, ...] = ()

    def setUp(self):
        super().setUp()
        for module in self.needs:
            if importlib.util.find_spec(module) is None:
                self.skipTest(f"{sys.executable} has no {module}")
        self.env |= {"PYTHON_EXEC": sys.executable, "GLOO_SOCKET_IFNAME": "lo", "HF_HOME": str(self.folder / "hf"), "HF_HUB_OFFLINE": "1",
                     "PWD": str(self.folder)}
        self.run_tandem("shims", self.folder / "links", check=True)

    def run_all(self, *command, check=True, **options) -> subprocess.CompletedProcess:
        program, *arguments = command
        result = self.run_tandem(*arguments, program=program, **options)
        if check:
            self.assertEqual(result.returncode, 0, f"{command}\n{result.stderr}")
        return result

    def told_by(self, *command, env=None) -> list[dict]:
        """What each rank received, for a command that succeeds."""
        self.told = self.folder / f"told{len(list(self.folder.glob('told*')))}"
        self.told.mkdir()
        self.run_all(*command, env={**(env or {}), "TELL": str(self.told)})
        ranks = [json.loads(path.read_text()) for path in sorted(self.told.iterdir())]
        for rank in ranks:
            del rank["environment"]["TELL"]
        return ranks

    def assert_same(self, theirs: list[dict], ours: list[dict], differences=DIFFERENCES) -> None:
        self.assertEqual(len(theirs), len(ours))
        for their, our in zip(theirs, ours):
            for name in sorted({*their["environment"], *our["environment"]}):
                if name in differences or OURS.match(name):
                    continue
                self.assertEqual((name, our["environment"].get(name)), (name, their["environment"].get(name)))
            for name in ("arguments", "folder", "executable"):
                self.assertEqual((name, our[name]), (name, their[name]))


class Torchrun(PeerTest):
    needs = ("torch",)

    def test_and_we_train_a_script_to_the_same_result(self):
        self.write("train.py", DDP)
        self.run_all(*TORCHRUN, "--nproc-per-node=2", "train.py", "theirs")
        self.run_all(TANDEM, "run", "--standalone", "--nproc_per_node=2", "train.py", "ours")
        theirs = [(self.folder / f"theirs.{rank}").read_text() for rank in range(2)]
        self.assertTrue(theirs[0].startswith("(0, 2, ") and theirs[1].startswith("(1, 2, "), theirs)
        self.assertEqual([(self.folder / f"ours.{rank}").read_text() for rank in range(2)], theirs)

    def compare(self, *arguments, env=None, our_prefix=(), differences=DIFFERENCES) -> list[dict]:
        self.write("package/__init__.py", "")
        for script in ("tell.py", "package/tell.py"):
            self.write(script, TELL)
        theirs = self.told_by(*TORCHRUN, "--nproc-per-node=2", *arguments, env=env)
        self.assertEqual([rank["environment"]["RANK"] for rank in theirs], ["0", "1"])
        for start in ((TANDEM, "run"), (self.folder / "links/torchrun",)):
            ours = self.told_by(*our_prefix, *start, *MEETING, "--nproc-per-node=2", *arguments, env=env)
            self.assert_same(theirs, ours, differences)
        return ours

    def test_and_we_set_the_same_variables(self):
        ours = self.compare("tell.py", "--lr", "a b", "")
        self.assertEqual(ours[1]["arguments"], ["tell.py", "--lr", "a b", ""])
        for rank in ours:
            self.assertEqual(rank["environment"]["TORCHELASTIC_USE_AGENT_STORE"], "False")
            self.assertEqual(rank["environment"]["PYTHONUNBUFFERED"], "1")

    def test_and_we_run_modules_and_set_what_was_asked_for(self):
        differences = {name: why for name, why in DIFFERENCES.items() if name not in ("OMP_NUM_THREADS", "TORCHELASTIC_RUN_ID")}
        flags = ("--rdzv-id", "job7", "--role", "trainer", "--max-restarts=3")
        ours = self.compare(*flags, "-m", "package.tell", "x", differences=differences,
                            env={"OMP_NUM_THREADS": "3", "NCCL_DEBUG": "INFO", "TORCH_NCCL_ASYNC_ERROR_HANDLING": "3"})
        self.assertEqual(ours[0]["arguments"], [f"{self.folder}/package/tell.py", "x"])
        self.assertEqual(ours[0]["environment"]["ROLE_NAME"], "trainer")

    def test_and_we_run_programs_and_fill_in_local_ranks(self):
        ours = self.compare("--no-python", sys.executable, "tell.py", "gpu${local_rank}", "${rank}")
        self.assertEqual([rank["arguments"][1:] for rank in ours], [["gpu0", "${rank}"], ["gpu1", "${rank}"]])

    def test_and_we_show_each_rank_one_gpu_as_its_first(self):
        if subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode != 0:
            self.skipTest("no right to make a mount namespace, where GPUs are pretended")
        gpus = ("unshare", "-rm", "--propagation", "private", "sh", HERE / "fake_gpus.sh", "2")
        ours = self.compare("--virtual-local-rank", "tell.py", env={"CUDA_VISIBLE_DEVICES": "0,1"}, our_prefix=gpus)
        seen = [(rank["environment"]["LOCAL_RANK"], rank["environment"]["CUDA_VISIBLE_DEVICES"]) for rank in ours]
        self.assertEqual(seen, [("0", "0"), ("0", "1")])

    def test_s_decorator_tells_us_what_the_program_does_not(self):
        self.write("recorded.py", RECORDED)
        result = self.run_all(TANDEM, "run", "-n", "2", "recorded.py", check=False)
        self.assertIn("RuntimeError: only the error file knows", result.stderr)
        self.assertIn(f'File "{self.folder}/recorded.py", line 9, in main', result.stderr)
        self.assertRegex(result.stderr, r"rank 1 failed: exit code 1\n$")


class Accelerate(PeerTest):
    needs = ("torch", "accelerate")
    # Real accelerate starts several ranks for GPUs only; a process of its kind does without them when told so.
    two_on_cpu = {"ACCELERATE_USE_CPU": "True"}

    def setUp(self):
        super().setUp()
        self.write("state.py", STATE)

    def assert_state(self, theirs: list[dict], ours: list[dict]) -> None:
        self.assertEqual([rank["state"] for rank in ours], [rank["state"] for rank in theirs])
        self.assertEqual([self.accelerates(rank) for rank in ours], [self.accelerates(rank) for rank in theirs])

    def accelerates(self, rank: dict) -> dict[str, str]:
        return {name: value for name, value in rank["environment"].items() if name.startswith("ACCELERATE_")}

    def test_and_we_make_the_same_of_two_ranks(self):
        flags = ("--num_processes", "2", "--mixed_precision", "bf16")
        theirs = self.told_by(*ACCELERATE, "--multi_gpu", "--main_process_port", "0", *flags, "state.py", env=self.two_on_cpu)
        self.assertEqual([rank["state"][:4] for rank in theirs], [[2, 0, 0, "bf16"], [2, 1, 1, "bf16"]])
        ours = self.told_by(self.folder / "links/accelerate", "launch", "--cpu", *flags, "state.py")
        self.assertEqual([rank["state"] for rank in ours], [rank["state"] for rank in theirs])
        self.assert_same(theirs, ours)
        self.write("state.py", TELL)  # a quick one: the environment decides
        self.assert_same(theirs, self.told_by(TANDEM, "run", "--cpu", *flags, "state.py"))

    def test_and_we_make_the_same_of_one_rank(self):
        flags = ("--cpu", "--mixed_precision=bf16", "--dynamo_backend=eager", "--debug", "state.py")
        theirs = self.told_by(*ACCELERATE, "--num_processes=1", *flags)
        self.assertEqual(theirs[0]["state"][3], "bf16")
        self.assert_state(theirs, self.told_by(self.folder / "links/accelerate", "launch", "--num_processes=1", *flags))

    def test_s_own_file_is_understood(self):
        path = self.folder / "hf/accelerate/default_config.yaml"
        script = "import sys\nfrom accelerate.utils import write_basic_config\nwrite_basic_config('bf16', sys.argv[1])"
        self.run_all(sys.executable, "-c", script, path)
        theirs = self.told_by(*ACCELERATE, "state.py")
        self.assertEqual(theirs[0]["state"][:4], [1, 0, 0, "bf16"])
        self.assert_state(theirs, self.told_by(self.folder / "links/accelerate", "launch", "state.py"))
        self.write("state.py", TELL)  # a quick one: the environment decides
        ours = self.told_by(TANDEM, "run", "--config_file", path, "state.py")
        self.assertEqual(self.accelerates(ours[0]), self.accelerates(theirs[0]))

    def test_s_other_paradigms_are_refused(self):
        config = self.write("deepspeed.yaml", "compute_environment: LOCAL_MACHINE\ndistributed_type: DEEPSPEED\nnum_processes: 2\n")
        link = self.folder / "links/accelerate"
        for code, flags, words in ((2, ("--use_fsdp",), "FSDP"),
                                   (3, ("--config_file", config), "distributed-type is DEEPSPEED")):
            result = self.run_all(link, "launch", *flags, "state.py", check=False)
            self.assertEqual((result.returncode, result.stdout), (code, ""))
            error, hint = result.stderr.splitlines()
            self.assertRegex(error, rf"^error: .*{words}.* data parallelism only( \(.*deepspeed.yaml:2\))?$")
            self.assertRegex(hint, r"^hint: .*`accelerate launch`")


class Programs(PeerTest):
    def assert_two_ranks(self, *command) -> None:
        self.run_all(TANDEM, "run", "-q", "-n", "2", *command)
        self.assertEqual(sorted(path.read_text() for path in self.folder.glob("jobs/*/rank*.log")), ["0 of 2\n", "1 of 2\n"])
        for path in self.folder.glob("jobs/*/rank*.log"):
            path.unlink()

    def test_of_all_kinds_run(self):
        self.write("program.cpp", '#include <cstdio>\n#include <cstdlib>\n'
                                  'int main() { std::printf("%s of %s\\n", std::getenv("RANK"), std::getenv("WORLD_SIZE")); }\n')
        subprocess.run([os.environ.get("CXX", "c++"), "-o", "program", "program.cpp"], cwd=self.folder, check=True, timeout=LIMIT)
        python = 'import os\nprint(os.environ["RANK"], "of", os.environ["WORLD_SIZE"])\n'
        self.write("script.py", python)
        self.write("package/__init__.py", "")
        self.write("package/module.py", python)
        self.write("script.sh", '#!/bin/sh\necho "$RANK of $WORLD_SIZE"\n')
        self.write("a 'quoted' \"name\".py", python)
        for command in (["./program"], ["script.py"], [sys.executable, "script.py"], ["-m", "package.module"], ["./script.sh"],
                        ["sh", "script.sh"], ["a 'quoted' \"name\".py"]):
            with self.subTest(command=command):
                self.assert_two_ranks(*command)


class Debugger(PeerTest):
    needs = ("debugpy",)

    @staticmethod
    def two_free_ports() -> str:
        """All but the last digit of two ports, N0 and N1."""
        for start in range(2000, 6000):
            try:
                for last in "01":
                    with socket.socket() as probe:
                        probe.bind(("127.0.0.1", int(f"{start}{last}")))
                return str(start)
            except OSError:
                pass  # in use
        raise AssertionError("no free ports")

    def asked(self, port: int) -> str:
        """The answer of a debug adapter to the first request of VS Code; empty: none yet."""
        request = json.dumps({"seq": 1, "type": "request", "command": "initialize", "arguments": {"adapterID": "test"}})
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=LIMIT) as adapter:
                adapter.sendall(f"Content-Length: {len(request)}\r\n\r\n{request}".encode())
                return adapter.recv(100).decode()
        except ConnectionError:
            return ""

    def test_of_vs_code_attaches_to_each_rank_at_its_own_port(self):
        page = (HERE.parents[1] / "docs/launch.md").read_text()
        line = re.search(r"^tandem (run -n 2 -m debugpy .*)$", page, re.M)[1]
        start = self.two_free_ports()
        self.write("train.py", "")
        process = self.start(*shlex.split(line.replace("127.0.0.1:567", f"127.0.0.1:{start}")))
        for last in "01":
            wait_until(lambda: self.asked(int(start + last)).startswith("Content-Length: "), f"rank {last} waits for the debugger")
        process.terminate()
        process.communicate(timeout=LIMIT)
        self.assertEqual(process.returncode, 143)


if __name__ == "__main__":
    unittest.main()

"""Several hosts and outer launchers: two launchers of one job, Slurm, Open MPI, torchrun."""

import importlib.util
import json
import os
import pathlib
import socket
import subprocess
import sys
import unittest

from support import LIMIT, LaunchTest

TELL = 'echo "$RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $GROUP_RANK $GROUP_WORLD_SIZE $MASTER_ADDR $MASTER_PORT"'

SUM = """
import os, torch, torch.distributed as dist
dist.init_process_group("gloo")
total = torch.tensor([dist.get_rank() + 1.0])
dist.all_reduce(total)
print(f"{dist.get_rank()} of {dist.get_world_size()}: {total.item()}")
dist.destroy_process_group()
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("", 0))
        return probe.getsockname()[1]


class Hosts(LaunchTest):
    def run_hosts(self, count: int, *arguments) -> list[str]:
        """The output of all ranks of `count` launchers on this machine, by rank."""
        jobs = [self.start("run", "-q", "-n", "2", "--nnodes", str(count), "--node-rank", str(node), *arguments,
                           env={"TANDEM_STATE_DIR": f"{self.folder}/host{node}", "GLOO_SOCKET_IFNAME": "lo"}) for node in range(count)]
        for job in jobs:
            out, err = job.communicate(timeout=2 * LIMIT)
            self.assertEqual(job.returncode, 0, err)
        logs = sorted(self.folder.glob("host*/*/rank*.log"), key=lambda path: int(path.stem[4:]))
        return [log.read_text() for log in logs]

    def test_get_the_right_ranks(self):
        port = free_port()
        told = self.run_hosts(2, "--master-addr", "127.0.0.1", "--master-port", str(port), "sh", "-c", TELL)
        self.assertEqual(told, [f"{rank} 4 {rank % 2} 2 {rank // 2} 2 127.0.0.1 {port}\n" for rank in range(4)])

    def test_meet_at_the_endpoint_of_a_rendezvous(self):
        port = free_port()
        told = self.run_hosts(2, "--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{port}", "sh", "-c", TELL)
        self.assertEqual([line.split()[-1] for line in told], [str(port)] * 4)

    def test_reduce_as_one_job(self):
        if importlib.util.find_spec("torch") is None:
            self.skipTest(f"{sys.executable} has no torch")
        self.write("sum.py", SUM)
        told = self.run_hosts(2, "--master-addr", "127.0.0.1", "--master-port", str(free_port()), sys.executable, "sum.py")
        self.assertEqual([line.splitlines()[-1] for line in told], [f"{rank} of 4: 10.0" for rank in range(4)])

    def test_without_an_address_are_an_error(self):
        result = self.run_ranks("-n", "2", "--nnodes", "2", "--node-rank", "1", "true")
        self.assertEqual(result.returncode, 2)
        self.assertRegex(result.stderr, r"^error: .*master-addr.*\nhint: ")


class Outer(LaunchTest):
    def test_slurm_with_one_task_per_host_gives_the_host(self):
        slurm = {"SLURM_STEP_ID": "0", "SLURM_JOB_ID": "1234", "SLURM_PROCID": "1", "SLURM_LOCALID": "0", "SLURM_NODEID": "1",
                 "SLURM_STEP_NUM_TASKS": "3", "SLURM_STEP_NUM_NODES": "3", "SLURM_STEP_TASKS_PER_NODE": "1(x3)",
                 "SLURM_STEP_NODELIST": "gpu[003-005]"}
        self.run_ranks("-q", "-n", "2", "sh", "-c", TELL, env=slurm)
        self.assertEqual(self.log(3), "3 6 1 2 1 3 gpu003 21234\n")

    def test_slurm_with_a_task_per_rank_makes_us_that_rank(self):
        slurm = {"SLURM_STEP_ID": "0", "SLURM_JOB_ID": "7", "SLURM_PROCID": "3", "SLURM_LOCALID": "1", "SLURM_NODEID": "1",
                 "SLURM_STEP_NUM_TASKS": "4", "SLURM_STEP_NUM_NODES": "2", "SLURM_STEP_TASKS_PER_NODE": "2(x2)",
                 "SLURM_STEP_NODELIST": "a,b"}
        result = self.run_ranks("sh", "-c", TELL, env=slurm)
        self.assertEqual(result.stdout, "3 4 1 2 1 2 a 20007\n")

    def test_open_mpi_with_a_task_per_rank_makes_us_that_rank(self):
        mpi = {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_RANK": "1", "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
               "PMIX_NAMESPACE": "prterun-host-77@1"}
        tell = lambda rank: self.run_ranks("sh", "-c", TELL, env={**mpi, "OMPI_COMM_WORLD_RANK": rank, "OMPI_COMM_WORLD_LOCAL_RANK": rank}).stdout.split()
        zero, one = tell("0"), tell("1")
        self.assertEqual((zero[:6], one[:6]), ("0 2 0 2 0 1".split(), "1 2 1 2 0 1".split()))
        self.assertEqual(zero[6:], one[6:])

    def test_a_count_beside_several_tasks_on_a_host_is_an_error(self):
        mpi = {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_RANK": "1", "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}
        result = self.run_ranks("-n", "4", "true", env=mpi)
        self.assertNotEqual(result.returncode, 0)
        self.assertRegex(result.stderr, r"^error: .*Open MPI.*\nhint: ")

    def test_torchrun_makes_us_its_rank(self):
        outer = {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2", "GROUP_RANK": "0", "GROUP_WORLD_SIZE": "1",
                 "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "4321", "TORCHELASTIC_RUN_ID": "x", "TORCHELASTIC_USE_AGENT_STORE": "True"}
        result = self.run_ranks("sh", "-c", TELL + '; echo "$TORCHELASTIC_USE_AGENT_STORE"', env=outer)
        self.assertEqual(result.stdout, "1 2 1 2 0 1 127.0.0.1 4321\nTrue\n")


if __name__ == "__main__":
    unittest.main()

"""SIGKILL and SIGSTOP of the launcher, of its parent (the process that was started) and of the guard: nothing is left."""

import itertools
import os
import pathlib
import random
import signal
import subprocess
import sys
import unittest

from support import TANDEM, LaunchTest, processes_with, wait_until

SOAK = "TANDEM_SOAK" in os.environ

# A rank with a child, a child in a session of its own, a listening socket and a file in shared memory that has no name.
FAMILY = """
import os, socket, subprocess, sys, time
subprocess.Popen(["sleep", "1000"])
subprocess.Popen(["sleep", "1000"], start_new_session=True)
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("127.0.0.1", int(os.environ["MASTER_PORT"]) if os.environ["RANK"] == "0" else 0))
listener.listen()
memory = os.memfd_create("arena")
print("ready", flush=True)
time.sleep(1000)
"""

# A rank whose children have nothing in common with it but their ancestor: no environment, another name, a session of their own,
# and in the case of the daemon another parent.
FORGETFUL = """
import os, time
def become_stranger():
    os.setsid()
    os.execve("/bin/sleep", ["stranger", "1000"], {})
for is_daemon in (False, True):
    pid = os.fork()
    if pid == 0:
        child = os.fork() if is_daemon else 0
        if child:
            os._exit(0)
        with open(f"stranger{os.getpid()}", "w"):
            become_stranger()
    if is_daemon:
        os.waitpid(pid, 0)
while len([name for name in os.listdir() if name.startswith("stranger")]) < 2:
    time.sleep(0.01)  # poll
print("ready", flush=True)
time.sleep(1000)
"""


def command_line(pid: int) -> str:
    return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode().strip()


def is_alive(pid: int) -> bool:
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def children(parent: int) -> list[int]:
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if int((entry / "stat").read_text().rpartition(")")[2].split()[1]) == parent:
                found.append(int(entry.name))
        except OSError:
            pass  # it ended meanwhile
    return found


class Killed(LaunchTest):
    def ours(self, process: subprocess.Popen) -> dict[str, int]:
        """The processes of the launcher, once all are there."""
        found = {"parent": process.pid}

        def complete() -> bool:
            for pid in processes_with(self.mark):
                try:
                    found[pathlib.Path(f"/proc/{pid}/comm").read_text().strip()] = pid
                except OSError:
                    pass  # it ended meanwhile
            return {"parent", "tandem-launcher", "tandem-guard"} <= set(found)

        wait_until(complete, "the launcher and its guard are there")
        return {name.removeprefix("tandem-"): pid for name, pid in found.items() if name in ("parent", "tandem-launcher", "tandem-guard")}

    def end(self, process: subprocess.Popen) -> None:
        process.wait()
        for stream in (process.stdout, process.stderr):
            stream.close()

    def kill_at_random(self, random_numbers: random.Random, shutdown: bool) -> float:
        before = set(os.listdir("/dev/shm"))
        process = self.start("run", "-n", "2", "--tee", "all", sys.executable, "-c", FAMILY)
        if shutdown:
            process.stdout.readline()
            process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout=random_numbers.uniform(0, 0.01 if shutdown else 0.15))
        except subprocess.TimeoutExpired:
            pass
        launcher = sorted(children(process.pid))[:1]  # the guard is made later
        if launcher and random_numbers.random() < 0.5:
            try:
                os.kill(launcher[0], signal.SIGKILL)
            except ProcessLookupError:
                pass  # it has just ended
        else:
            process.kill()
        self.end(process)
        seconds = self.assert_nothing_left(limit=10)
        wait_until(lambda: set(os.listdir("/dev/shm")) <= before, "only what others keep is in shared memory")
        return seconds

    def test_leaves_nothing_behind(self):
        rounds = 200 if SOAK else 20
        seed = random.randrange(2**32)
        numbers = random.Random(seed)
        times = [self.kill_at_random(numbers, shutdown=i % 4 == 3) for i in range(rounds)]
        print(f"seed {seed}: the last process was gone {max(times):.3f} s after the launcher at the latest, in {rounds} rounds")

    def test_leaves_nothing_whichever_two_processes_are_killed_or_stopped(self):
        names = ("parent", "launcher", "guard")
        cases = [(signal.SIGKILL, *pair) for pair in itertools.permutations(names, 2)]
        cases += [(signal.SIGSTOP, *pair) for pair in itertools.permutations(names, 2) if pair[1] != "guard"]
        for how, first, second in (20 if SOAK else 2) * cases:
            with self.subTest(how=how, first=first, second=second):
                process = self.start("run", "-n", "2", "--tee", "all", sys.executable, "-c", FAMILY)
                process.stdout.readline()
                pids = self.ours(process)
                os.kill(pids[first], how)
                os.kill(pids[second], signal.SIGKILL)
                try:
                    self.assert_nothing_left(limit=20)
                finally:
                    self.kill_what_is_left()
                self.end(process)
                self.assertEqual(process.returncode, -signal.SIGKILL)

    def test_leaves_nothing_that_forgot_its_environment(self):
        for how, name in itertools.product((signal.SIGKILL, signal.SIGTERM), ("parent", "launcher")):
            with self.subTest(how=how, name=name):
                process = self.start("run", sys.executable, "-c", FORGETFUL)
                self.assertEqual(process.stdout.readline(), "ready\n")
                strangers = [path for path in self.folder.glob("stranger*")]
                pids = [int(path.name.removeprefix("stranger")) for path in strangers]
                wait_until(lambda: {command_line(pid) for pid in pids} == {"stranger 1000"}, "both have another name")
                os.kill(self.ours(process)[name], how)
                wait_until(lambda: not any(map(is_alive, pids)), "the strangers have ended", limit=20)
                self.end(process)
                self.assertIn(process.returncode, (-how, 128 + how))
                self.assert_nothing_left()
                for path in strangers:
                    path.unlink()

    def test_gives_the_launcher_and_the_guard_command_lines_of_their_own(self):
        process = self.start("run", "-n", "2", "sleep", "1000")
        self.assertEqual({name: command_line(pid) for name, pid in self.ours(process).items()},
                         {"parent": f"{TANDEM} run -n 2 sleep 1000", "launcher": "tandem-launcher", "guard": "tandem-guard"})

    def test_replaces_a_guard_that_was_killed(self):
        process = self.start("run", sys.executable, "-c", FAMILY)
        process.stdout.readline()
        guard = self.ours(process)["guard"]
        os.kill(guard, signal.SIGKILL)
        wait_until(lambda: self.ours(process)["guard"] != guard, "there is another guard")
        process.terminate()
        self.end(process)
        self.assertEqual(process.returncode, 143)
        self.assert_nothing_left(limit=10)

    def test_leaves_nothing_of_a_job_inside_a_job(self):
        inner = f"exec '{TANDEM}' run -q -n 2 --tee all sh -c 'setsid sleep 1000 & echo ready; exec sleep 1000'"
        process = self.start("run", "sh", "-c", inner)
        process.stdout.readline()
        self.assertGreater(len(processes_with(self.mark)), 6)
        process.kill()
        process.wait()
        self.assert_nothing_left(limit=10)

    def test_leaves_the_logs_of_a_job_inside_a_job_to_that_job(self):
        self.run_ranks("-q", "sh", "-c", f"echo outer; '{TANDEM}' run -q sh -c 'echo inner'")
        logs = sorted(path.read_text() for path in self.folder.glob("jobs/*/rank0.log"))
        self.assertEqual(logs, ["inner\n", "outer\ninner\n"])

    def test_lets_go_of_the_port(self):
        process = self.start("run", sys.executable, "-c", FAMILY.replace('"ready"', 'os.environ["MASTER_PORT"]'))
        port = process.stdout.readline().strip()
        process.kill()
        process.wait()
        self.assert_nothing_left(limit=10)
        self.assertEqual(self.run_ranks("--master-port", port, "true").returncode, 0)


if __name__ == "__main__":
    unittest.main()

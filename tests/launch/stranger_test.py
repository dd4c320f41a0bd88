"""Another user of the machine: reads, writes, binds, maps and injects nothing."""

import concurrent.futures
import json
import os
import pathlib
import socket
import unittest

from support import BUILD, LIMIT, LaunchTest, processes_with, wait_until

PROGRAM = BUILD / "tests" / "self_launched"
NOBODY = 65534
LISTENING = "0A"  # in /proc/net/tcp


def as_stranger(act):
    """What act() returns when it runs in a process of another user."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
            os.write(write, json.dumps(act()).encode())
            code = 0
        finally:
            os._exit(code)
    os.close(write)
    with os.fdopen(read) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return json.loads(text)


def succeeds(act) -> bool:
    try:
        act()
        return True
    except OSError:
        return False


def opens(path: str, flags: int) -> bool:
    return succeeds(lambda: os.close(os.open(path, flags)))


def connects(port: int) -> bool:
    with socket.socket() as client:
        return succeeds(lambda: client.connect(("127.0.0.1", port)))


def ways_into(pids: list[int]) -> list[str]:
    """What the caller can open of these processes."""
    found = []
    for pid in pids:
        for name in ("mem", "maps", "environ", "stack", *(f"fd/{number}" for number in range(200))):
            for flags in (os.O_RDONLY, os.O_RDWR):
                if opens(f"/proc/{pid}/{name}", flags):
                    found.append(f"/proc/{pid}/{name}")
        if succeeds(lambda: os.listdir(f"/proc/{pid}/fd")):
            found.append(f"/proc/{pid}/fd")
        if succeeds(lambda: os.kill(pid, 0)):
            found.append(f"signals to {pid}")
    return found


def listening(pids: list[int]) -> list[str]:
    """The addresses on which these processes listen."""
    inodes = set()
    for pid in pids:
        for link in pathlib.Path(f"/proc/{pid}/fd").iterdir():
            inodes.add(os.readlink(link))
    found = []
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in pathlib.Path(table).read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == LISTENING and f"socket:[{words[9]}]" in inodes:
                found.append(words[1])
    return found


@unittest.skipIf(os.geteuid() != 0, "only root can become another user")
class Stranger(LaunchTest):
    def setUp(self):
        super().setUp()
        self.folder.chmod(0o755)
        self.go = self.folder / "go"

    def start_job(self, script: str):
        """Runs the script in two ranks, with $PROGRAM and $GO; returns the process and the port of the job."""
        env = {"PROGRAM": str(PROGRAM), "GO": str(self.go)}
        job = self.start("run", "-n", "2", "bash", "-c", script, env=env)
        record = self.folder / "jobs"
        wait_until(lambda: len(list(record.glob("*/job.json"))) == 1, "the job is listed")
        wait_until(lambda: len(processes_with(self.mark)) >= 3, "launcher and ranks are there")
        return job, json.loads(next(record.glob("*/job.json")).read_text())["master_port"]

    def assert_sum(self, job):
        out, error = job.communicate(timeout=LIMIT)
        self.assertEqual(job.returncode, 0, error)
        self.assertIn("sum 3", out)

    def test_finds_no_way_into_a_rank(self):
        job, port = self.start_job("exec $PROGRAM --hold $GO")
        wait_until(lambda: "sum 3" in self.log(0), "the ranks have met")
        pids = processes_with(self.mark)
        self.assertGreaterEqual(len(pids), 3)
        self.assertIn(f"/proc/{pids[0]}/mem", ways_into(pids))  # root finds one
        self.assertEqual(as_stranger(lambda: ways_into(pids)), [])
        self.assertEqual(listening(pids), [])
        self.assertFalse(as_stranger(lambda: connects(port)))
        self.go.touch()
        self.assert_sum(job)

    def test_who_takes_the_port_is_not_heard(self):
        job, port = self.start_job("while [ ! -e $GO ]; do sleep 0.01; done; exec $PROGRAM")

        def take_port():
            with socket.socket() as taken:
                taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                taken.bind(("0.0.0.0", port))
                taken.listen()
                taken.settimeout(0.01)
                self.go.touch()
                while not over.exists():
                    if succeeds(taken.accept):
                        return "heard"
                return "not heard"

        over = self.folder / "over"
        self.folder.chmod(0o777)
        with concurrent.futures.ThreadPoolExecutor() as pool:
            answer = pool.submit(as_stranger, take_port)
            self.assert_sum(job)
            over.touch()
            self.assertEqual(answer.result(), "not heard")

    def test_is_kept_out_by_the_secret_where_the_memory_was_not_passed_on(self):
        job, port = self.start_job('eval "exec ${TANDEM_MEMORY%@*}<&-"; exec $PROGRAM --hold $GO')
        wait_until(lambda: "sum 3" in self.log(0), "the ranks have met")
        (address,) = listening(processes_with(self.mark))
        self.assertEqual(address.split(":")[0], "0100007F")
        try:
            from torch.distributed import TCPStore
        except ImportError:
            self.skipTest("torch is not installed")
        store = TCPStore("127.0.0.1", port, is_master=False)
        keys = [key for key in store.list_keys() if not key.startswith("init/")]
        self.assertGreater(len(keys), 4)
        for key in keys:
            self.assertRegex(key, r"^/?[0-9a-f]{64}$")
            value = store.get(key)
            self.assertGreaterEqual(len(value), 48)
            self.assertNotIn(b"cpu", value)
        self.go.touch()
        self.assert_sum(job)

    def test_finds_no_place_for_a_file_of_his_own(self):
        jobs = self.folder / "jobs"
        for mode in (0o777, 0o770, 0o1777):
            jobs.mkdir(exist_ok=True)
            jobs.chmod(mode)
            self.assert_error(self.run_ranks("true"), 4, str(jobs), "chmod go-w", "TANDEM_STATE_DIR")
        jobs.chmod(0o700)
        self.assertEqual(self.run_ranks("true").returncode, 0)
        os.chown(jobs, NOBODY, NOBODY)
        self.assert_error(self.run_ranks("true"), 4, str(jobs), str(NOBODY))

    def test_cannot_read_the_folder_of_a_job(self):
        self.run_ranks("-n", "2", "true")
        paths = [self.folder / "jobs", *(self.folder / "jobs").rglob("*")]
        self.assertGreater(len(paths), 5)
        self.assertEqual(as_stranger(lambda: [str(path) for path in paths if opens(str(path), os.O_RDONLY)]), [])


if __name__ == "__main__":
    unittest.main()

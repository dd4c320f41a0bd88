"""`tandem ps`, `stop`, `logs` and `stack` on job folders written by the test, with real processes."""

import fcntl
import json
import os
import pathlib
import pty
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "launch"))
from support import ErrorTest  # noqa: E402

TANDEM = pathlib.Path(os.environ["TANDEM_BUILD"]) / "bin" / "tandem"
SITECUSTOMIZE = pathlib.Path(os.environ["TANDEM_SOURCE"]) / "src/launch/cause/sitecustomize.py"


def started_ticks(pid: int) -> int:
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])


class JobsTest(ErrorTest):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.env = {**os.environ, "TANDEM_STATE_DIR": str(self.folder)}

    def tandem(self, *arguments: str, **options) -> subprocess.CompletedProcess:
        options = {"text": True, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "env": self.env, **options}
        return subprocess.run([TANDEM, *arguments], timeout=120, **options)

    def start(self, *command: str, **options) -> subprocess.Popen:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True, **options)

        def end():
            process.kill()
            process.wait()
            if process.stdout:
                process.stdout.close()

        self.addCleanup(end)
        return process

    def add_job(self, name: str, launcher: subprocess.Popen | None = None, started: str = "2026-01-01T00:00:00.000Z",
                **changes) -> pathlib.Path:
        """Creates the folder of a job as a launcher does; without `launcher`, of one that has ended."""
        path = self.folder / name
        path.mkdir()
        pid = launcher.pid if launcher else 1
        record = {"name": name, "run_id": "1-2", "pid": pid, "started_ticks": started_ticks(pid) if launcher else -1,
                  "started": started, "command": ["python3", "train.py"], "folder": "/", "world_size": 2, "first_rank": 0,
                  "local_size": 2, "devices": [], "master_addr": "127.0.0.1", "master_port": 1, "log_dir": str(path), **changes}
        (path / "job.json").write_text(json.dumps(record))
        (path / "stacks").mkdir()
        (path / "launch.jsonl").touch()
        return path

    def add_event(self, path: pathlib.Path, **event) -> None:
        with open(path / "launch.jsonl", "a") as file:
            file.write(json.dumps(event) + "\n")

    def end_job(self, path: pathlib.Path, outcome: str = "succeeded", exit_code: int = 0) -> None:
        self.add_event(path, event="end", outcome=outcome, exit_code=exit_code, seconds=1.5)


class JobName(JobsTest):
    def test_that_is_empty_is_an_error_and_not_the_newest_job(self):
        launcher = self.start("sleep", "1000")
        self.add_job("train", launcher)
        for command in ("stop", "logs", "stack"):
            with self.subTest(command):
                self.assert_error(self.tandem(command, ""), 2, "empty", "tandem ps --all")
        self.assertIsNone(launcher.poll())

    def test_and_record_are_printed_without_escape_codes(self):
        path = self.add_job("train", command=["sh", "\x1b[31mred\nline\x9b2J\x7f"])
        record = json.loads((path / "job.json").read_text())
        (path / "job.json").write_text(json.dumps({**record, "name": "tr\x1b]0;x\x07ain"}))
        self.assertRegex(self.tandem("ps", "--all").stdout, r"\ntrain +lost .* sh red line\?+2J\?\n$")
        result = self.tandem("logs", "\x1b[2Jno\nhint: such")
        self.assertRegex(result.stderr, r"^error: [^\n]*'no\n  hint: such'\nhint: [^\n]*\n$")


class Ps(JobsTest):
    def test_says_that_no_job_is_running(self):
        result = self.tandem("ps")
        self.assertEqual((result.stdout, result.stderr, result.returncode), ("", "tandem: no job is running\n", 0))
        self.end_job(self.add_job("train"))
        self.assertRegex(self.tandem("ps").stderr, r"^tandem: no job is running; `tandem ps --all` .*\(1\)\n$")
        self.assertEqual(self.tandem("ps", "--json").stdout, "[]\n")

    def test_lists_running_jobs_and_all_of_them_on_demand(self):
        launcher = self.start("sleep", "1000")
        running = self.add_job("train", launcher, command=["sh", "-c", "echo\n\tx"])
        self.add_event(running, event="start", attempt=0, rank=0, pid=10)
        self.add_event(running, event="start", attempt=0, rank=1, pid=11)
        self.add_event(running, event="exit", rank=1, pid=11, code=0, signal=0)
        self.end_job(self.add_job("bad", started="2026-01-03T00:00:00.000Z"), "failed", 3)
        self.add_job("killed", started="2026-01-02T00:00:00.000Z")

        header, row = self.tandem("ps").stdout.splitlines()
        self.assertEqual(header.split(), ["NAME", "STATE", "RANKS", "AGE", "PID", "COMMAND"])
        self.assertRegex(row, rf"^train  running  1/2    \d+d\d+h +{launcher.pid} +sh -c echo +x$")
        rows = [line.split() for line in self.tandem("ps", "--all").stdout.splitlines()[1:]]
        self.assertEqual([row[:2] for row in rows], [["bad", "failed"], ["killed", "lost"], ["train", "running"]])
        self.assertEqual(rows[0][2], "(3)")

    def test_is_also_json(self):
        launcher = self.start("sleep", "1000")
        running = self.add_job("train", launcher)
        self.add_event(running, event="start", attempt=0, rank=0, pid=10)
        self.add_event(running, event="exit", rank=0, pid=10, code=0, signal=9)
        self.end_job(self.add_job("bad", started="2025-01-03T00:00:00.000Z"), "failed", 3)
        train, bad = json.loads(self.tandem("ps", "--all", "--json").stdout)
        self.assertEqual((train["name"], train["state"], train["exit_code"]), ("train", "running", None))
        self.assertEqual(train["ranks"], [{"rank": 0, "pid": 10, "running": False, "code": 0, "signal": 9}])
        self.assertEqual((bad["state"], bad["exit_code"], bad["seconds"]), ("failed", 3, 1.5))
        self.assertEqual(train["command"], ["python3", "train.py"])

    def test_cuts_commands_to_the_width_of_the_terminal_only(self):
        launcher = self.start("sleep", "1000")
        self.add_job("train", launcher, command=["echo", "\u00e4" * 200])
        self.assertIn("\u00e4" * 200, self.tandem("ps").stdout)
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.tandem("ps", stdout=slave)
        os.close(slave)
        lines = os.read(master, 65536).decode().split("\r\n")
        os.close(master)
        self.assertEqual(len(lines[1]), 80)
        self.assertTrue(lines[1].endswith("\u00e4..."), lines[1])

    def test_takes_no_later_process_with_the_same_pid_for_a_launcher(self):
        launcher = self.start("sleep", "1000")
        self.add_job("train", launcher, started_ticks=started_ticks(launcher.pid) - 1)
        self.assertIn("no job is running", self.tandem("ps").stderr)


class Stop(JobsTest):
    def collect(self, *processes: subprocess.Popen) -> None:
        """Reaps processes, as the shell that started a launcher does."""
        for process in processes:
            thread = threading.Thread(target=process.wait)
            thread.start()
            self.addCleanup(thread.join)
            self.addCleanup(process.kill)  # first: a test that fails must not wait for it

    def test_ends_the_launcher_and_waits_for_it(self):
        launcher = self.start("sleep", "1000")
        self.add_job("train", launcher)
        self.collect(launcher)
        result = self.tandem("stop")
        self.assertRegex(result.stderr, rf"^tandem: stopping train \(pid {launcher.pid}, ranks: 2\)\n"
                                        r"tandem: train stopped after \d+\.\d s\n$")
        self.assertEqual((result.stdout, result.returncode), ("", 0))
        self.assertEqual(launcher.wait(60), -signal.SIGTERM)

    def test_kills_a_launcher_that_does_not_go(self):
        launcher = self.start("sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.1; done", stdout=subprocess.PIPE)
        launcher.stdout.readline()
        self.add_job("train", launcher)
        self.collect(launcher)
        result = self.tandem("stop", "train", "--timeout", "50ms")
        self.assertRegex(result.stderr, r"tandem: train .* after 50ms.*\n")
        self.assertEqual((launcher.wait(60), result.returncode), (-signal.SIGKILL, 0))

    def test_leaves_other_jobs_alone_unless_all_are_meant(self):
        launchers = [self.start("sleep", "1000") for _ in range(3)]
        for number, launcher in enumerate(launchers):
            self.add_job(f"job{number}", launcher, started=f"2026-01-0{number + 1}T00:00:00.000Z")
        self.collect(*launchers)
        self.tandem("stop", "job1")
        self.assertEqual(launchers[1].wait(60), -signal.SIGTERM)
        self.assertEqual([launchers[0].poll(), launchers[2].poll()], [None, None])
        self.assertEqual(self.tandem("stop", "--all").returncode, 0)
        self.assertEqual([launcher.wait(60) for launcher in launchers], [-signal.SIGTERM] * 3)
        self.assertEqual(self.tandem("stop", "--all").stderr, "tandem: no job is running\n")

    def test_of_a_finished_job_says_so(self):
        self.end_job(self.add_job("train"), "failed", 1)
        result = self.tandem("stop", "train")
        self.assertEqual((result.stderr, result.returncode), ("tandem: train is not running (failed)\n", 0))

    def test_never_hits_a_later_process_with_the_same_pid(self):
        stranger = self.start("sleep", "1000")
        self.add_job("train", stranger, started_ticks=1)
        self.assertEqual(self.tandem("stop", "train").stderr, "tandem: train is not running (lost)\n")
        self.assertIsNone(stranger.poll())

    def test_explains_wrong_usage(self):
        self.assert_error(self.tandem("stop"), 2, "no job", "`tandem run -n 2 ./train`")
        self.add_job("train")
        self.assert_error(self.tandem("stop", "trian"), 2, "'trian'", "did you mean train?")
        self.assert_error(self.tandem("stop", "a", "b"), 2, "tandem stop: 'b'", "`tandem ps --all`")
        self.assert_error(self.tandem("stop", "--all", "a"), 2, "tandem stop: ", "--all", "'a'")


class Logs(JobsTest):
    def test_prints_rank_0_byte_for_byte(self):
        path = self.add_job("train")
        content = os.urandom(300_000) + b"\0\n\xffno newline"
        (path / "rank0.log").write_bytes(content)
        (path / "rank1.log").write_text("one\n")
        self.assertEqual(self.tandem("logs", text=False).stdout, content)
        self.assertEqual(self.tandem("logs", "train", "--rank", "1").stdout, "one\n")
        self.assertEqual(self.tandem("logs", "--rank=1", "tr").stdout, "one\n")

    def test_prints_all_ranks_with_their_numbers(self):
        path = self.add_job("train", first_rank=2, world_size=4)
        (path / "rank2.log").write_text("a\n\nb")
        (path / "rank3.log").write_text("c\n")
        self.assertEqual(self.tandem("logs", "--rank", "all").stdout, "[rank 2] a\n[rank 2] \n[rank 2] b\n[rank 3] c\n")
        self.assertEqual(self.tandem("logs", "--rank", "all", "--lines", "1").stdout, "[rank 2] b\n[rank 3] c\n")

    def test_prints_lines_of_any_length_with_their_rank(self):
        path = self.add_job("train")
        (path / "rank0.log").write_text("x" * 300_000 + "\ny")
        self.assertEqual(self.tandem("logs", "--rank", "all").stdout, f"[rank 0] {'x' * 300_000}\n[rank 0] y\n")

    def test_prints_the_last_lines(self):
        path = self.add_job("train")
        (path / "rank0.log").write_text("".join(f"{i}\n" for i in range(100_000)))
        self.assertEqual(self.tandem("logs", "-n", "2").stdout, "99998\n99999\n")

    def test_prints_what_a_detached_launcher_said(self):
        (self.add_job("train") / "launcher.log").write_text("said\n")
        self.assertEqual(self.tandem("logs", "--rank", "launcher").stdout, "said\n")

    def test_explains_what_is_not_there(self):
        path = self.add_job("train")
        self.assert_error(self.tandem("logs"), 8, "tandem logs: train ", str(path), "`tandem logs --rank launcher train`")
        for rank in ("2", "-1", "x"):
            self.assert_error(self.tandem("logs", f"--rank={rank}"), 2, "tandem logs: train has ranks 0 to 1", f"'{rank}'", "--rank all")

    def follow(self, *arguments: str) -> subprocess.Popen:
        return self.start(str(TANDEM), "logs", "-f", *arguments, stdout=subprocess.PIPE, env=self.env)

    def test_follows_a_file_that_is_not_there_yet_to_the_end_of_the_job(self):
        path = self.add_job("train", self.start("sleep", "1000"))
        process = self.follow("--rank", "1")
        expected = b""
        for number in range(20):
            chunk = f"{number} ".encode() * 5000 + b"\xff\n"
            with open(path / "rank1.log", "ab") as file:
                file.write(chunk)
            expected += chunk
            if number % 5 == 0:
                self.assertEqual(process.stdout.read(len(expected)), expected)  # waits until it is there
                expected = b""
        with open(path / "rank1.log", "ab") as file:
            file.write(b"last words, no newline")
        self.end_job(path)
        self.assertEqual(process.stdout.read(), expected + b"last words, no newline")
        self.assertEqual(process.wait(60), 0)

    def test_follows_all_ranks_in_whole_lines(self):
        path = self.add_job("train", self.start("sleep", "1000"))
        process = self.follow("--rank", "all")
        (path / "rank0.log").write_text("half a")
        (path / "rank1.log").write_text("one\n")
        self.assertEqual(process.stdout.readline(), b"[rank 1] one\n")
        with open(path / "rank0.log", "a") as file:
            file.write(" line\nand a half")
        self.assertEqual(process.stdout.readline(), b"[rank 0] half a line\n")
        self.end_job(path)
        self.assertEqual(process.stdout.read(), b"[rank 0] and a half\n")

    def test_ends_when_the_launcher_dies(self):
        launcher = self.start("sleep", "1000")
        (self.add_job("train", launcher) / "rank0.log").write_text("x\n")
        process = self.follow()
        self.assertEqual(process.stdout.readline(), b"x\n")
        launcher.kill()
        launcher.wait()
        self.assertEqual((process.stdout.read(), process.wait(60)), (b"", 0))

    def test_ends_quietly_when_nobody_reads_any_more(self):
        path = self.add_job("train", self.start("sleep", "1000"))
        (path / "rank0.log").write_text("x\n" * 1_000_000)
        for arguments in ("", "-f -n 1"):
            result = self.tandem_in_shell(f"'{TANDEM}' logs {arguments} | head -n 1")
            self.assertEqual((result.stdout, result.stderr), ("x\n", ""))
            result = self.tandem_in_shell(f"trap '' PIPE; '{TANDEM}' logs {arguments} | head -n 1")
            self.assertEqual((result.stdout, result.stderr), ("x\n", ""))

    def tandem_in_shell(self, script: str) -> subprocess.CompletedProcess:
        return subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60, env=self.env)


class Stack(JobsTest):
    def test_prints_where_the_ranks_stand(self):
        path = self.add_job("train", self.start("sleep", "1000"))
        (path / "python").mkdir()
        (path / "python" / "sitecustomize.py").write_bytes(SITECUSTOMIZE.read_bytes())
        env = {**os.environ, "PYTHONPATH": str(path / "python"), "TANDEM_STACK_DIR": str(path / "stacks")}
        script = self.folder / "train.py"
        script.write_text("import sys, time\ndef load():\n  print(flush=True); time.sleep(1000)\n"
                          "def reduce():\n  print(flush=True); time.sleep(1000)\n"
                          "load() if sys.argv[1] == '1' else reduce()\n")
        ranks = [self.start(sys.executable, str(script), str(rank), stdout=subprocess.PIPE, env=env) for rank in range(3)]
        for number, rank in enumerate(ranks):
            rank.stdout.readline()
            self.add_event(path, event="start", attempt=0, rank=number, pid=rank.pid)
        result = self.tandem("stack", "train")
        self.assertEqual((result.stderr, result.returncode), ("", 0))
        first, second = result.stdout.split("\n\n")
        self.assertRegex(first, rf'^rank 1\n  pid {ranks[1].pid}: .* s of CPU\n  main thread, most recent call first:\n'
                                rf'      File "{script}", line 3 in load\n      File "{script}", line 6 in <module>$')
        self.assertTrue(second.startswith(f"ranks 0, 2\n  pid {ranks[0].pid}: "), second)
        self.assertEqual(second.count("line 5 in reduce"), 1)

    def test_says_that_no_rank_is_running_yet(self):
        self.add_job("train", self.start("sleep", "1000"))
        self.assertEqual(self.tandem("stack").stdout, "no rank of train is running\n")

    def test_of_a_finished_job_is_an_error(self):
        self.end_job(self.add_job("train"))
        self.assert_error(self.tandem("stack"), 2, "tandem stack: train is not running (succeeded)", "`tandem logs train`")


if __name__ == "__main__":
    unittest.main()

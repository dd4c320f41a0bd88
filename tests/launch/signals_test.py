"""Signals to the launcher while it is not simply waiting for its ranks: none is lost, and nothing is started after one."""

import datetime
import json
import os
import pathlib
import pty
import random
import shutil
import signal
import subprocess
import sys
import unittest

from support import LIMIT, TANDEM, LaunchTest, read_terminal, wait_until

SOAK = "TANDEM_SOAK" in os.environ

# Fails with another text each time.
FICKLE = "import os, time; raise RuntimeError(f'process {os.getpid()} at {time.time_ns()}')"


class SignalTest(LaunchTest):
    def events(self, kind: str = "") -> list[dict]:
        lines = [line for path in self.folder.glob("jobs/*/launch.jsonl") for line in path.read_text().splitlines()]
        return [event for event in map(json.loads, lines) if kind in ("", event["event"])]

    def wait_for(self, kind: str, count: int = 1) -> None:
        wait_until(lambda: len(self.events(kind)) >= count, f"{count} x {kind}")

    def assert_stopped(self, process: subprocess.Popen, number: signal.Signals) -> str:
        """The exit code is that of the signal, and nothing was started after it."""
        _, told = process.communicate(timeout=LIMIT)
        self.assertEqual(process.returncode, 128 + number, told)
        kinds = [event["event"] for event in self.events()]
        self.assertEqual(set(kinds[kinds.index("signal"):]) - {"signal", "exit"}, {"end"}, kinds)
        end = self.events("end")[0]
        self.assertEqual((end["outcome"], end["exit_code"]), ("stopped", 128 + number))
        self.assert_nothing_left()
        return told


class Remembered(SignalTest):
    def test_while_the_others_are_stopped_after_a_failure(self):
        script = "trap '' TERM; [ $RANK = 1 ] && exit 3; exec sleep 1000"
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(number):
                process = self.start("run", "-n", "2", "--max-restarts", "5", "--shutdown-timeout", "1h", "sh", "-c", script,
                                     env={"TANDEM_STATE_DIR": f"{self.folder}/jobs"})
                self.wait_for("exit")
                process.send_signal(number)
                self.assertIn("tandem: rank 1 failed: exit code 3", self.assert_stopped(process, number))
                self.job_folder().rename(self.folder / f"done{number}")

    def test_in_json_with_the_failure_before_it(self):
        script = "trap '' TERM; [ $RANK = 1 ] && exit 3; exec sleep 1000"
        process = self.start("run", "--json", "-n", "2", "--shutdown-timeout", "1h", "sh", "-c", script)
        self.wait_for("exit")
        process.send_signal(signal.SIGTERM)
        told = json.loads(self.assert_stopped(process, signal.SIGTERM).splitlines()[-1])
        self.assertEqual((told["outcome"], told["exit_code"], told["failure"]["rank"], told["failure"]["exit_code"]), ("stopped", 143, 1, 3))

    def test_while_leftovers_are_stopped(self):
        for code in (0, 3):
            with self.subTest(code):
                child = "setsid sh -c 'trap \"\" TERM; touch up; exec sleep 1000' & until [ -e up ]; do :; done"
                process = self.start("run", "--max-restarts", "5", "sh", "-c", f"{child}; rm up; exit {code}")
                while "behind" not in (line := process.stderr.readline()):
                    self.assertNotEqual(line, "")
                process.send_signal(signal.SIGTERM)
                self.assert_stopped(process, signal.SIGTERM)
                self.job_folder().rename(self.folder / f"done{code}")

    def test_in_the_pause_before_a_restart(self):
        process = self.start("run", "--max-restarts", "1000", sys.executable, "-c", FICKLE)
        wait_until(lambda: any(event["pause"] >= 0.4 for event in self.events("restart")), "a longer pause")
        process.send_signal(signal.SIGINT)
        self.assert_stopped(process, signal.SIGINT)

    def test_while_ranks_are_started(self):
        many = 400
        process = self.start("run", "-n", str(many), "sh", "-c", "[ $RANK = 0 ] && kill -TERM $PPID; exec sleep 1000")
        self.assert_stopped(process, signal.SIGTERM)
        self.assertLess(len(self.events("start")), many)

    def test_to_suspend_beside_others(self):
        """The terminal is resized in the moment of Ctrl-Z."""
        process = self.start("run", "-n", "2", "sleep", "1000")
        self.wait_for("start", 2)
        for _ in range(3):
            process.send_signal(signal.SIGTSTP)
            process.send_signal(signal.SIGWINCH)
            wait_until(lambda: self.state_of(process.pid) == "T", "the process that a shell waits for is stopped")
            process.send_signal(signal.SIGCONT)
            wait_until(lambda: "T" not in self.states_below(process.pid), "it goes on, and so do the ranks")
        process.terminate()
        self.assert_stopped(process, signal.SIGTERM)

    def state_of(self, pid: int) -> str:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]

    def states_below(self, pid: int) -> str:
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return self.state_of(pid) + "".join(self.states_below(int(child)) for child in children)

    def test_before_the_first_rank_is_started(self):
        def pending() -> None:
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
            os.kill(os.getpid(), signal.SIGTERM)

        process = self.start("run", "-n", "2", "sleep", "1000", preexec_fn=pending)
        self.assert_stopped(process, signal.SIGTERM)
        self.assertEqual(self.events("start"), [])

    def test_while_the_last_output_waits_for_a_reader(self):
        for code in (0, 3):
            with self.subTest(code):
                process = self.start("run", "sh", "-c", f"head -c 200000 /dev/zero; exit {code}")
                self.wait_for("exit")
                process.send_signal(signal.SIGTERM)
                self.assertEqual(process.wait(timeout=LIMIT), 143)
                self.assertEqual(self.events("end")[0]["exit_code"], 143)
                self.job_folder().rename(self.folder / f"done{code}")

    def test_a_second_one_kills_a_rank_that_stays(self):
        process = self.start("run", "--max-restarts", "5", "--shutdown-timeout", "1h", "sh", "-c",
                             "trap 'echo stays' TERM INT; echo ready; while :; do sleep 0.01; done")
        self.assertEqual(process.stdout.readline(), "ready\n")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.stdout.readline(), "stays\n")
        process.send_signal(signal.SIGINT)
        self.assert_stopped(process, signal.SIGTERM)


class Terminal(SignalTest):
    def test_interrupts_the_ranks_once(self):
        """Ctrl-C, typed: a second signal would kill the ranks before they have finished."""
        script = "trap 'sleep 0.2; echo finished; exit 5' INT; echo ready; while :; do sleep 0.01; done"
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.folder)
            os.execve(TANDEM, ["tandem", "run", "sh", "-c", script], self.env)
        shown = b""
        while b"ready" not in shown:
            shown += os.read(terminal, 1000)
        os.write(terminal, b"\x03")
        shown += read_terminal(terminal)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 130)
        self.assertIn(b"finished", shown)
        self.assertEqual([event["signal"] for event in self.events("signal")], [signal.SIGINT])
        self.assert_nothing_left()


class RestartStorms(SignalTest):
    def test_pause_and_grow_their_pause_whatever_the_failure_says(self):
        for launcher in ([], ["torchrun", "--no-python"]):
            with self.subTest(launcher):
                process = self.start("run", *launcher, "--max-restarts", "1000", sys.executable, "-c", FICKLE)
                self.wait_for("start", 5)
                process.terminate()
                self.assert_stopped(process, signal.SIGTERM)
                self.assertEqual([event["pause"] for event in self.events("restart")][:4], [0, 0.1, 0.2, 0.4])
                moments = [(event["event"], datetime.datetime.fromisoformat(event["time"].rstrip("Z")), event.get("pause"))
                           for event in self.events() if event["event"] in ("restart", "start")]
                for (kind, before, pause), (_, after, _) in zip(moments, moments[1:]):
                    if kind == "restart":
                        self.assertGreaterEqual((after - before).total_seconds(), pause - 0.002)
                self.job_folder().rename(self.folder / f"done{len(launcher)}")


class Storms(SignalTest):
    """Signals at random moments of the start, a failure, a restart and the shutdown."""

    PROGRAMS = (
        ["sleep", "1000"],
        ["sh", "-c", "trap 'sleep 0.05; exit 0' TERM INT HUP; sleep 1000 & wait"],
        ["sh", "-c", "trap '' TERM INT HUP; [ $RANK = 1 ] && exit 3; exec sleep 1000"],
        ["sh", "-c", "exit $((TORCHELASTIC_RESTART_COUNT % 100 + 1))"],
        ["sh", "-c", "sleep 0.05; exit 3"],
        ["sh", "-c", "setsid sh -c 'trap \"\" TERM; sleep 1000' & [ $RANK = 1 ] && exit 3; sleep 0.02"],
        ["sh", "-c", "head -c 300000 /dev/zero; exit $RANK"],
        ["sh", "-c", "exit 0"],
    )

    def run_on(self, process: subprocess.Popen, seconds: float) -> None:
        try:
            process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            pass

    def send_storm(self, process: subprocess.Popen, numbers: random.Random) -> tuple[set[int], str]:
        """The signals, and when the first had been sent."""
        sent, after = set(), ""
        for _ in range(numbers.randint(1, 3)):
            number = numbers.choice((signal.SIGTERM, signal.SIGINT, signal.SIGHUP))
            process.send_signal(number)  # does nothing if it has been waited for
            sent.add(number)
            after = after or datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
            self.run_on(process, numbers.choice((0, numbers.uniform(0, 0.05))))
        return sent, after

    def round(self, numbers: random.Random) -> bool:
        """Whether the signals came in time to decide the exit code."""
        program = numbers.choice(self.PROGRAMS)
        process = self.start("run", "-n", "2", "--max-restarts", "100", "--min-uptime", numbers.choice("01"), "--shutdown-timeout", "5s", *program)
        self.run_on(process, numbers.choice((0, numbers.uniform(0, 0.02), numbers.uniform(0, 0.5))))
        sent, after = self.send_storm(process, numbers)
        try:
            code = process.wait(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            self.fail(f"{program} goes on after {sent}")
        stopped = code in {128 + number for number in sent} | {-number for number in sent}
        ends = self.events("end")
        self.assertTrue(stopped or (ends and ends[0]["time"] <= after), (program, sent, after, code, self.events()))
        kinds = [event["event"] for event in self.events()]
        if "signal" in kinds:
            self.assertEqual({"start", "restart"} & set(kinds[kinds.index("signal"):]), set(), kinds)
        self.assert_nothing_left(limit=10)
        self.close(process)
        shutil.rmtree(self.folder / "jobs", ignore_errors=True)
        return stopped

    def test_end_the_job_with_the_code_of_a_signal_and_leave_nothing(self):
        rounds = 500 if SOAK else 30
        seed = random.randrange(2**32)
        with self.subTest(seed=seed):
            numbers = random.Random(seed)
            decided = sum(self.round(numbers) for _ in range(rounds))
            print(f"seed {seed}: {decided} of {rounds} storms came before the job had ended")
            self.assertGreater(decided, rounds // 2)


if __name__ == "__main__":
    unittest.main()

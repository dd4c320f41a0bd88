"""Ranks that hang are reported, and jobs can be inspected, followed and stopped from another terminal."""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import unittest

from support import LIMIT, TANDEM, LaunchTest, wait_until

# Rank 1 never reaches the barrier where the others wait: it sleeps, or stops itself.
STUCK = """
import os, signal, sys, time
def wait_in_barrier():
    time.sleep(1000)
def read_validation_set():
    os.kill(os.getpid(), signal.SIGSTOP) if sys.argv[1:] == ["stop"] else time.sleep(1000)
def compute():
    while True: pass
print("begun", flush=True)
if os.environ["RANK"] == "1": read_validation_set()
elif sys.argv[1:] == ["spin"]: compute()
else: wait_in_barrier()
"""

# Has a use of its own for the signals that users know.
OWN_SIGNALS = """
import os, signal
for name in (signal.SIGUSR1, signal.SIGUSR2):
    signal.signal(name, lambda number, _: print("caught", number, flush=True))
print("begun", flush=True)
while True:
    signal.pause()
"""


class StallTest(LaunchTest):
    def setUp(self):
        super().setUp()
        self.write("stuck.py", STUCK)
        self.write("own_signals.py", OWN_SIGNALS)

    def start_stuck(self, *arguments, ranks=3, limit="1s") -> subprocess.Popen:
        return self.start("run", "-n", str(ranks), "--stall-timeout", limit, *arguments, stdout=subprocess.DEVNULL)

    def read_until(self, process: subprocess.Popen, pattern: str) -> str:
        text = ""
        while not re.search(pattern, text):
            line = process.stderr.readline()
            self.assertTrue(line, f"{pattern} never came: {text}")
            text += line
        return text

    def stop(self, process: subprocess.Popen) -> str:
        process.terminate()
        return process.communicate(timeout=LIMIT)[1]


class Stall(StallTest):
    def test_of_a_stopped_rank_is_told_with_the_cure_and_the_stacks_of_the_others(self):
        process = self.start_stuck(sys.executable, "stuck.py", "stop")
        told = self.read_until(process, r"ranks 0, 2\n(?s:.*)<module>\n")
        pid = re.search(r"tandem: rank 1 has been stopped \(SIGSTOP\) for .*: kill -CONT (\d+)\n", told)[1]
        self.assertIn(f"  pid {pid}: stopped by a signal", told)
        self.assertIn(f'File "{self.folder}/stuck.py", line 4 in wait_in_barrier', told)
        os.kill(int(pid), signal.SIGCONT)  # it then falls off its end, and the job waits for the others only
        wait_until(lambda: not pathlib.Path(f"/proc/{pid}").exists(), "the cure works")
        self.assertNotIn("stopped (SIGSTOP)", self.stop(process))

    def test_of_all_ranks_names_the_function_and_the_line_where_the_odd_one_sleeps(self):
        process = self.start_stuck(sys.executable, "stuck.py")
        told = self.read_until(process, r"ranks 0, 2\n(?s:.*)<module>\n")
        self.assertRegex(told, r"tandem: no rank .* for \d+(ms|s)\nrank 1\n")
        odd, others = told.split("ranks 0, 2\n")
        self.assertIn(f'File "{self.folder}/stuck.py", line 6 in read_validation_set', odd)
        self.assertIn(f'File "{self.folder}/stuck.py", line 4 in wait_in_barrier', others)
        self.assertNotIn("tandem: no rank ", self.stop(process))  # said once

    def test_of_one_rank_while_the_others_use_the_processor_is_told(self):
        process = self.start_stuck(sys.executable, "stuck.py", "spin", ranks=2)
        told = self.read_until(process, r"in read_validation_set")
        self.assertRegex(told, r"tandem: rank 1 has been idle for \d+s, sleeping .*\n")
        self.assertIn("line 8 in compute", told)
        self.stop(process)

    def test_of_other_programs_is_told_by_the_kernel(self):
        process = self.start_stuck("sleep", "1000", ranks=2, limit="200ms")
        told = self.read_until(process, r"each|a thread")
        self.assertRegex(told, r"ranks 0, 1\n  pid \d+: sleeping")
        self.stop(process)

    def test_ends_the_job_when_asked_to(self):
        result = self.run_ranks("-n", "2", "--stall-timeout", "300ms", "--on-stall", "stop", sys.executable, "stuck.py")
        self.assertEqual(result.returncode, 7)
        self.assertRegex(result.stderr, r"tandem: 2 ranks, \d+\.\d s, stopped: stalled\n$")
        self.assertEqual(result.stderr.count("tandem: no rank "), 1)
        self.assert_nothing_left()
        events = [json.loads(line) for line in (self.job_folder() / "launch.jsonl").read_text().splitlines()]
        self.assertEqual((events[-1]["outcome"], events[-1]["exit_code"]), ("stalled", 7))
        self.assertEqual(sum(event["event"] == "stall" for event in events), 1)

    def test_ends_ranks_that_do_not_listen_without_burning_a_core(self):
        script = "trap '' TERM; sleep 1000"
        process = self.start("run", "--stall-timeout", "100ms", "--on-stall", "stop", "--shutdown-timeout", "1s", "sh", "-c", script)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(process.returncode, 7)
        self.assertLess(usage.ru_utime + usage.ru_stime, 0.5)  # of the second that it waited


class JobTest(StallTest):
    def detach(self, *arguments, **options) -> str:
        """The name of a detached job after all its ranks have started."""
        result = self.run_ranks("--detach", *arguments, **options)
        self.assertEqual(result.returncode, 0, result.stderr)
        name = result.stdout.strip()
        ranks = int(arguments[arguments.index("-n") + 1]) if "-n" in arguments else 1
        logs = [self.folder / "jobs" / name / f"rank{rank}.log" for rank in range(ranks)]
        wait_until(lambda: all(log.exists() and "begun" in log.read_text() for log in logs), "all have begun")
        return name

    def state(self, name: str) -> dict:
        jobs = json.loads(self.run_tandem("ps", "--all", "--json").stdout)
        return next(job for job in jobs if job["name"] == name)


class Stack(JobTest):
    def stack_twice(self, *arguments) -> str:
        name = self.detach(*arguments)
        first = self.run_tandem("stack", name)
        second = self.run_tandem("stack", name)
        self.assertEqual((first.returncode, second.returncode), (0, 0), first.stderr)
        self.assertEqual(self.state(name)["state"], "running")
        self.log_text = (self.folder / "jobs" / name / "rank0.log").read_text()
        self.run_tandem("stop", name, check=True)
        return second.stdout

    def test_does_not_end_a_python_program(self):
        told = self.stack_twice("-n", "2", sys.executable, "stuck.py")
        self.assertIn("in read_validation_set", told)
        self.assertIn("in wait_in_barrier", told)

    def test_leaves_the_signals_of_a_program_alone(self):
        self.assertIn("in <module>", self.stack_twice(sys.executable, "own_signals.py"))
        self.assertEqual(self.log_text, "begun\n")

    def test_does_not_end_what_knows_nothing_of_it(self):
        self.assertRegex(self.stack_twice("sh", "-c", "echo begun; exec sleep 1000"), r"^rank 0\n  pid \d+: sleeping")
        self.assertRegex(self.stack_twice("--no-inject", sys.executable, "stuck.py"), r"^rank 0\n  pid \d+: sleeping")

    def test_tells_of_children_too(self):
        told = self.stack_twice(sys.executable, "-c", "import subprocess, sys\n"
                                "subprocess.run([sys.executable, '-c', 'import time\\ndef in_child():\\n  print(\"begun\", flush=True); time.sleep(1000)\\nin_child()'])")
        self.assertRegex(told, r"child python\S*:\n(?s:.*)in in_child")


class Jobs(JobTest):
    def test_are_found_by_name_when_several_run(self):
        first = self.detach("-n", "2", sys.executable, "stuck.py")
        second = self.detach(sys.executable, "own_signals.py")
        listed = self.run_tandem("ps").stdout.splitlines()[1:]
        self.assertEqual([line.split()[:3] for line in listed], [[second, "running", "1"], [first, "running", "2"]])
        self.assertIn("in read_validation_set", self.run_tandem("stack", "stuck").stdout)
        self.assertNotIn("in read_validation_set", self.run_tandem("stack").stdout)  # the newest
        self.assertEqual(self.run_tandem("logs", "--rank", "1", "stuck").stdout, "begun\n")
        self.assertEqual(self.run_tandem("stop", "stuck").returncode, 0)
        self.assertEqual((self.state(first)["state"], self.state(second)["state"]), ("stopped", "running"))
        self.assertEqual(self.run_tandem("stop").returncode, 0)
        self.assert_nothing_left()

    def test_are_followed_to_their_end(self):
        name = self.detach("-n", "2", sys.executable, "-c", "import os\nprint('begun', flush=True)\n"
                           "while not os.path.exists('go'): pass\nprint('end of', os.environ['RANK'])")
        follower = self.start("logs", "-f", "--rank", "1", name)
        self.assertEqual(follower.stdout.readline(), "begun\n")
        self.write("go", "")
        self.assertEqual(follower.communicate(timeout=LIMIT)[0], "end of 1\n")
        self.assertEqual(self.state(name)["state"], "succeeded")
        self.assertEqual(self.run_tandem("logs", "-f", name).stdout, "begun\nend of 0\n")  # of a finished one

    def test_are_kept_for_a_while(self):
        for _ in range(64):
            self.run_ranks("-q", "true")
        left = len(list((self.folder / "jobs").iterdir()))
        self.assertTrue(50 <= left <= 60, left)


class Detached(JobTest):
    def test_job_holds_nothing_of_its_caller(self):
        script = f"'{TANDEM}' run --detach sh -c 'echo begun; exec sleep 1000' | cat; '{TANDEM}' ps --json"
        result = subprocess.run(["sh", "-c", script], env=self.env, cwd=self.folder, capture_output=True, text=True, timeout=LIMIT)
        name, jobs = result.stdout.split("\n", 1)  # both pipes have ended though the job runs
        (job,) = json.loads(jobs)
        self.assertEqual((job["name"], job["state"]), (name, "running"))
        self.run_tandem("stop", check=True)
        self.assert_nothing_left()

    def test_job_has_its_own_session_and_survives_a_hangup(self):
        name = self.detach("sh", "-c", "echo begun; exec sleep 1000")
        launcher = self.state(name)["pid"]
        self.assertEqual(os.getsid(launcher), launcher)
        os.kill(launcher, signal.SIGHUP)
        self.assertEqual(self.run_tandem("stack", name).returncode, 0)
        self.assertEqual(self.state(name)["state"], "running")
        self.run_tandem("stop", name, check=True)
        self.assertEqual(self.state(name)["state"], "stopped")
        self.assert_nothing_left()

    def test_job_tells_why_it_failed(self):
        name = self.detach(sys.executable, "-c", "print('begun', flush=True)\nraise ValueError('bad shard')")
        wait_until(lambda: self.state(name)["state"] == "failed", "it has failed")
        self.assertIn("ValueError: bad shard", self.run_tandem("logs", "--rank", "launcher", name).stdout)

    def test_job_that_cannot_start_says_so_to_the_caller(self):
        result = self.run_ranks("--detach", "./not_there")
        self.assertEqual((result.returncode, result.stdout), (4, ""))
        self.assertIn("error: cannot start ./not_there: ", result.stderr)
        self.assertIn("error: ", self.run_ranks("--detach", "-n", "0", "true").stderr)
        self.assert_nothing_left()


if __name__ == "__main__":
    unittest.main()

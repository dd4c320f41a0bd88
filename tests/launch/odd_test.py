"""Unusual environments and misbehaving ranks: the job continues where it can, and otherwise ends with an error message."""

import json
import os
import pathlib
import pty
import resource
import signal
import subprocess
import sys
import unittest

from support import LIMIT, TANDEM, LaunchTest, read_terminal, wait_until

STUBBORN = "trap 'echo stays' TERM; echo ready; while :; do sleep 0.01; done"

# A daemon by the book: two forks, a session of its own; it holds the pipes of its rank.
DAEMON = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(1000)
    os._exit(0)
print("started")
"""


class OddTest(LaunchTest):
    def in_shell(self, script: str, **options) -> subprocess.CompletedProcess:
        """Runs a bash script with a function `tandem`."""
        return self.run_tandem("-c", f'tandem() {{ "{TANDEM}" "$@"; }}; {script}', program="bash", **options)

    def in_namespace(self, script: str) -> subprocess.CompletedProcess:
        """Runs an sh script in a mount namespace, with $TANDEM and a mount point $FOLDER."""
        if subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode != 0:
            self.skipTest("no right to make a mount namespace")
        (self.folder / "mounted").mkdir()
        env = {"TANDEM": str(TANDEM), "FOLDER": str(self.folder / "mounted")}
        return self.run_tandem("-rm", "sh", "-c", f"set -e; {script}", program="unshare", env=env)

    def events(self) -> list[dict]:
        return [json.loads(line) for line in (self.job_folder() / "launch.jsonl").read_text().splitlines()]


class Streams(OddTest):
    def test_that_are_closed_are_no_place_for_our_files(self):
        result = self.in_shell("tandem run -n 2 sh -c 'echo out $RANK; cat; echo error >&2' <&- >&- 2>&-")
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))
        self.assertEqual(self.logs(2), ["out 0\nerror\n", "out 1\nerror\n"])
        self.assertEqual([event["event"] for event in self.events()], ["start", "start", "exit", "exit", "end"])

    def test_that_are_closed_or_full_do_not_disturb_the_ranks(self):
        for target, code in ((">&-", 0), (">/dev/full", 8)):
            result = self.in_shell(f"tandem run sh -c 'for i in 1 2 3; do echo $i || exit 9; sleep 0.01; done; touch done' {target}")
            self.assertEqual(result.returncode, code, result.stderr)
            (self.folder / "done").unlink()
        self.assertRegex(result.stderr, r"tandem: .*standard output \(No space left on device\).* /\S+")

    def test_that_are_full_are_told_and_never_hide_a_failure(self):
        for script, code in (("echo 1", 8), ("echo 1; [ $RANK = 1 ] && exec sleep 1000; exit 3", 3), ("exit 0", 0)):
            result = self.in_shell(f"tandem run -n 2 --json sh -c '{script}' >/dev/full")
            facts = json.loads(result.stderr.splitlines()[-1])
            self.assertEqual((result.returncode, facts["exit_code"]), (code, code), result.stderr)
            self.assertEqual(facts["outcome"], "failed" if code else "succeeded")
            self.assertEqual(facts.get("output_lost"), "No space left on device" if "echo" in script else None)
        self.assertEqual(self.in_shell("tandem run --json true 2>/dev/full").returncode, 8)
        unread = 'tandem run sh -c \'trap "" PIPE; for i in 1 2 3; do echo $i; sleep 0.01; done; exit 0\' | true; exit ${PIPESTATUS[0]}'
        self.assertEqual(self.in_shell(unread).returncode, 0)

    def test_may_be_closed_by_a_rank_that_goes_on(self):
        result = self.run_ranks("-n", "2", "sh", "-c", "exec >&- 2>&-; [ $RANK = 1 ] && exit 0; sleep 0.05; exit 3")
        self.assertEqual(result.returncode, 3)
        self.assertIn("no output", result.stderr)

    def test_keep_our_lines_apart_from_half_a_line_of_a_rank(self):
        ours, theirs = pty.openpty()
        process = self.start("run", "sh", "-c", "printf '10%%'; exit 3", stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        shown = read_terminal(ours)
        self.assertEqual(process.wait(timeout=LIMIT), 3)
        self.assertIn(b"\r\n10%\r\ntandem: rank 0 failed", shown)


class Folder(OddTest):
    def test_that_is_full_loses_the_logs_and_not_the_job(self):
        result = self.in_namespace("mount -t tmpfs -o size=24k none $FOLDER; export TANDEM_STATE_DIR=$FOLDER/jobs;"
                                   "$TANDEM run --no-inject sh -c 'yes | head -n 50000'")
        self.assertEqual((result.returncode, len(result.stdout)), (0, 100_000), result.stderr)
        self.assertRegex(result.stderr, r"tandem: .*local rank 0 .*No space left on device")

    def test_that_cannot_be_made_is_an_error(self):
        for options, reason in (("ro", "Read-only file system"), ("nr_inodes=1", "No space left on device")):
            with self.subTest(reason):
                result = self.in_namespace(f"mount -t tmpfs -o {options} none $FOLDER; unset TANDEM_STATE_DIR; TMPDIR=$FOLDER $TANDEM run true")
                (self.folder / "mounted").rmdir()
                self.assert_error(result, 4, f"{self.folder}/mounted/tandem-0", reason, "TANDEM_STATE_DIR")

    def test_without_a_free_inode_is_an_error_wherever_they_run_out(self):
        program = "-n 2 sh -c 'echo hi'"
        variables = 'export TANDEM_STATE_DIR=$FOLDER/jobs; unset TMPDIR'
        script = (f"{variables}; for count in $(seq 1 24); do mount -t tmpfs -o nr_inodes=$count none $FOLDER; code=0;"
                  f"timeout 60 $TANDEM run -q $OPTIONS {program} >out 2>err || code=$?;"
                  "echo $count $code $(wc -l <out) $(wc -l <err) $(grep -c '^error: .*: No space left on device' err)"
                  " $(grep -c '^hint: .*' err); umount $FOLDER; done")
        for options in ("", "--no-inject", "--log-dir $FOLDER/logs -r 3"):
            with self.subTest(options):
                result = self.in_namespace(f'OPTIONS="{options}"; {script}')
                (self.folder / "mounted").rmdir()
                rows = [tuple(map(int, line.split()))[1:] for line in result.stdout.splitlines()]
                fine = (0, 0, 0, 0, 0) if "-r 3" in options else (0, 1, 0, 0, 0)
                enough = rows.index(fine)
                self.assertEqual(rows, [(4, 0, 2, 1, 1)] * enough + [fine] * (24 - enough), result.stderr)
                self.assertGreater(enough, 3)

    def test_of_logs_is_not_left_by_an_id(self):
        for identity, name in (("../../x", "_._.._x"), ("/etc/x", "_etc_x"), ("..", "_."), ("a b", "a_b")):
            with self.subTest(identity):
                logs = self.folder / "deep" / "er" / "logs"
                result = self.run_ranks("--rdzv-id", identity, "--log-dir", logs, "sh", "-c", "echo $TORCHELASTIC_RUN_ID")
                self.assertEqual((result.returncode, result.stdout), (0, f"{identity}\n"), result.stderr)
                [made] = logs.iterdir()
                self.assertRegex(made.name, rf"^{name}_[0-9a-f]+$")
                made.rename(self.folder / f"seen{len(identity)}{name}")
        self.assertEqual([path.name for path in (self.folder / "deep").iterdir()], ["er"])
        for identity, fact in (("", "empty"), ("a\x1b[2J", "unprintable")):
            self.assert_error(self.run_ranks("--rdzv-id", identity, "true"), 2, "rdzv-id", fact)

    def test_that_was_removed_under_us_is_an_error(self):
        result = self.in_shell("mkdir gone; cd gone; rmdir ../gone; tandem run true")
        self.assert_error(result, 4, "folder", "(No such file or directory)", "`cd`")

    def test_of_a_job_that_did_not_start_says_so(self):
        self.run_ranks("sh", "-c", "exit 0")
        self.run_ranks("-n", "4", "true", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (24, 24)))
        states = [line.split()[1] for line in self.run_tandem("ps", "--all").stdout.splitlines()[1:]]
        self.assertEqual(states, ["failed", "succeeded"])

    def test_of_processes_may_be_missing(self):
        if b"__asan_init" in TANDEM.read_bytes():
            self.skipTest("AddressSanitizer needs /proc")
        result = self.in_namespace("mount -t tmpfs none /proc; $TANDEM run -n 2 echo hi")
        self.assertEqual((result.returncode, result.stdout), (0, "hi\n"), result.stderr)


class Namespace(OddTest):
    def test_of_pids_that_proc_does_not_show_costs_no_bystander_its_life(self):
        if subprocess.run(["unshare", "-p", "-f", "true"], capture_output=True).returncode != 0:
            self.skipTest("no right to make a PID namespace")
        if b"__asan_init" in TANDEM.read_bytes():
            self.skipTest("AddressSanitizer needs /proc")
        # /proc shows the pids outside. Inside, the bystanders have the numbers that the ranks will have outside.
        last = int(pathlib.Path("/proc/sys/kernel/ns_last_pid").read_text())
        script = (f"echo {last + 300} >/proc/sys/kernel/ns_last_pid; i=0; pids=;"
                  "while [ $i -lt 400 ]; do sleep 1000 & pids=\"$pids $!\"; i=$((i + 1)); done;"
                  f"'{TANDEM}' run -n 2 sh -c 'setsid sleep 1000 & sleep 1001 & echo started'; echo $?;"
                  f"'{TANDEM}' run sh -c 'echo $$ >rank; exec sleep 1000' & until [ -s rank ]; do sleep 0.01; done; kill -9 $!;"
                  "while kill -0 $(cat rank) 2>/dev/null; do sleep 0.01; done;"
                  "left=0; for pid in $pids; do kill -0 $pid && left=$((left + 1)); done; echo $left")
        result = self.run_tandem("-p", "-f", "sh", "-c", script, program="unshare")
        self.assertEqual(result.stdout, "started\n0\n400\n", result.stderr)
        self.assertIn("tandem: the ranks left processes behind", result.stderr)


class Limits(OddTest):
    def test_of_open_files_are_named(self):
        result = self.in_shell("ulimit -n 24; tandem run -n 8 sleep 1000")
        self.assertRegex(result.stderr, r"^error: .*: Too many open files\nhint: .*ulimit -n.*\n$")
        self.assertEqual(result.returncode, 4)
        self.assert_nothing_left()

    def test_that_are_just_met_are_enough(self):
        self.assertEqual(self.in_shell("ulimit -n 64; tandem run -q -n 8 echo hi").stdout, "hi\n")

    def test_are_none_for_many_ranks(self):
        result = self.run_ranks("-q", "-n", "300", "--tee", "all", "echo", "hi")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(len(list(self.job_folder().glob("rank*.log"))), 300)

    def test_are_none_for_long_command_lines_and_large_environments(self):
        large = {f"LARGE{i}": "x" * 100_000 for i in range(10)}
        words = [str(i) for i in range(50_000)]
        result = self.run_ranks("-q", "sh", "-c", "echo $# ${#LARGE9}", "sh", *words, env=large)
        self.assertEqual(result.stdout, "50000 100000\n", result.stderr)

    def test_are_none_for_bytes_that_are_no_text(self):
        result = subprocess.run([TANDEM, "run", "-q", "sh", "-c", 'printf %s "$1$ODD"', "sh", b"\xff\n"],
                                env={**self.env, "ODD": b"\xfe"}, cwd=self.folder, capture_output=True, timeout=LIMIT)
        self.assertEqual((result.stdout, result.stderr), (b"\xff\n\xfe", b""))
        (job,) = json.loads(self.run_tandem("ps", "--all", "--json").stdout)
        self.assertEqual(job["command"][:2], ["sh", "-c"])


class Shell(OddTest):
    def test_that_becomes_tandem_keeps_the_processes_it_had(self):
        script = (f'sleep 1000 & echo $! > sleeper; exec > >(while read -r line; do sleep 0.01; echo "$line"; done > copy; touch copied)\n'
                  f'exec {TANDEM} run seq 1 30')
        shell = subprocess.run(["bash", "-c", script], cwd=self.folder, env=self.env, timeout=LIMIT)
        self.assertEqual(shell.returncode, 0)
        os.kill(int((self.folder / "sleeper").read_text()), signal.SIGTERM)  # fails if it is gone
        wait_until((self.folder / "copied").exists, "the output is copied")
        self.assertEqual((self.folder / "copy").read_text().split(), [str(i) for i in range(1, 31)])


class Ranks(OddTest):
    def test_that_become_daemons_are_ended_with_their_job(self):
        result = self.run_ranks("-n", "2", sys.executable, "-c", DAEMON)
        self.assertEqual((result.returncode, result.stdout), (0, "started\n"))
        self.assertRegex(result.stderr, r"tandem: the ranks left 2 processes behind[^\n]*, [^\n]*\n")
        self.assert_nothing_left()

    def test_that_leave_a_family_behind_leave_nobody(self):
        self.write("deep.py", "import os, time\n"
                              "for depth in range(6):\n"
                              "    if os.fork():\n"
                              "        break\n"
                              "if depth == 0: os._exit(0)\n"
                              "os.setsid() if depth % 2 else None\n"
                              "time.sleep(1000)\n")
        self.assertEqual(self.run_ranks(sys.executable, "deep.py").returncode, 0)
        self.assert_nothing_left(limit=1)

    def test_that_kill_their_launcher_go_with_it(self):
        process = self.start("run", "-n", "2", "sh", "-c", "sleep 1000 & [ $RANK = 1 ] && kill -9 $PPID; wait")
        self.assertEqual(process.wait(timeout=LIMIT), -signal.SIGKILL)
        self.assert_nothing_left()

    def test_go_on_while_their_launcher_is_stopped(self):
        process = self.start("run", "sh", "-c", "echo begun; until [ -e go ]; do sleep 0.01; done; echo went on; touch done")
        self.assertEqual(process.stdout.readline(), "begun\n")
        process.send_signal(signal.SIGSTOP)
        self.write("go", "")
        wait_until(lambda: (self.folder / "done").exists(), "the rank goes on")
        process.send_signal(signal.SIGCONT)
        self.assertEqual(process.communicate(timeout=LIMIT)[0], "went on\n")
        self.assertEqual(process.returncode, 0)

    def test_that_ignore_the_first_request_are_killed_at_the_second(self):
        process = self.start("run", "sh", "-c", STUBBORN)
        self.assertEqual(process.stdout.readline(), "ready\n")
        process.terminate()
        self.assertEqual(process.stdout.readline(), "stays\n")
        process.terminate()
        self.assertEqual(process.wait(timeout=LIMIT), 128 + signal.SIGTERM)
        self.assert_nothing_left()


if __name__ == "__main__":
    unittest.main()

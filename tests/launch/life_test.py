"""Supervision of ranks: start, exit, signals and restarts."""

import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import unittest

from support import LIMIT, TANDEM, LaunchTest, wait_until

PRINT_RANK = ["sh", "-c", 'echo "$RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE"']


class D9(LaunchTest):
    def test_as_many_ranks_start_as_were_asked_for_and_it_is_said(self):
        result = self.run_ranks("-n", "3", *PRINT_RANK)
        self.assertEqual(result.stdout, "0 3 0 3\n")
        self.assertEqual(self.logs(3), ["0 3 0 3\n", "1 3 1 3\n", "2 3 2 3\n"])
        start, end = result.stderr.splitlines()[-2:]
        self.assertRegex(start, rf"^tandem: sh-[0-9a-f]+: 3 ranks on cpu, port \d+, logs in {self.job_folder()}$")
        self.assertRegex(end, r"^tandem: 3 ranks, \d+\.\d s, all succeeded$")
        self.assertEqual(result.returncode, 0)


class Ends(LaunchTest):
    def test_starts_one_rank_by_default(self):
        self.assertEqual(self.run_ranks(*PRINT_RANK).stdout, "0 1 0 1\n")

    def test_gives_every_rank_the_same_program_and_arguments(self):
        self.run_ranks("-n", "2", "sh", "-c", 'printf "%s|" "$@"; echo', "sh", "--lr", "a b", "", "-n")
        self.assertEqual(self.logs(2), ["--lr|a b||-n|\n"] * 2)

    def test_stops_the_others_when_one_fails_and_ends_with_its_code(self):
        result = self.run_ranks("-n", "3", "sh", "-c", '[ "$RANK" = 1 ] && exit 42; exec sleep 1000')
        self.assertEqual(result.returncode, 42)
        self.assertRegex(result.stderr, r"tandem: 3 ranks, \d+\.\d s, rank 1 failed: exit code 42\n$")

    def test_kills_ranks_that_do_not_stop_in_time_after_a_failure(self):
        script = "trap '' TERM; [ $RANK = 1 ] && exit 3; exec sleep 1000"
        result = self.run_ranks("-n", "2", "--shutdown-timeout", "100ms", "sh", "-c", script)
        self.assertEqual(result.returncode, 3)

    def test_wakes_a_stopped_rank_so_that_it_can_stop(self):
        script = "[ $RANK = 1 ] && { kill -STOP $$; exit 0; }; until grep -q '^State:.T' /proc/$(cat pid)/status; do :; done; exit 5"
        result = self.run_ranks("-n", "2", "--shutdown-timeout", "1h", "sh", "-c", f"[ $RANK = 1 ] && echo $$ >pid; [ $RANK = 1 ] || until [ -s pid ]; do :; done; {script}")
        self.assertEqual(result.returncode, 5)

    def test_stops_what_ranks_left_behind(self):
        result = self.run_ranks("-n", "2", "sh", "-c", "setsid sleep 1000 & exit 0")
        self.assertEqual(result.returncode, 0)
        self.assertRegex(result.stderr, r"tandem: the ranks left 2 processes behind.* sleep 1000 \(process \d+\), ")
        self.assert_nothing_left()

    def test_stops_even_what_forgot_its_environment(self):
        result = self.run_ranks("sh", "-c", "env -i sleep 1000 & echo $!")
        wait_until(lambda: not pathlib.Path(f"/proc/{result.stdout.strip()}").exists(), "the orphan has ended")

    def test_lets_a_cleaner_finish_that_needs_a_moment(self):
        self.run_ranks("sh", "-c", "(sleep 0.1; echo cleaned >mark) & exit 0")
        self.assertEqual((self.folder / "mark").read_text(), "cleaned\n")

    def test_records_what_happened(self):
        self.run_ranks("-n", "2", "sh", "-c", "exit $RANK")
        events = [json.loads(line) for line in (self.job_folder() / "launch.jsonl").read_text().splitlines()]
        self.assertEqual([event["event"] for event in events], ["start", "start", "exit", "exit", "end"])
        self.assertEqual({event["rank"]: event["code"] for event in events if event["event"] == "exit"}, {0: 0, 1: 1})
        self.assertEqual((events[-1]["outcome"], events[-1]["exit_code"]), ("failed", 1))
        self.assertEqual([event["time"] for event in events], sorted(event["time"] for event in events))

    def test_records_a_start_that_failed(self):
        self.write("script", "#!/no/such/interpreter\n")
        self.assertEqual(self.run_ranks("-n", "2", "./script").returncode, 4)
        end = json.loads((self.job_folder() / "launch.jsonl").read_text().splitlines()[-1])
        self.assertEqual((end["event"], end["outcome"], end["exit_code"]), ("end", "failed", 4))

    def test_speaks_json_or_not_at_all_when_told_to(self):
        result = self.run_ranks("--json", "-n", "2", "true")
        told = json.loads(result.stderr)
        self.assertEqual((told["outcome"], told["exit_code"], told["ranks"]), ("succeeded", 0, 2))
        self.assertEqual(self.run_ranks("-q", "true").stderr, "")

    def test_tells_a_failure_in_json(self):
        told = json.loads(self.run_ranks("--json", sys.executable, "-c", "raise ValueError('boom')").stderr.splitlines()[-1])
        self.assertEqual((told["outcome"], told["exit_code"]), ("failed", 1))
        self.assertEqual(told["failure"]["rank"], 0)
        self.assertIn("ValueError: boom", json.dumps(told["failure"]))


class Environment(LaunchTest):
    def test_gives_all_ranks_one_port_and_replaces_what_an_outer_launcher_set(self):
        env = {"RANK": "7", "WORLD_SIZE": "9", "MASTER_PORT": "1", "TORCHELASTIC_USE_AGENT_STORE": "True"}
        self.run_ranks("-n", "2", "sh", "-c", 'echo "$WORLD_SIZE $MASTER_ADDR $MASTER_PORT $TORCHELASTIC_USE_AGENT_STORE"', env=env)
        first, second = self.logs(2)
        self.assertEqual(first, second)
        self.assertRegex(first, r"^2 127\.0\.0\.1 \d{4,5} False\n$")

    def test_gives_standard_input_to_rank_0_only(self):
        self.run_ranks("-n", "2", "sh", "-c", 'echo "$RANK: $(cat)"', input="typed")
        self.assertEqual(self.logs(2), ["0: typed\n", "1: \n"])

    def test_gives_ranks_no_descriptor_but_the_three_and_shared_memory(self):
        self.run_ranks("-n", "2", "sh", "-c", '[ $RANK = 0 ] || { ls /proc/$$/fd; echo "shared $TANDEM_CONTROL_FD ${TANDEM_MEMORY%@*}"; }')
        *descriptors, shared = self.log(1).split("\n")[:-1]
        self.assertEqual(sorted(descriptors), sorted(["0", "1", "2", *shared.split()[1:]]))

    def test_raises_the_abort_word_before_it_stops_anybody(self):
        reader = ("import mmap, os, signal, sys, time\n"
                  "page = mmap.mmap(int(os.environ['TANDEM_CONTROL_FD']), 0, prot=mmap.PROT_READ)\n"
                  "quiet = bytes(page)\n"
                  "def stop(*_):\n    print(quiet != bytes(page), flush=True)\n    sys.exit(0)\n"
                  "signal.signal(signal.SIGTERM, stop)\n"
                  "open('ready', 'w').close()\n"
                  "signal.pause()\n")
        self.write("reader.py", reader)
        self.run_ranks("-n", "2", "sh", "-c", f"[ $RANK = 1 ] && exec {sys.executable} reader.py; until [ -e ready ]; do :; done; exit 1")
        self.assertEqual(self.log(1), "True\n")

    def test_holds_its_port_for_rank_0_as_long_as_it_runs(self):
        process = self.start("run", "sh", "-c", "echo $MASTER_PORT; read line", stdin=subprocess.PIPE)
        port = int(process.stdout.readline())
        with socket.socket() as stranger, self.assertRaises(OSError):
            stranger.bind(("", port))
        process.communicate("", timeout=LIMIT)
        self.assertEqual(process.returncode, 1)  # `read` at the end of its input

    def test_names_who_holds_a_port_that_was_asked_for(self):
        with socket.socket() as holder:
            holder.bind(("", 0))
            holder.listen()
            port = holder.getsockname()[1]
            result = self.run_ranks("--master-port", str(port), "true")
        self.assertEqual(result.returncode, 4)
        self.assertRegex(result.stderr, rf"^error: port {port} is held by .*process {os.getpid()}")

    def test_two_jobs_cannot_have_the_same_port(self):
        first = self.start("run", "sh", "-c", "echo $MASTER_PORT; read line", stdin=subprocess.PIPE)
        port = first.stdout.readline().strip()
        result = self.run_ranks("--master-port", port, "true")
        self.assertEqual(result.returncode, 4)
        self.assertRegex(result.stderr, rf"^error: port {port} is held by .*tandem.*\nhint: ")

    def test_twenty_jobs_at_once_have_twenty_ports(self):
        jobs = [self.start("run", "-n", "2", sys.executable, "-c", MEET) for _ in range(20)]
        ends = [job.communicate(timeout=4 * LIMIT) for job in jobs]
        self.assertEqual([job.returncode for job in jobs], [0] * 20, ends)
        self.assertEqual(len({out for out, _ in ends}), 20)


# Rank 0 listens where MASTER_PORT says, rank 1 comes to it; each tells the other who it is.
MEET = """
import os, socket, time
port, rank = int(os.environ["MASTER_PORT"]), os.environ["RANK"]
if rank == "0":
    with socket.create_server(("127.0.0.1", port)) as server:
        peer, _ = server.accept()
        assert peer.recv(100).decode() == os.environ["TORCHELASTIC_RUN_ID"]
        peer.sendall(b"welcome")
    print(port)
else:
    while True:
        try:
            peer = socket.create_connection(("127.0.0.1", port))
            break
        except ConnectionRefusedError:
            time.sleep(0.01)  # poll
    peer.sendall(os.environ["TORCHELASTIC_RUN_ID"].encode())
    assert peer.recv(100) == b"welcome"
"""


class Signals(LaunchTest):
    def start_two(self, script: str, *options: str) -> subprocess.Popen:
        """Starts two ranks and waits until both are ready."""
        process = self.start("run", "-n", "2", "--tee", "all", *options, "sh", "-c", script)
        ready = []
        while sum(1 if line.startswith("[rank") else 2 for line in ready) < 2:
            ready.append(process.stdout.readline())
            self.assertIn("ready", ready[-1])
        return process

    def test_kills_ranks_that_do_not_stop_in_time_after_a_signal(self):
        process = self.start_two("trap '' TERM; echo ready; exec sleep 1000", "--shutdown-timeout", "100ms")
        process.send_signal(signal.SIGTERM)
        _, report = process.communicate(timeout=LIMIT)
        self.assertEqual(process.returncode, 128 + signal.SIGTERM)
        self.assertIn("stopped by signal 15 (Terminated)", report)

    def test_passes_a_hangup_on_but_not_under_nohup(self):
        process = self.start_two("trap '' INT; echo ready; exec sleep 1000")
        process.send_signal(signal.SIGHUP)
        process.communicate(timeout=LIMIT)
        self.assertEqual(process.returncode, 128 + signal.SIGHUP)

        nohup = subprocess.Popen(["nohup", TANDEM, "run", "sh", "-c", "echo ready; read line; echo went on"], env=self.env,
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.assertEqual(nohup.stdout.readline(), "ready\n")
        nohup.send_signal(signal.SIGHUP)
        self.assertEqual(nohup.communicate("\n", timeout=LIMIT)[0], "went on\n")
        self.assertEqual(nohup.returncode, 0)

    def test_passes_user_signals_on_and_goes_on(self):
        for name in ("USR1", "USR2"):
            process = self.start("run", "sh", "-c", f"trap 'echo caught; exit 0' {name}; echo ready; while :; do sleep 0.01; done")
            self.assertEqual(process.stdout.readline(), "ready\n")
            process.send_signal(getattr(signal, f"SIG{name}"))
            self.assertEqual(process.communicate(timeout=LIMIT)[0], "caught\n")
            self.assertEqual(process.returncode, 0)

    def test_passes_an_interrupt_on_and_leaves_no_rank_behind(self):
        process = self.start_two("trap 'echo caught; exit 5' INT; echo ready; while :; do sleep 0.01; done")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=LIMIT)
        self.assertEqual(out, "[all x2] caught\n")
        self.assertEqual(process.returncode, 130)
        self.assertIn("stopped by signal 2 (Interrupt)", err)
        self.assert_nothing_left()

    def test_kills_at_the_second_interrupt(self):
        process = self.start("run", "--shutdown-timeout", "1h", "sh", "-c", "trap 'echo stays' INT; echo ready; while :; do sleep 0.01; done")
        self.assertEqual(process.stdout.readline(), "ready\n")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.stdout.readline(), "stays\n")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=LIMIT), 130)

    def test_ends_though_nobody_reads_what_is_shown(self):
        process = self.start("run", "yes")
        wait_until(lambda: any(path.stat().st_size > 1 << 20 for path in self.folder.glob("jobs/*/rank0.log")), "the pipe is full")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=LIMIT), 143)

    def test_stops_and_goes_on_with_its_ranks_at_the_terminal(self):
        process = self.start("run", "sh", "-c", "echo ready $$; read line; echo went on", stdin=subprocess.PIPE)
        rank = process.stdout.readline().split()[1]
        state = lambda pid: pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        process.send_signal(signal.SIGTSTP)
        wait_until(lambda: (state(rank), state(process.pid)) == ("T", "T"), "both have stopped")
        process.send_signal(signal.SIGCONT)
        self.assertEqual(process.communicate("\n", timeout=LIMIT)[0], "went on\n")


class Restarts(LaunchTest):
    def test_start_the_whole_group_again_with_torchruns_counters_on_the_same_port(self):
        script = 'echo "$TORCHELASTIC_RESTART_COUNT $TORCHELASTIC_MAX_RESTARTS $MASTER_PORT"; [ $RANK = 1 ] && exit $((3 - TORCHELASTIC_RESTART_COUNT)); exec sleep 1000'
        result = self.run_ranks("-n", "2", "--max-restarts", "2", "--min-uptime", "0", "sh", "-c", script)
        rows = [line.split() for line in self.log(1).splitlines()]
        self.assertEqual([row[:2] for row in rows], [["0", "2"], ["1", "2"], ["2", "2"]])
        self.assertEqual(len({row[2] for row in rows}), 1)
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, r"tandem: rank 1 failed: exit code 3;.* 1 of 2\n")

    def test_end_well_when_an_attempt_does(self):
        result = self.run_ranks("-n", "2", "--max-restarts", "3", "sh", "-c", "exit $((1 - TORCHELASTIC_RESTART_COUNT))")
        self.assertEqual(result.returncode, 0)
        self.assertIn("all succeeded", result.stderr)

    def test_are_not_tried_for_what_fails_at_once_in_the_same_way_twice(self):
        result = self.run_ranks("--max-restarts", "5", "sh", "-c", "echo $TORCHELASTIC_RESTART_COUNT; exit 3")
        self.assertEqual((result.returncode, result.stdout), (3, "0\n1\n"))
        self.assertRegex(result.stderr, r"tandem: not restarted:.* 10s .*\(--min-uptime\)\n")

    def test_are_not_tried_for_the_same_failure_of_another_rank(self):
        script = "[ $RANK = $TORCHELASTIC_RESTART_COUNT ] && exit 3; exec sleep 1000"
        result = self.run_ranks("-n", "3", "--max-restarts", "5", "sh", "-c", script)
        self.assertEqual(result.returncode, 3)
        self.assertIn("not restarted", result.stderr)

    def test_are_tried_again_for_a_failure_of_another_kind(self):
        script = "echo $TORCHELASTIC_RESTART_COUNT; exit $((10 + TORCHELASTIC_RESTART_COUNT))"
        result = self.run_ranks("--max-restarts", "3", "sh", "-c", script)
        self.assertEqual((result.returncode, result.stdout), (13, "0\n1\n2\n3\n"))


if __name__ == "__main__":
    unittest.main()

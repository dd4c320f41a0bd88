"""Output of the ranks: where it is shown and logged, and that none is lost."""

import fcntl
import hashlib
import os
import pathlib
import pty
import signal
import struct
import subprocess
import sys
import termios
import unittest

from support import LIMIT, TANDEM, LaunchTest, read_terminal, wait_until

SOAK = "TANDEM_SOAK" in os.environ

# Lines of 64 kB and of all bytes, on both streams in turn, and no newline at the end. Tells its sum on a file of its own.
FLOOD = """
import hashlib, os, sys
rank, total = int(os.environ["RANK"]), int(sys.argv[1])
line = (bytes(range(256)) * 256)[rank:] + b"\\n"
sums = {1: hashlib.sha256(), 2: hashlib.sha256()}
written = 0
while written < total:
    for stream in (1, 2):
        data = line if stream == 1 else line[::-1]
        sums[stream].update(data)
        done = 0
        while done < len(data):
            done += os.write(stream, data[done:])
        written += len(data)
os.write(1, b"no newline")
sums[1].update(b"no newline")
open(f"sum{rank}", "w").write(" ".join(sums[stream].hexdigest() for stream in (1, 2)))
"""


def digest(path: pathlib.Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() if hasattr(hashlib, "file_digest") else hashlib.sha256(file.read()).hexdigest()


class Shown(LaunchTest):
    def test_is_rank_0_and_both_streams_stay_apart(self):
        result = self.run_ranks("-q", "-n", "2", "sh", "-c", "echo out $RANK; echo error $RANK >&2")
        self.assertEqual((result.stdout, result.stderr), ("out 0\n", "error 0\n"))

    def test_are_all_ranks_with_a_prefix_and_equal_lines_once(self):
        result = self.run_ranks("-q", "-n", "3", "--tee", "all", "sh", "-c", "echo same; echo own $RANK >&2")
        self.assertEqual(result.stdout, "[all x3] same\n")
        self.assertEqual(sorted(result.stderr.splitlines()), ["[rank 0] own 0", "[rank 1] own 1", "[rank 2] own 2"])

    def test_are_the_ranks_of_the_filter_of_any_number_of_digits(self):
        result = self.run_ranks("-q", "-n", "12", "--local-ranks-filter", "3,11", "sh", "-c", "echo $RANK")
        self.assertEqual(sorted(result.stdout.splitlines()), ["[rank 11] 11", "[rank 3] 3"])

    def test_follow_torchruns_prefix_template(self):
        env = {"TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE": "<${role_name}:${rank}> "}
        result = self.run_ranks("-q", "-n", "2", "-t", "3", "--role", "trainer", "sh", "-c", "echo hi", env=env)
        self.assertEqual(sorted(result.stdout.splitlines()), ["<trainer:0> hi", "<trainer:1> hi"])

    def test_is_nothing_more_when_the_reader_has_gone(self):
        script = f"'{TANDEM}' run -q sh -c 'while echo line; do :; done' | head -n 1"
        result = subprocess.run(["sh", "-c", script], env=self.env, capture_output=True, text=True, timeout=LIMIT)
        self.assertEqual(result.stdout, "line\n")
        self.assert_nothing_left()

    def test_waits_for_a_slow_reader_without_losing_sight_of_the_ranks(self):
        process = self.start("run", "-n", "2", "sh", "-c", "[ $RANK = 1 ] && { until [ -e full ]; do :; done; exit 9; }; "
                             "(head -c 100000; touch full; cat) </dev/zero")
        events = lambda: "".join(path.read_text() for path in self.folder.glob("jobs/*/launch.jsonl"))
        wait_until(lambda: '"code":9' in events(), "the failure of rank 1 is noticed while nobody reads rank 0")
        process.stdout.close()
        self.assertEqual(process.wait(timeout=LIMIT), 9)


class Kept(LaunchTest):
    def test_is_everything_under_load(self):
        ranks, total = 8, (125_000_000 if SOAK else 8_000_000)
        self.write("flood.py", FLOOD)
        result = self.run_ranks("-q", "-n", str(ranks), "-r", "3", "--log-dir", "logs", sys.executable, "flood.py", str(total))
        self.assertEqual(result.returncode, 0, result.stderr)
        (attempt,) = (self.folder / "logs").glob("*/attempt_0")
        for rank in range(ranks):
            out, error = (self.folder / f"sum{rank}").read_text().split()
            self.assertEqual(digest(attempt / str(rank) / "stdout.log"), out)
            self.assertEqual(digest(attempt / str(rank) / "stderr.log"), error)
            sizes = [(attempt / str(rank) / name).stat().st_size for name in ("stdout.log", "stderr.log")]
            self.assertEqual((attempt.parent / f"rank{rank}.log").stat().st_size, sum(sizes))

    def test_is_shown_byte_for_byte_too(self):
        self.write("flood.py", FLOOD)
        result = self.run_ranks("-q", sys.executable, "flood.py", "2000000", text=False)
        out, error = (self.folder / "sum0").read_text().split()
        self.assertEqual((hashlib.sha256(result.stdout).hexdigest(), hashlib.sha256(result.stderr).hexdigest()), (out, error))

    def test_lies_where_torchrun_puts_it(self):
        result = self.run_ranks("-q", "-n", "2", "--log-dir", "logs", "-r", "1", "--rdzv-id", "job7", "sh", "-c", "echo out $RANK; echo error $RANK >&2")
        self.assertEqual((result.stdout, result.stderr), ("", "error 0\n"))
        (attempt,) = (self.folder / "logs").glob("job7_*/attempt_0")
        self.assertEqual((attempt / "1" / "stdout.log").read_text(), "out 1\n")
        self.assertFalse((attempt / "1" / "stderr.log").exists())

    def test_keeps_the_order_of_both_streams_of_a_rank_that_is_not_shown(self):
        self.run_ranks("-q", "-n", "2", "sh", "-c", "for i in 1 2 3; do echo out $i; echo error $i >&2; done")
        self.assertEqual(self.log(1), "".join(f"out {i}\nerror {i}\n" for i in (1, 2, 3)))

    def test_of_a_rank_that_is_not_there_is_an_error(self):
        for flags in (("-r", "5:1"), ("-t", "2:3"), ("--local-ranks-filter", "7")):
            self.assertEqual(self.run_ranks("-n", "2", *flags, "true").returncode, 2, flags)

    def test_may_differ_from_rank_to_rank(self):
        self.run_ranks("-q", "-n", "2", "--log-dir", "logs", "-r", "0:1,1:2", "sh", "-c", "echo out; echo error >&2")
        (attempt,) = (self.folder / "logs").glob("*/attempt_0")
        self.assertEqual(sorted(path.name for path in (attempt / "0").iterdir()), ["stdout.log"])
        self.assertEqual(sorted(path.name for path in (attempt / "1").iterdir()), ["stderr.log"])

    def test_is_not_when_the_null_device_is_the_folder(self):
        self.assertEqual(self.run_ranks("-q", "--log-dir", "/dev/null", "sh", "-c", "echo hi").stdout, "hi\n")
        self.assertEqual(list(self.job_folder().glob("rank*")), [])

    def test_goes_to_the_folder_of_a_program_that_has_one(self):
        self.run_ranks("-q", "-n", "2", "sh", "-c", "echo $TANDEM_LOG_DIR", env={"TANDEM_LOG_DIR": str(self.folder / "run" / "logs")})
        self.assertEqual((self.folder / "run" / "logs" / "rank1.log").read_text(), f"{self.folder}/run/logs\n")
        self.assertTrue((self.folder / "run" / "logs" / "launch.jsonl").exists())


TERMINAL = """
import os, sys
sizes = [os.get_terminal_size(fd) if os.isatty(fd) else None for fd in (1, 2)]
print([f"{size.columns}x{size.lines}" if size else "none" for size in sizes], end="\\r\\n")
"""


class Terminal(LaunchTest):
    def on_terminal(self, *arguments, env=None) -> str:
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 123, 0, 0))
        process = self.start("run", "-q", *arguments, stdin=theirs, stdout=theirs, stderr=theirs, env=env)
        os.close(theirs)
        shown = read_terminal(ours)
        process.wait(timeout=LIMIT)
        return shown.decode()

    def setUp(self):
        super().setUp()
        self.write("terminal.py", TERMINAL)

    def test_is_one_for_rank_0_and_its_size_is_ours(self):
        self.assertEqual(self.on_terminal("-n", "2", sys.executable, "terminal.py"), "['123x40', '123x40']\r\r\n")
        self.assertEqual(self.log(1), "['none', 'none']\n")

    def test_is_drawn_on_as_it_is_and_logged_as_plain_lines(self):
        drawn = "\x1b[1mbegin\x1b[0m\n" + "".join(f"\r{step}%|{'#' * step}\x1b[K" for step in range(0, 101, 20)) + "\nend\n"
        shown = self.on_terminal(sys.executable, "-c", f"import sys; sys.stdout.write({drawn!r})")
        self.assertEqual(shown.replace("\r\n", "\n"), drawn)
        self.assertEqual(self.log(0), f"begin\n100%|{'#' * 100}\nend\n")

    def test_is_none_in_a_notebook_whose_cells_have_one(self):
        for name in ("JPY_PARENT_PID", "KAGGLE_KERNEL_RUN_TYPE"):
            self.assertEqual(self.on_terminal(sys.executable, "terminal.py", env={name: "1"}).split(), ["['none',", "'none']"])

    def test_shows_progress_as_it_lives_but_calmly_in_a_notebook(self):
        script = "import sys\nfor i in range(100): print(f'{i}%', end='\\r', flush=True)\nprint('done')"
        self.assertIn("97%\r98%\r99%\rdone", self.on_terminal(sys.executable, "-c", script))
        calm = self.on_terminal(sys.executable, "-c", script, env={"JPY_PARENT_PID": "1"})
        self.assertEqual(calm.split(), ["0%", "done"])

    def test_has_coloured_prefixes_unless_told_otherwise(self):
        show = ("-n", "2", "--tee", "all", "sh", "-c", "echo $RANK")
        self.assertIn("\033[32m[rank 1]\033[0m 1", self.on_terminal(*show))
        self.assertNotIn("\033", self.on_terminal(*show, env={"NO_COLOR": "1"}))
        self.assertNotIn("\033", self.on_terminal(*show, env={"JPY_PARENT_PID": "1"}))

    def next_line(self, screen) -> str:
        """A terminal may return a line in pieces."""
        line = b""
        while not line.endswith(b"\n"):
            line += screen.read(1)
        return line.decode()

    def test_passes_a_change_of_size_on(self):
        ours, theirs = pty.openpty()
        script = ("import os, signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGWINCH])\nprint('ready', flush=True)\n"
                  "signal.sigwait([signal.SIGWINCH])\nprint(os.get_terminal_size(1).columns)")
        process = self.start("run", "-q", sys.executable, "-c", script, stdin=theirs, stdout=theirs, stderr=theirs)
        with os.fdopen(ours, "rb", buffering=0) as screen:
            self.assertIn("ready", self.next_line(screen))
            fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 77, 0, 0))
            process.send_signal(signal.SIGWINCH)
            self.assertIn("77", self.next_line(screen))
        os.close(theirs)
        self.assertEqual(process.wait(timeout=LIMIT), 0)


if __name__ == "__main__":
    unittest.main()

"""Text of ranks, files and other processes: no escape codes in what the launcher says, and no line that passes for its own."""

import os
import pty
import socket
import subprocess
import sys
import unittest

from support import LIMIT, LaunchTest, read_terminal

EVIL = "\x1b]0;title\x07\x1b[2J\x1b[31mevil\x1b[0m\x9b2K\x7f"  # shown as: evil??2K?
FAKE = "tandem: 2 ranks, 0.0 s, all succeeded"

# Rank 1 fails, in one of several ways; only rank 0 is shown.
FAILURES = {
    "a traceback": f"raise ValueError({EVIL!r})",
    "lines of output": f"print({EVIL!r}); sys.exit(3)",
    "a fake report": f"print({FAKE!r}); print('hint: {EVIL}'); print('error: x'); sys.exit(3)",
    "an error file": f"open(os.environ['TORCHELASTIC_ERROR_FILE'], 'w').write(json.dumps({{'message': {{'message': {EVIL!r}}}}})); os._exit(3)",
    "a traceback in an error file": "open(os.environ['TORCHELASTIC_ERROR_FILE'], 'w').write(json.dumps({'message': {'message': 'x', "
                                    f"'extraInfo': {{'py_callstack': 'Traceback (most recent call last):\\n  File \"{EVIL}\"\\nValueError: {EVIL}\\n'}}}}}})); os._exit(3)",
    "a hint": f"raise ModuleNotFoundError(\"No module named 'a{EVIL}'\")",
}


class HostileText(LaunchTest):
    def assert_clean(self, text: str) -> None:
        strange = [character for character in text if character != "\n" and (ord(character) < 32 or 127 <= ord(character) < 160)]
        self.assertEqual(strange, [], text)

    def test_of_a_failure_is_quoted_without_escape_codes(self):
        for name, failure in FAILURES.items():
            for restarts in ("0", "1"):
                with self.subTest(name, restarts=restarts):
                    script = self.write("evil.py", f"import json, os, sys, time\nif os.environ['RANK'] == '0': time.sleep(1000)\n{failure}\n")
                    told = self.run_ranks("-n", "2", "--max-restarts", restarts, sys.executable, "-X", "utf8", script).stderr
                    self.assertIn("evil", told)
                    self.assert_clean(told)
                    self.assertNotIn(f"\n{FAKE}", told)
                    self.assertNotIn("\nhint: evil", told)

    def test_in_the_name_of_a_process_is_shown_without_escape_codes(self):
        told = self.run_ranks("bash", "-c", f"setsid bash -c \"exec -a '{EVIL}' sleep 1000\" & exit 0").stderr
        self.assertRegex(told, r"behind.*evil")
        self.assert_clean(told)

        with socket.socket() as holder:
            holder.bind(("", 0))
            holder.listen()
            port = holder.getsockname()[1]
            code = "import sys; open('/proc/self/comm', 'w').write('\\x1b[31mx'); print('ready', flush=True); sys.stdin.read()"
            evil = subprocess.Popen(["bash", "-c", f"exec -a '{EVIL}' {sys.executable} -c \"$0\"", code], env=self.env, text=True,
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=[holder.fileno()])
            self.addCleanup(self.close, evil)
            self.assertEqual(evil.stdout.readline(), "ready\n")
        result = self.run_ranks("--master-port", str(port), "true")
        self.assertRegex(result.stderr, rf"port {port} is held by x \(process {evil.pid}: .*evil")
        self.assert_clean(result.stderr)

    def test_in_arguments_is_repeated_without_escape_codes(self):
        for arguments in (["run", EVIL], ["run", f"--{EVIL}"], ["run", "-n", EVIL, "true"], ["logs", EVIL], [EVIL], ["run", "--config", EVIL, "true"],
                          ["run", "-x", f"={EVIL}", "true"], ["run", "--env-file", EVIL, "true"], ["run", "--log-dir", f"/dev/null/{EVIL}", "true"]):
            with self.subTest(arguments):
                result = self.run_tandem(*arguments)
                self.assertIn(result.returncode, (2, 3, 4, 8))
                self.assert_clean(result.stderr)
                self.assertRegex(result.stderr, r"^error: [^\n]+\nhint: [^\n]+\n$")

    def test_in_a_dry_run_is_quoted_for_the_shell(self):
        result = self.run_ranks("--dry-run", "printf", "%s", "\x1b[31m'evil\x7f")
        [command] = [line.partition(": ")[2] for line in result.stdout.splitlines() if line.startswith("rank 0")]
        self.assert_clean(result.stdout)
        self.assertEqual(subprocess.run(["bash", "-c", command], capture_output=True, text=True).stdout, "\x1b[31m'evil\x7f")

    def test_in_a_stack_is_shown_without_escape_codes(self):
        script = ("import os, subprocess, time\nopen('/proc/self/comm', 'w').write('\\x1b[31mevil')\n"
                  f"subprocess.Popen(['bash', '-c', \"exec -a '$0' sleep 1000\", {EVIL!r}])\nprint('ready', flush=True)\ntime.sleep(1000)\n")
        process = self.start("run", sys.executable, self.write("evil\x1b[31m.py", script))
        self.assertEqual(process.stdout.readline(), "ready\n")
        told = self.run_tandem("stack").stdout
        self.assertIn("rank 0\n", told)
        self.assert_clean(told)

    def test_of_a_rank_does_not_pass_for_ours(self):
        script = f"echo '{FAKE}'; echo '{FAKE}' >&2; printf 'tand' >&2; printf 'em: again\\n' >&2; exit 3"
        result = self.run_ranks("sh", "-c", script)
        self.assertEqual(result.stdout, f"{FAKE}\n")  # to the byte
        self.assertIn(f"\n[rank 0] {FAKE}\n[rank 0] tandem: again\n", result.stderr)
        self.assertEqual(result.stderr.count("\ntandem: 2 ranks"), 0)
        self.assertEqual(self.log(0).count("[rank 0]"), 0)

    def test_of_a_rank_does_not_pass_for_ours_in_disguise(self):
        disguises = ["\0", "x\b", "\x1b]0;x\x07", "\x1b[2\x07", "\ufeff", "\u200b", "\xa0"]
        script = self.write("fake.py", f"import sys\nfor start in {disguises!r}: sys.stderr.write(start + {FAKE!r} + '\\n')\n")
        shown = self.run_ranks(sys.executable, "-X", "utf8", script).stderr
        for start in disguises:
            self.assertIn(f"{start}[rank 0] {FAKE}\n", shown)
        self.assertEqual(shown.count(FAKE), len(disguises))

    def test_of_a_rank_does_not_pass_for_ours_on_a_terminal(self):
        ours, theirs = pty.openpty()
        process = self.start("run", "sh", "-c", f"printf '{FAKE}\\n\\033[1m{FAKE}\\n'", stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        shown = read_terminal(ours).decode()
        self.assertEqual(process.wait(timeout=LIMIT), 0)
        self.assertEqual(shown.count(f"[rank 0]\x1b[0m {FAKE}"), 2, shown)


if __name__ == "__main__":
    unittest.main()

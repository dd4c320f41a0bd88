"""The `tandem` command as a user meets it: what it prints, where, and how it ends."""

import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import unittest

BUILD = pathlib.Path(os.environ["TANDEM_BUILD"])
TANDEM = BUILD / "bin" / "tandem"
PRINT_RANK = ["sh", "-c", 'echo "$RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE"']


def tandem(*arguments: str, path: pathlib.Path = TANDEM, **options) -> subprocess.CompletedProcess:
    return subprocess.run([path, *arguments], capture_output=True, text=True, timeout=120, **options)


class CliTest(unittest.TestCase):
    def assert_error(self, result: subprocess.CompletedProcess, code: int, sentence: str, hint: str) -> None:
        self.assertEqual(result.stderr, f"error: {sentence}\nhint: {hint}\n")
        self.assertEqual(result.stdout, "")
        self.assertEqual(result.returncode, code)


class Help(CliTest):
    def test_fits_one_screen_and_shows_examples_before_commands(self):
        text = tandem("--help").stdout
        self.assertLessEqual(len(text.splitlines()), 24)
        self.assertLessEqual(max(map(len, text.splitlines())), 100)
        self.assertLess(text.index("examples:"), text.index("commands:"))

    def test_is_the_same_for_no_argument_help_and_both_flags(self):
        texts = {tandem(*arguments).stdout for arguments in ([], ["help"], ["--help"], ["-h"])}
        self.assertEqual(len(texts), 1)
        self.assertEqual(tandem().returncode, 0)

    def test_lists_every_command_and_each_has_help_of_its_own(self):
        commands = re.findall(r"^  (\w+) ", tandem("--help").stdout.split("commands:")[1].split("\n\n")[0], re.M)
        self.assertEqual(commands, ["run", "ps", "stop", "logs", "stack", "version", "completion", "help"])
        for command in commands[:-1]:
            self.assertIn(f"usage: tandem {command}", tandem("help", command).stdout)
            self.assertEqual(tandem("help", command).stdout, tandem(command, "--help").stdout)

    def test_of_an_unknown_name_is_an_error(self):
        self.assert_error(tandem("help", "rnu"), 2, "tandem: there is no command 'rnu'", "did you mean `tandem run`?")

    def test_takes_one_name_and_no_flags(self):
        self.assert_error(tandem("help", "run", "extra"), 2, "tandem help: 'extra' is one word too many",
                          "try `tandem help run`")
        self.assert_error(tandem("help", "--bogus"), 2, "tandem: there is no command '--bogus'",
                          "`tandem --help` lists the commands")

    def test_fails_when_standard_output_is_full(self):
        with open("/dev/full", "w") as full:
            result = subprocess.run([TANDEM, "--help"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
        self.assertEqual(result.returncode, 8)
        self.assertIn("error: cannot write to standard output: No space left on device", result.stderr)


class Version(CliTest):
    def test_names_itself_the_compiler_and_the_torch(self):
        self.assertRegex(tandem("version").stdout,
                         r"^tandem \d+\.\d+\.\d+\ncompiler \w+ \d+\.\d+\.\d+\nbuilt for torch (none|\d+\.\d+.* \((CPU|CUDA)\))\n$")
        self.assertEqual(tandem("--version").stdout, tandem("version").stdout)

    def test_is_also_one_json_object(self):
        facts = json.loads(tandem("version", "--json").stdout)
        self.assertEqual(list(facts), ["tandem", "compiler", "torch"])
        self.assertIn(f"tandem {facts['tandem']}\n", tandem("version").stdout)

    def test_refuses_what_it_does_not_know(self):
        self.assert_error(tandem("version", "--jsn"), 2, "tandem version: there is no flag --jsn", "did you mean --json?")
        self.assert_error(tandem("version", "x"), 2, "tandem version: 'x' is not a flag, and nothing else is taken",
                          "`tandem version --help` lists the flags")


class Dispatch(CliTest):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def add_program(self, folder: pathlib.Path, name: str, answer: str) -> None:
        folder.mkdir(exist_ok=True)
        program = folder / f"tandem-{name}"
        program.write_text(f'#!/bin/sh\necho "{answer} $*"\nexit 7\n')
        program.chmod(0o755)

    def test_runs_a_program_beside_it_with_its_arguments_and_exit_code(self):
        copy = shutil.copy(TANDEM, self.folder / "tandem")
        self.add_program(self.folder, "greet", "beside")
        result = tandem("greet", "--flag", "a b", path=copy)
        self.assertEqual((result.stdout, result.returncode), ("beside --flag a b\n", 7))
        self.assertEqual(tandem("help", "greet", path=copy).stdout, "beside --help\n")
        self.assertIn("greet", tandem("--help", path=copy).stdout)

    def test_prefers_the_program_beside_it_to_the_one_on_the_path(self):
        copy = shutil.copy(TANDEM, self.folder / "tandem")
        self.add_program(self.folder, "greet", "beside")
        self.add_program(self.folder / "elsewhere", "greet", "on path")
        self.add_program(self.folder / "elsewhere", "other", "on path")
        env = {**os.environ, "PATH": f"{self.folder}/elsewhere:{os.environ['PATH']}"}
        self.assertEqual(tandem("greet", path=copy, env=env).stdout, "beside \n")
        self.assertEqual(tandem("other", path=copy, env=env).stdout, "on path \n")

    def test_suggests_programs_as_well_as_commands(self):
        self.add_program(self.folder, "summarize", "")
        env = {**os.environ, "PATH": f"{self.folder}:{os.environ['PATH']}"}
        self.assert_error(tandem("sumarize", env=env), 2, "tandem: there is no command 'sumarize'",
                          "did you mean `tandem summarize`?")

    def test_ignores_what_cannot_be_executed(self):
        (self.folder / "tandem-plain").write_text("text")
        (self.folder / "tandem-folder").mkdir()
        env = {**os.environ, "PATH": str(self.folder)}
        for name in ("plain", "folder", "../tandem"):
            self.assertEqual(tandem(name, env=env).returncode, 2)

    def test_does_not_look_into_the_current_folder_for_an_empty_entry_of_the_path(self):
        self.add_program(self.folder, "greet", "here")
        self.assertEqual(tandem("greet", env={"PATH": ":"}, cwd=self.folder).returncode, 2)

    def test_of_nothing_like_a_command_points_to_help(self):
        self.assert_error(tandem("xyzzy"), 2, "tandem: there is no command 'xyzzy'", "`tandem --help` lists the commands")
        self.assert_error(tandem("--xyzzy"), 2, "tandem: there is no command '--xyzzy'",
                          "`tandem --help` lists the commands")


class Run(CliTest):
    def test_starts_as_many_ranks_as_asked_and_says_so(self):
        result = tandem("run", "-n", "3", *PRINT_RANK)
        self.assertEqual(sorted(result.stdout.splitlines()), ["0 3 0 3", "1 3 1 3", "2 3 2 3"])
        self.assertRegex(result.stderr, r"^tandem: 3 ranks, \d+\.\d s, all succeeded\n$")
        self.assertEqual(result.returncode, 0)

    def test_starts_one_rank_by_default(self):
        self.assertEqual(tandem("run", *PRINT_RANK).stdout, "0 1 0 1\n")

    def test_gives_every_rank_the_same_program_and_arguments(self):
        result = tandem("run", "-n", "2", "sh", "-c", 'printf "%s|" "$@"; echo', "sh", "--lr", "a b", "", "-n")
        self.assertEqual(result.stdout, "--lr|a b||-n|\n" * 2)

    def test_gives_all_ranks_one_port_and_replaces_what_an_outer_launcher_set(self):
        env = {**os.environ, "RANK": "7", "WORLD_SIZE": "9", "MASTER_PORT": "1", "TORCHELASTIC_USE_AGENT_STORE": "True"}
        script = 'echo "$WORLD_SIZE $MASTER_ADDR $MASTER_PORT $TORCHELASTIC_USE_AGENT_STORE"'
        lines = tandem("run", "-n", "2", "sh", "-c", script, env=env).stdout.splitlines()
        self.assertEqual(len(lines), 2)
        self.assertEqual(lines[0], lines[1])
        self.assertRegex(lines[0], r"^2 127\.0\.0\.1 \d{4,5} False$")

    def test_gives_standard_input_to_rank_0_only(self):
        result = tandem("run", "-n", "2", "sh", "-c", 'echo "$RANK: $(cat)"', input="typed")
        self.assertEqual(sorted(result.stdout.splitlines()), ["0: typed", "1: "])

    def test_stops_the_others_when_one_fails_and_ends_with_its_code(self):
        result = tandem("run", "-n", "3", "sh", "-c", '[ "$RANK" = 1 ] && exit 42; exec sleep 100')
        self.assertEqual(result.returncode, 42)
        self.assertRegex(result.stderr, r"^tandem: 3 ranks, \d+\.\d s, rank 1 failed first: exit code 42\n$")

    def test_turns_a_signal_into_128_and_its_number(self):
        result = tandem("run", "sh", "-c", "kill -SEGV $$")
        self.assertEqual(result.returncode, 128 + signal.SIGSEGV)
        self.assertIn("rank 0 failed first: signal 11 (Segmentation fault)", result.stderr)

    def test_explains_a_program_that_cannot_be_started(self):
        self.assert_error(tandem("run", "-n", "2", "no-such-program"), 4,
                          "cannot start no-such-program: No such file or directory",
                          "check the name; a program in this folder is ./NAME")
        self.assert_error(tandem("run", "/etc/passwd"), 4, "cannot start /etc/passwd: Permission denied",
                          "check that it is a program and may be executed (chmod +x)")

    def test_explains_wrong_usage(self):
        self.assert_error(tandem("run"), 2, "tandem run: no program was given", "try `tandem run -n 2 ./train --lr 3e-4`")
        self.assert_error(tandem("run", "-n", "0", "true"), 2,
                          "nproc-per-node is 0, not a number of ranks from 1 to 4096 (--nproc-per-node)",
                          "try `tandem run -n 2 ...`")
        self.assert_error(tandem("run", "--shutdown-timeout", "-1s", "true"), 2,
                          "shutdown-timeout is -1s, less than nothing (--shutdown-timeout)", "try 30s")
        self.assert_error(tandem("run", "-n", "two", "true"), 2,
                          "tandem run: --nproc-per-node: 'two' was given, allowed is a 64-bit whole number",
                          "nproc-per-node is: ranks to start on this machine (default 1)")
        self.assert_error(tandem("run", "--nproc-per-nod", "2", "true"), 2,
                          "tandem run: there is no flag --nproc-per-nod", "did you mean --nproc-per-node?")

    def test_names_the_file_and_line_of_a_wrong_setting(self):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write("# ranks\nnproc: 0\n")
            file.flush()
            self.assert_error(tandem("run", "--config", file.name, "true"), 3,
                              f"nproc-per-node is 0, not a number of ranks from 1 to 4096 ({file.name}:2)",
                              "try `tandem run -n 2 ...`")

    def test_explains_a_script_whose_interpreter_is_missing(self):
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder) / "script"
            script.write_text("#!/no/such/interpreter\n")
            script.chmod(0o755)
            self.assert_error(tandem("run", str(script)), 4, f"cannot start {script}: No such file or directory",
                              "it is there, but the program that its first line (#!) names is not")

    def test_gives_ranks_no_descriptors_but_the_three(self):
        result = tandem("run", "-n", "2", "sh", "-c", "[ $RANK = 0 ] || ls /proc/$$/fd")
        self.assertEqual(result.stdout, "0\n1\n2\n")

    def test_holds_its_port_for_rank_0_as_long_as_it_runs(self):
        process = subprocess.Popen([TANDEM, "run", "sh", "-c", "echo $MASTER_PORT; read line"], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        port = int(process.stdout.readline())
        with socket.socket() as stranger, self.assertRaises(OSError):
            stranger.bind(("", port))
        process.communicate("", timeout=60)
        self.assertEqual(process.returncode, 1)  # `read` at the end of its input

    def start_stubborn(self, trapped: str, *options: str) -> subprocess.Popen:
        """Two ranks that ignore a signal; returns once both do."""
        script = f"trap '' {trapped}; echo ready; exec sleep 1000"
        process = subprocess.Popen([TANDEM, "run", "-n", "2", *options, "sh", "-c", script], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.assertEqual([process.stdout.readline() for _ in range(2)], ["ready\n"] * 2)
        return process

    def test_kills_ranks_that_do_not_stop_in_time_after_a_signal(self):
        process = self.start_stubborn("TERM", "--shutdown-timeout", "100ms")
        process.send_signal(signal.SIGTERM)
        _, report = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 128 + signal.SIGTERM)
        self.assertIn("stopped by signal 15", report)

    def test_kills_ranks_that_do_not_stop_in_time_after_a_failure(self):
        script = "trap '' TERM; [ $RANK = 1 ] && exit 3; exec sleep 1000"
        result = tandem("run", "-n", "2", "--shutdown-timeout", "100ms", "sh", "-c", script)
        self.assertEqual(result.returncode, 3)

    def test_passes_a_hangup_on_but_not_under_nohup(self):
        process = self.start_stubborn("INT")
        process.send_signal(signal.SIGHUP)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 128 + signal.SIGHUP)

        script = f"trap '' HUP; exec '{TANDEM}' run sh -c 'echo ready; read line; echo went on'"
        process = subprocess.Popen(["sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL, text=True)
        self.assertEqual(process.stdout.readline(), "ready\n")
        process.send_signal(signal.SIGHUP)
        self.assertEqual(process.communicate("\n", timeout=60)[0], "went on\n")
        self.assertEqual(process.returncode, 0)

    def test_stops_the_children_of_ranks_too(self):
        process = subprocess.Popen([TANDEM, "run", "sh", "-c", "sleep 1000 & echo ready; wait"], stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL, text=True)
        self.assertEqual(process.stdout.readline(), "ready\n")
        process.send_signal(signal.SIGTERM)
        # The pipe ends when the last process that holds it has ended.
        self.assertEqual(process.communicate(timeout=60)[0], "")

    def test_passes_an_interrupt_on_and_leaves_no_rank_behind(self):
        process = subprocess.Popen(
            [TANDEM, "run", "-n", "2", "sh", "-c", "trap 'echo caught; exit 5' INT; echo ready $$; while :; do sleep 0.05; done"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        pids = [int(process.stdout.readline().split()[1]) for _ in range(2)]
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual(out, "caught\ncaught\n")
        self.assertEqual(process.returncode, 130)
        self.assertIn("stopped by signal 2", err)
        for pid in pids:
            self.assertFalse(pathlib.Path(f"/proc/{pid}").exists())

    def test_kills_at_the_second_interrupt(self):
        process = subprocess.Popen([TANDEM, "run", "sh", "-c", "trap 'echo stays' INT; echo ready; while :; do sleep 0.05; done"],
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.assertEqual(process.stdout.readline(), "ready\n")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.stdout.readline(), "stays\n")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=60), 130)
        process.stdout.close()

    def test_takes_its_ranks_along_when_it_is_killed(self):
        process = subprocess.Popen([TANDEM, "run", "-n", "2", "sh", "-c", "echo $$; exec sleep 100"],
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for _ in range(2):
            process.stdout.readline()
        process.kill()
        # The pipe ends when the last process that holds it has ended.
        self.assertEqual(process.communicate(timeout=60)[0], "")


class Completion(CliTest):
    def complete(self, *words: str) -> list[str]:
        """What bash offers for the last word."""
        quoted = " ".join(f"'{word}'" for word in words)
        script = (f"source <('{TANDEM}' completion bash); COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; "
                  'PATH=; _tandem 2>/dev/null; printf "%s\\n" "${COMPREPLY[@]}"')
        return subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout.split()

    def test_offers_commands_first(self):
        self.assertEqual(self.complete("tandem", "r"), ["run"])
        self.assertEqual(set(self.complete("tandem", "")), {"run", "ps", "stop", "logs", "stack", "version", "completion", "help"})

    def test_offers_the_flags_and_words_of_each_command(self):
        self.assertIn("--nproc-per-node", self.complete("tandem", "run", "--np"))
        self.assertEqual(self.complete("tandem", "version", "--j"), ["--json"])
        self.assertEqual(self.complete("tandem", "completion", "z"), ["zsh"])
        self.assertEqual(self.complete("tandem", "help", "ver"), ["version"])

    def test_offers_every_flag_that_help_shows(self):
        for command in ("run", "ps", "stop", "logs", "stack", "version", "completion"):
            shown = set(re.findall(r"--[a-z-]+", tandem(command, "--help").stdout.split("flags:")[1]))
            self.assertLessEqual(shown, set(self.complete("tandem", command, "-")), command)

    def check_syntax(self, shell: str, *check: str) -> None:
        if not shutil.which(shell):
            self.skipTest(f"{shell} is not installed")
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(tandem("completion", shell).stdout)
            file.flush()
            subprocess.run([shell, *check, file.name], check=True, timeout=60)

    def test_script_is_accepted_by_bash(self):
        self.check_syntax("bash", "-n")

    def test_script_is_accepted_by_zsh(self):
        self.check_syntax("zsh", "-n")

    def test_script_is_accepted_by_fish_and_offers_flags(self):
        self.check_syntax("fish", "--no-execute")
        script = f"source ('{TANDEM}' completion fish | psub); complete -C 'tandem run --np'"
        offered = subprocess.run(["fish", "-c", script], capture_output=True, text=True, check=True).stdout
        self.assertIn("--nproc-per-node\tranks to start on this machine", offered)

    def test_of_another_shell_is_an_error(self):
        self.assert_error(tandem("completion", "tcsh"), 2,
                          "tandem completion: the shell 'tcsh' is not one of bash, zsh, fish",
                          "try `source <(tandem completion bash)`")
        self.assertEqual(tandem("completion").returncode, 2)


class Binary(CliTest):
    def test_links_neither_torch_nor_cuda(self):
        dynamic = subprocess.run(["readelf", "-d", TANDEM], capture_output=True, text=True, check=True).stdout
        needed = re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)
        self.assertIn("libc.so.6", needed)
        for library in needed:
            self.assertNotRegex(library, r"torch|c10|cuda|nccl|nvidia|caffe")


if __name__ == "__main__":
    unittest.main()

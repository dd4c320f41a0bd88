"""The `tandem` command: what it prints, on which stream, and its exit codes."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "launch"))
from support import ErrorTest  # noqa: E402

BUILD = pathlib.Path(os.environ["TANDEM_BUILD"])
TANDEM = BUILD / "bin" / "tandem"


def tandem(*arguments: str, path: pathlib.Path = TANDEM, **options) -> subprocess.CompletedProcess:
    return subprocess.run([path, *arguments], capture_output=True, text=True, timeout=120, **options)


class Help(ErrorTest):
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
        self.assertEqual(commands, ["run", "launch", "ps", "logs", "stack", "stop", "shims", "version", "completion", "help"])
        for command in commands[:-1]:
            self.assertIn(f"usage: tandem {command}", tandem("help", command).stdout)
            self.assertEqual(tandem("help", command).stdout, tandem(command, "--help").stdout)

    def test_of_an_unknown_name_is_an_error(self):
        self.assert_error(tandem("help", "rnu"), 2, "'rnu'", "did you mean `tandem run`?")

    def test_takes_one_name_and_no_flags(self):
        self.assert_error(tandem("help", "run", "extra"), 2, "tandem help: ", "'extra'", "`tandem help run`")
        self.assert_error(tandem("help", "--bogus"), 2, "'--bogus'", "`tandem --help`")

    def test_fails_when_standard_output_is_full(self):
        with open("/dev/full", "w") as full:
            result = subprocess.run([TANDEM, "--help"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
        self.assertEqual(result.returncode, 8)
        self.assertIn("error: cannot write to standard output: No space left on device", result.stderr)


class Version(ErrorTest):
    def test_names_itself_the_compiler_and_the_torch(self):
        self.assertRegex(tandem("version").stdout,
                         r"^tandem \d+\.\d+\.\d+\ncompiler \w+ \d+\.\d+\.\d+\nbuilt for torch (none|\d+\.\d+.* \((CPU|CUDA)\))\n$")
        self.assertEqual(tandem("--version").stdout, tandem("version").stdout)

    def test_is_also_one_json_object(self):
        facts = json.loads(tandem("version", "--json").stdout)
        self.assertEqual(list(facts), ["tandem", "compiler", "torch"])
        self.assertIn(f"tandem {facts['tandem']}\n", tandem("version").stdout)

    def test_refuses_what_it_does_not_know(self):
        self.assert_error(tandem("version", "--jsn"), 2, "tandem version: ", "--jsn", "did you mean --json?")
        self.assert_error(tandem("version", "x"), 2, "tandem version: ", "'x'", "`tandem version --help`")


class Dispatch(ErrorTest):
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

    def test_gives_its_programs_openmp_threads_that_share_cores_unless_the_user_chose(self):
        copy = shutil.copy(TANDEM, self.folder / "tandem")
        self.add_program(self.folder, "tell", "$GOMP_SPINCOUNT/$OMP_WAIT_POLICY")
        plain = {name: value for name, value in os.environ.items() if name not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
        self.assertEqual(tandem("tell", path=copy, env=plain).stdout, "1000/ \n")
        self.assertEqual(tandem("tell", path=copy, env={**plain, "OMP_WAIT_POLICY": "active"}).stdout, "/active \n")
        self.assertEqual(tandem("tell", path=copy, env={**plain, "GOMP_SPINCOUNT": "7"}).stdout, "7/ \n")

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
        self.assert_error(tandem("sumarize", env=env), 2, "'sumarize'", "did you mean `tandem summarize`?")

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
        self.assert_error(tandem("xyzzy"), 2, "'xyzzy'", "`tandem --help`")
        self.assert_error(tandem("--xyzzy"), 2, "'--xyzzy'", "`tandem --help`")


class Run(ErrorTest):
    def test_explains_a_program_that_cannot_be_started(self):
        self.assert_error(tandem("run", "-n", "2", "no-such-program"), 4, "no-such-program", "PATH", "./no-such-program")
        self.assert_error(tandem("run", "/etc/passwd"), 4, "/etc/passwd", "not executable", "`chmod +x /etc/passwd`")

    def test_explains_wrong_usage(self):
        self.assert_error(tandem("run"), 2, "tandem run: no program", "`tandem run -n 2 ./train --lr 3e-4`")
        self.assert_error(tandem("run", "-n", "0", "true"), 2,
                          "nproc-per-node is 0", "1 to 4096 (--nproc-per-node)", "`tandem run -n 2 ...`")
        self.assert_error(tandem("run", "--shutdown-timeout", "-1s", "true"), 2,
                          "shutdown-timeout is -1s", "(--shutdown-timeout)", "give 0s to 8760h")
        for flag in ("min-uptime", "shutdown-timeout", "stall-timeout"):  # a point in time so late would overflow
            self.assert_error(tandem("run", f"--{flag}", "2562047h", "true"), 2, f"{flag} is 2562047h", f"(--{flag})", "8760h")
        self.assert_error(tandem("stop", "--timeout", "2562047h"), 2, "timeout is 2562047h", "(--timeout)", "8760h")
        self.assert_error(tandem("run", "-n", "two", "true"), 2,
                          "tandem run: --nproc-per-node: ", "'two'", "a number, auto, gpu, cpu or unset", "(default unset)")
        self.assert_error(tandem("run", "--nproc-per-nod", "2", "true"), 2,
                          "tandem run: ", "--nproc-per-nod\n", "did you mean --nproc-per-node?")

    def test_names_the_file_and_line_of_a_wrong_setting(self):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write("# ranks\nnproc: 0\n")
            file.flush()
            self.assert_error(tandem("run", "--config", file.name, "true"), 3,
                              "nproc-per-node is 0", f"1 to 4096 ({file.name}:2)", "`tandem run -n 2 ...`")

    def test_explains_a_script_whose_interpreter_is_missing(self):
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder) / "script"
            script.write_text("#!/no/such/interpreter\n")
            script.chmod(0o755)
            self.assert_error(tandem("run", str(script)), 4, f"{script}: No such file or directory", "#!")


class Completion(ErrorTest):
    def complete(self, *words: str) -> list[str]:
        """The completions that bash offers for the last word."""
        quoted = " ".join(f"'{word}'" for word in words)
        script = (f"source <('{TANDEM}' completion bash); COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; "
                  'PATH=; _tandem 2>/dev/null; printf "%s\\n" "${COMPREPLY[@]}"')
        return subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout.split()

    def test_offers_commands_first(self):
        self.assertEqual(self.complete("tandem", "r"), ["run"])
        self.assertEqual(set(self.complete("tandem", "")), {"run", "launch", "ps", "logs", "stack", "stop", "shims", "version", "completion", "help"})

    def test_offers_the_flags_and_words_of_each_command(self):
        self.assertIn("--nproc-per-node", self.complete("tandem", "run", "--np"))
        self.assertEqual(self.complete("tandem", "version", "--j"), ["--json"])
        self.assertEqual(self.complete("tandem", "completion", "z"), ["zsh"])
        self.assertEqual(self.complete("tandem", "help", "ver"), ["version"])

    def test_offers_every_flag_that_help_shows(self):
        for command in ("run", "ps", "stop", "logs", "stack", "version", "completion"):
            names = re.findall(r"^  (?:-\w,|   ) (--.*?)(?:  |$)", tandem(command, "--help").stdout, re.M)
            shown = set(", ".join(names).split(", "))
            self.assertIn("--help", shown)
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
        self.assertIn("--nproc-per-node\tranks on this host", offered)

    def test_of_another_shell_is_an_error(self):
        self.assert_error(tandem("completion", "tcsh"), 2,
                          "tandem completion: ", "'tcsh'", "bash, zsh, fish", "`source <(tandem completion bash)`")
        self.assertEqual(tandem("completion").returncode, 2)


class Binary(ErrorTest):
    def test_links_neither_torch_nor_cuda(self):
        dynamic = subprocess.run(["readelf", "-d", TANDEM], capture_output=True, text=True, check=True).stdout
        needed = re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)
        for library in needed:
            self.assertNotRegex(library, r"torch|c10|cuda|nccl|nvidia|caffe")


if __name__ == "__main__":
    unittest.main()

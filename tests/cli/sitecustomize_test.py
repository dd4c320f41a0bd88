"""What the launcher's sitecustomize.py does in a Python rank, and what it does not change."""

import ast
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(os.environ["TANDEM_SOURCE"]) / "src/launch/cause/sitecustomize.py"
STACK_SIGNAL = 50


class SitecustomizeTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.stacks = self.folder / "stacks"
        self.errors = self.folder / "error.json"
        self.first = self.folder / "first"
        self.stacks.mkdir()
        self.first.mkdir()
        (self.first / "sitecustomize.py").write_bytes(SCRIPT.read_bytes())

    def environment(self, *more_folders: pathlib.Path, **changes: str) -> dict:
        folders = ":".join(map(str, [self.first, *more_folders]))
        return {**os.environ, "PYTHONPATH": folders, "TANDEM_STACK_DIR": str(self.stacks), "PYTHONDONTWRITEBYTECODE": "1",
                "TORCHELASTIC_ERROR_FILE": str(self.errors), **changes}

    def python(self, *arguments: str, **options) -> subprocess.CompletedProcess:
        options.setdefault("env", self.environment())
        return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=60,
                              start_new_session=True, **options)

    def add_module(self, name: str, text: str) -> pathlib.Path:
        folder = self.folder / "second"
        folder.mkdir(exist_ok=True)
        (folder / f"{name}.py").write_text(text)
        return folder


class StackSignal(SitecustomizeTest):
    DUMP = f"import os; os.kill(os.getpid(), {STACK_SIGNAL})"

    def dumps(self) -> list[str]:
        return [file.read_text() for file in self.stacks.iterdir()]

    def test_writes_the_stacks_of_all_threads_and_lets_the_program_go_on(self):
        script = ("import threading\nready, go = threading.Event(), threading.Event()\n"
                  "def other(): ready.set(); go.wait()\n"
                  f"t = threading.Thread(target=other); t.start(); ready.wait()\n{self.DUMP}\ngo.set(); t.join(); print('on')")
        self.assertEqual(self.python("-c", script).stdout, "on\n")
        [dump] = self.dumps()
        self.assertIn("Current thread", dump)
        self.assertIn('line 5 in <module>', dump)
        self.assertIn("in other", dump)

    def test_goes_to_a_file_of_its_own_in_a_forked_child(self):
        script = f"import os, sys\nif os.fork() == 0:\n  {self.DUMP}; os._exit(0)\nos.wait(); {self.DUMP}"
        self.python("-c", script)
        self.assertEqual(sorted("line 3" in dump for dump in self.dumps()), [False, True])
        self.assertEqual(sorted("line 4" in dump for dump in self.dumps()), [False, True])

    def test_works_in_spawned_children_and_after_a_change_of_folder(self):
        script = self.folder / "spawn.py"
        script.write_text("import multiprocessing, os\n"
                          f"def work():\n  os.chdir('/'); os.kill(os.getpid(), {STACK_SIGNAL})\n"
                          "if __name__ == '__main__':\n"
                          "  process = multiprocessing.get_context('spawn').Process(target=work)\n"
                          "  process.start(); process.join(); print(process.exitcode)\n")
        result = self.python("spawn.py", cwd=self.folder, env=self.environment(TANDEM_STACK_DIR="stacks"))
        self.assertEqual((result.stdout, result.stderr), ("0\n", ""))
        self.assertEqual(sum("in work" in dump for dump in self.dumps()), 1)

    def test_does_not_disturb_without_a_folder_or_with_one_that_cannot_be_written(self):
        for folder in ("", "/proc/nowhere", "/proc/self"):
            result = self.python("-c", "print('ran')", env=self.environment(TANDEM_STACK_DIR=folder))
            self.assertEqual((result.stdout, result.stderr), ("ran\n", ""), folder)

    def test_restarts_what_it_interrupts(self):
        script = "import sys\nprint(flush=True)\nprint(sys.stdin.read())"
        with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                              env=self.environment()) as process:
            process.stdout.readline()
            process.send_signal(STACK_SIGNAL)
            out, _ = process.communicate("typed", timeout=60)
        self.assertEqual((out, process.returncode), ("typed\n", 0))


class ErrorFile(SitecustomizeTest):
    def test_has_the_form_that_torchrun_reads(self):
        result = self.python("-c", "def train():\n  raise ValueError('no \u00e4pples')\ntrain()")
        self.assertEqual(result.returncode, 1)
        message = json.loads(self.errors.read_text())["message"]
        self.assertEqual(message["message"], "ValueError: no \u00e4pples")
        self.assertEqual(list(message["extraInfo"]), ["py_callstack", "timestamp"])
        self.assertEqual(message["extraInfo"]["py_callstack"], result.stderr)
        self.assertRegex(message["extraInfo"]["timestamp"], r"^\d{10}$")

    def test_does_not_change_what_is_printed(self):
        script = "def f():\n  raise ValueError('x')\nf()"
        plain = self.python("-c", script, env={**os.environ, "PYTHONPATH": ""})
        self.assertEqual(self.python("-c", script).stderr, plain.stderr)

    def test_keeps_the_one_that_is_there(self):
        self.errors.write_text("the first cause")
        self.python("-c", "1 / 0")
        self.assertEqual(self.errors.read_text(), "the first cause")

    def test_is_not_for_exits_and_interrupts(self):
        for script in ("import sys; sys.exit(3)", "raise KeyboardInterrupt", "pass"):
            self.python("-c", script)
            self.assertFalse(self.errors.exists(), script)

    def test_is_the_matter_of_the_rank_and_not_of_its_children(self):
        self.python("-c", "import subprocess, sys; subprocess.run([sys.executable, '-c', '1 / 0'])")
        self.assertFalse(self.errors.exists())

    def test_leaves_the_hook_of_a_program_in_its_place(self):
        other = self.add_module("sitecustomize", "import sys\nsys.excepthook = lambda *error: print('theirs')")
        self.assertEqual(self.python("-c", "1 / 0", env=self.environment(other)).stdout, "theirs\n")
        self.assertIn("ZeroDivisionError", self.python("-c", "import sys; sys.excepthook = sys.__excepthook__; 1 / 0").stderr)

    def test_that_cannot_be_written_changes_nothing(self):
        result = self.python("-c", "1 / 0", env=self.environment(TORCHELASTIC_ERROR_FILE="/proc/nowhere/error.json"))
        self.assertTrue(result.stderr.endswith("ZeroDivisionError: division by zero\n"))
        self.assertNotIn("During handling", result.stderr)


class StepsAside(SitecustomizeTest):
    LOOK = "import sys; print(sys.modules.get('sitecustomize')); print([p for p in sys.path if 'first' in p])"

    def test_leaves_no_trace_where_there_is_no_other(self):
        result = self.python("-S", "-c", "import os, site, sys; ours = sys.path[1]; "
                             # Debian and Ubuntu have one beside the standard library.
                             "sys.path[:] = [p for p in sys.path if 'packages' not in p and "
                             "(p == ours or not os.path.exists(p + '/sitecustomize.py'))]; "
                             f"site.execsitecustomize(); {self.LOOK}; import sitecustomize")
        self.assertEqual(result.stdout, "None\n[]\n")
        self.assertIn("ModuleNotFoundError: No module named 'sitecustomize'", result.stderr)

    def test_lets_the_next_one_run_under_its_name(self):
        other = self.add_module("sitecustomize", "mark = 'next'\nprint('runs')")
        result = self.python("-c", "import sitecustomize; print(sitecustomize.mark, sitecustomize.__file__)",
                             env=self.environment(other))
        self.assertEqual(result.stdout, f"runs\nnext {other}/sitecustomize.py\n")

    def test_hands_an_error_of_the_next_one_to_python(self):
        other = self.add_module("sitecustomize", "raise RuntimeError('theirs')")
        result = self.python("-c", "print('ran')", env=self.environment(other))
        self.assertEqual(result.stdout, "ran\n")
        self.assertIn("RuntimeError: theirs", result.stderr)

    def test_runs_inside_another_launcher(self):
        inner = self.folder / "inner"
        inner.mkdir()
        (inner / "sitecustomize.py").write_bytes(SCRIPT.read_bytes())
        result = self.python("-c", "1 / 0", env=self.environment(inner))
        self.assertEqual(result.stderr.count("ZeroDivisionError"), 1)
        self.assertIn("ZeroDivisionError", self.errors.read_text())

    def test_leaves_usercustomize_alone(self):
        other = self.add_module("usercustomize", "print('user')")
        result = self.python("-c", "import site; print(site.ENABLE_USER_SITE)", env=self.environment(other))
        self.assertEqual(result.stdout, "user\nTrue\n" if "True" in result.stdout else "False\n")

    def test_is_not_run_by_a_python_that_takes_nothing_from_outside(self):
        for flag in ("-S", "-I", "-E"):
            result = self.python(flag, "-c", "import sys; print(sys.excepthook is sys.__excepthook__)")
            self.assertEqual((result.stdout, result.stderr), ("True\n", ""), flag)

    def test_runs_modules_as_programs(self):
        other = self.add_module("program", "import sys\nprint(__name__, sys.argv[1:])")
        self.assertEqual(self.python("-m", "program", "x", env=self.environment(other)).stdout, "__main__ ['x']\n")


class Cost(SitecustomizeTest):
    def test_imports_nothing_but_the_fault_handler(self):
        script = "import sys; print(sorted(sys.modules))"
        plain = self.python("-c", script, env={**os.environ, "PYTHONPATH": ""})
        added = set(ast.literal_eval(self.python("-c", script).stdout)) - set(ast.literal_eval(plain.stdout))
        self.assertLessEqual(added, {"faulthandler"})

    def test_is_understood_by_python_3_6(self):
        ast.parse(SCRIPT.read_text(), feature_version=(3, 6))


class Shim(SitecustomizeTest):
    """The module of `tandem shims`, with a program in tandem's place that prints its arguments."""

    def setUp(self):
        super().setUp()
        echo = self.folder / "echo"
        echo.write_text('#!/bin/sh\nprintf "[%s]" "$@"\n')
        echo.chmod(0o755)
        text = (SCRIPT.parents[2] / "cli/shim.py").read_text()
        (self.first / "sitecustomize.py").write_text(text.replace("TANDEM_PROGRAM", str(echo)))

    def test_takes_the_launchers_of_torch_and_accelerate(self):
        for module in ("torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch"):
            for words in (["-m", module], ["-u", "-m", module], ["-X", "dev", "-W", "ignore", "-m", module], ["-um", module], [f"-m{module}"],
                          [f"-Bum{module}"], ["-Xdev", "-BWignore", "-m", module], ["-BW", "ignore", "-m", module],
                          ["--check-hash-based-pycs", "default", "-m", module]):
                shown = self.python(*words, "--nproc_per_node=2", "train.py", "a b", "").stdout
                self.assertEqual(shown, f"[run][{sys.executable}][-m][{module}][--nproc_per_node=2][train.py][a b][]", words)

    def test_takes_accelerate_launch(self):
        shown = self.python("-um", "accelerate.commands.accelerate_cli", "launch", "train.py").stdout
        self.assertEqual(shown, f"[run][{sys.executable}][-m][accelerate.commands.launch][train.py]")

    def test_leaves_all_else_alone(self):
        other = self.add_module("sitecustomize", "print('theirs')")
        (self.folder / "script.py").write_text("import sys; print(sys.argv[1:])")
        environment = self.environment(other)
        told = self.python(str(self.folder / "script.py"), "-m", "torch.distributed.run", env=environment)
        self.assertEqual((told.stdout, told.stderr), ("theirs\n['-m', 'torch.distributed.run']\n", ""))
        self.assertEqual(self.python("-m", "this", env=environment).stdout[:14], "theirs\nThe Zen")
        for flags in (["-c"], ["-Bc"], ["-uBWignore", "-c"]):
            self.assertEqual(self.python(*flags, "print(1)", "-m", "torch.distributed.run", env=environment).stdout, "theirs\n1\n", flags)
        self.assertEqual(self.python("-cprint(1)", "-m", "torch.distributed.run", env=environment).stdout, "theirs\n1\n")
        self.assertEqual(self.python("-m", "accelerate.commands.accelerate_cli", "env", env=environment).stdout[:7], "theirs\n")

    def test_says_so_if_tandem_is_gone(self):
        (self.folder / "echo").unlink()
        result = self.python("-m", "torch.distributed.run", "--help")
        self.assertEqual((result.stdout, result.returncode), ("", 4))
        self.assertRegex(result.stderr, rf"^error: cannot start {self.folder}/echo: .*\nhint: .*`tandem shims`.*{self.first}")


if __name__ == "__main__":
    unittest.main()

"""tools/setup.sh, the real script, on a machine of fake programs.

A Machine is a folder: a copy of the script, and a PATH that holds nothing but fakes and the few base tools the script
needs. apt-get and pip only pretend. The compiler and Python are the real ones behind thin wrappers, so that the
questions the script asks them are really answered. Every path has spaces and a quote in it.
"""

import os
import pty
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest
from importlib import metadata
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "tools" / "setup.sh"
HEADER = "include/torch/csrc/api/include/torch/torch.h"
BASE_TOOLS = "bash sh env sed grep cat cksum tail head dirname readlink mkdir rm mv cp flock tr true".split()
REAL_CXX = shutil.which("c++") or shutil.which("g++") or "c++"

# What makes each Debian package count as installed.
PACKAGES = {
    "cmake": "have/cmake", "ninja-build": "have/ninja",
    "libcli11-dev": "include/CLI/CLI.hpp", "nlohmann-json3-dev": "include/nlohmann/json.hpp",
    "libyaml-cpp-dev": "include/yaml-cpp/yaml.h", "libjpeg-dev": "include/jpeglib.h", "libpng-dev": "include/png.h", "libgtest-dev": "include/gtest/gtest.h",
    "clang-format": "have/clang-format", "clang-tidy": "have/clang-tidy", "python3-venv": "have/python3-venv",
}

PEERS = "accelerate ipykernel opencv-python-headless pillow rouge_score safetensors scikit-learn scipy tensorboard tiktoken tokenizers transformers".split()
FOLDERS = "accelerate cv2 ipykernel PIL rouge_score safetensors scipy sklearn tensorboard tiktoken tokenizers transformers ../../../apart/torchvision".split()

TOOL = """version=$(cat "$MACHINE/have/${0##*/}" 2>/dev/null) && echo "${0##*/} version $version" """
COMPILER = f"""exec {REAL_CXX} -nostdinc -isystem "$MACHINE/include" -w $STUB_CXX_FLAGS "$@" """
APT_GET = """[ -z "$STUB_APT_SAYS" ] || { echo "$STUB_APT_SAYS"; exit 100; }
[ -z "$STUB_APT_DOES_NOTHING" ] || exit 0
for package; do
  file=$(sed -n "s/^$package //p" "$MACHINE/packages")
  [ -z "$file" ] || { mkdir -p "$(dirname "$MACHINE/$file")"; echo 3.25.1 >"$MACHINE/$file"; }
done
"""
SUDO = """case $1 in
  -n) [ -e "$MACHINE/have/free-sudo" ] || exit 1; shift ;;
  -v) exit "${STUB_PASSWORD_IS_WRONG:-0}" ;;
esac
exec "$@"
"""
PYTHON = f"""site=$(dirname "$(dirname "$0")")/lib/python3.11/site-packages
case "$1 $2 $3" in
  "-m venv "*)
    [ -z "$STUB_VENV_SAYS" ] || {{ echo "$STUB_VENV_SAYS"; exit 1; }}
    mkdir -p "$3/bin" "$3/lib/python3.11/site-packages/pip"
    cp "$0" "$3/bin/python" && cp "$0" "$3/bin/python3" ;;
  "-m pip --version") [ -d "$site/pip" ] ;;
  "-m pip install")
    [ -z "$STUB_PIP_SAYS" ] || {{ echo "$STUB_PIP_SAYS"; exit 1; }}
    cp -r "$MACHINE/wheel/torch" "$site/"
    (cd "$site" && mkdir -p {" ".join(FOLDERS)})
    [ -z "$STUB_PIP_SIGNAL" ] || {{ kill "-$STUB_PIP_SIGNAL" "$PPID"; exit 1; }} ;;
  *) STUB_SELF=$0 PYTHONPATH=$site:$MACHINE/site exec "{sys.executable}" "$@" ;;
esac
"""
STUBS = {
    **dict.fromkeys(("cmake", "ninja", "clang-format", "clang-tidy"), TOOL),
    "c++": COMPILER, "apt-get": APT_GET, "sudo": SUDO,
    "id": 'echo "${STUB_UID:-0}"', "df": 'echo Avail; echo "${STUB_FREE_KB:-9000000}"',
}
SITECUSTOMIZE = """import os, sys
sys.executable = os.environ["STUB_SELF"]
sys.path = [p for p in sys.path if "-packages" not in p or p.startswith(os.environ["MACHINE"])]
if "STUB_PYTHON_VERSION" in os.environ:
    sys.version_info = tuple(map(int, os.environ["STUB_PYTHON_VERSION"].split(".")))
if not os.path.exists(os.environ["MACHINE"] + "/have/python3-venv"):
    sys.modules["ensurepip"] = None
"""


def write(path, text=""):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def fake_torch(folder, version, version_file="version.py"):
    write(folder / "__init__.py", "raise ImportError('torch is only to be found, not imported')")
    write(folder / HEADER)
    write(folder / version_file, f"__version__ = '{version}'\n" if version_file == "version.py" else f"{version}\n")
    return folder


def tree(folder):
    return {p: p.stat().st_mtime_ns for p in folder.rglob("*")}


class Machine:
    """Everything is there but torch; the user is root."""

    def __init__(self, root):
        self.root = root
        self.repo, self.bin = root / "repo", root / "bin"
        self.build, self.venv, self.record = self.repo / "build", self.repo / ".venv", self.repo / "build/setup.env"
        self.python = root / "usr/bin/python3"
        write(self.repo / "tools/setup.sh", SCRIPT.read_text()).chmod(0o755)
        self.bin.mkdir()
        for tool in BASE_TOOLS:
            (self.bin / tool).symlink_to(shutil.which(tool))
        for path, body in [(self.python, PYTHON), *((self.bin / name, body) for name, body in STUBS.items())]:
            self.fake(path, body)
        write(root / "calls")
        write(root / "site/sitecustomize.py", SITECUSTOMIZE)
        write(root / "packages", "".join(f"{name} {file}\n" for name, file in PACKAGES.items()))
        fake_torch(root / "wheel/torch", "2.13.0+cpu")
        for file in PACKAGES.values():
            write(root / file, "3.25.1\n")

    def fake(self, path, body):
        write(path, '#!/bin/sh\necho "${0##*/} $*" >>"$MACHINE/calls"\n' + body).chmod(0o755)

    def lacks(self, *packages):
        for package in packages:
            (self.root / PACKAGES[package]).unlink()

    def calls(self, prefix=""):
        return [line for line in (self.root / "calls").read_text().splitlines() if line.startswith(prefix)]

    def start(self, *args, cwd=None, stdin=subprocess.DEVNULL, **env):
        env = {"PATH": f"{self.bin}:{self.python.parent}", "MACHINE": self.root, **env}
        return subprocess.Popen(
            [self.repo / "tools/setup.sh", *args], env={name: str(value) for name, value in env.items()},
            cwd=cwd or self.root, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(self, *args, **options):
        process = self.start(*args, **options)
        out, err = process.communicate(timeout=60)
        assert out == "", f"standard output is not for the set-up: {out}"
        return process.returncode, err.splitlines()


class SetupTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name).resolve()
        self.machine = self.fresh()

    def fresh(self):
        return Machine(Path(tempfile.mkdtemp(dir=self.folder, prefix="it's a machine ")))

    def give_torch(self, version="2.13.0", python=None):
        return fake_torch((python or self.machine.python).parents[1] / "lib/python3.11/site-packages/torch", version)

    def make_python(self, folder, name="python3"):
        self.machine.fake(folder / name, PYTHON)
        return folder / name

    def assert_passes(self, *args, says=(), **env):
        self.assertEqual(self.machine.run(*args, **env), (0, list(says)))

    def assert_recorded(self, **expected):
        recorded = dict(word.split("=", 1) for word in shlex.split(self.machine.record.read_text()))
        self.assertEqual({key: recorded[key] for key in expected}, {key: str(value) for key, value in expected.items()})

    def assert_fails(self, sentence, hint, *args, code=4, announced=0, **env):
        """One sentence and one hint, after so many announcements, and no record."""
        actual, lines = self.machine.run(*args, **env)
        self.assertEqual((actual, len(lines)), (code, announced + 2), lines)
        self.assertRegex(lines[-2], "^setup: .*" + sentence)
        self.assertRegex(lines[-1], "^hint: .*" + hint)
        self.assertFalse(self.machine.record.exists())

    def assert_pip_ran(self, times):
        self.assertEqual(len(self.machine.calls(" ".join(["python -m pip install torch==2.13.0 numpy", *PEERS]))), times)


VENV_LINE = "setup: installing torch 2.13.0 into .venv (once, takes minutes; log: build/setup.log)"


class TheRecord(SetupTest):
    def test_is_for_sh_to_source_even_where_paths_have_spaces_and_quotes(self):
        torch = self.give_torch("2.13.0+cpu")
        self.assert_passes()
        print_it = '. "$0"; printf "%s\\n" "$PYTHON" "$TORCH_DIR" "$TORCH_VERSION"'
        lines = subprocess.check_output(["sh", "-c", print_it, self.machine.record], text=True).splitlines()
        self.assertEqual(lines, [str(self.machine.python), str(torch), "2.13.0+cpu"])
        self.assertEqual(sorted(os.listdir(self.machine.build)), ["setup.env", "setup.lock", "setup.log"])

    def test_goes_where_the_environment_says(self):
        self.give_torch()
        self.assertEqual(self.machine.run(TANDEM_SETUP_DIR="over there"), (0, []))
        self.assertTrue((self.machine.root / "over there/setup.env").exists() and not self.machine.build.exists())

    def test_makes_the_second_run_silent_and_free_of_calls(self):
        self.machine.lacks("cmake")
        self.assertEqual(self.machine.run()[0], 0)
        before = self.machine.calls(), self.machine.record.read_text()
        self.assert_passes()
        self.assertEqual((self.machine.calls(), self.machine.record.read_text()), before)

    def test_of_check_serves_build_but_not_the_reverse(self):
        self.give_torch()
        for mode, asks in (("build", True), ("check", True), ("build", False), ("check", False)):
            before = len(self.machine.calls())
            self.assert_passes(mode)
            self.assertEqual(len(self.machine.calls()) > before, asks, mode)

    def test_is_made_anew_when_an_input_changes(self):
        torch = self.give_torch()
        other = self.make_python(self.machine.root / "other/bin")
        self.give_torch("2.12.0", other)
        script = self.machine.repo / "tools/setup.sh"
        for what, change in (
            ("PYTHON", lambda: {"PYTHON": other}),
            ("TORCH_DIR", lambda: {"TORCH_DIR": torch}),
            ("CXX", lambda: {"CXX": self.machine.bin / "c++"}),
            ("VENV", lambda: {"VENV": "elsewhere"}),
            ("the script", lambda: script.write_text(script.read_text() + "\n") and {}),
            ("the version of torch", lambda: self.give_torch("2.12.0") and {}),
            ("python3 on PATH", lambda: self.give_torch("2.11.0", self.make_python(self.machine.bin)) and {}),
        ):
            self.assert_passes()
            env, before = change(), len(self.machine.calls())
            self.assert_passes(**env)
            self.assertGreater(len(self.machine.calls()), before, what)
        self.assert_recorded(TORCH_VERSION="2.11.0")

    def test_is_not_trusted_when_what_it_names_is_gone(self):
        for gone in (self.give_torch() / "version.py", self.machine.bin / "c++"):
            self.give_torch()
            self.assert_passes()
            gone.unlink()
            self.assertEqual(self.machine.run(STUB_PIP_SAYS="broken")[0], 4)

    def test_is_made_by_one_of_several_runs_that_start_together(self):
        self.machine.lacks("cmake")
        runs = [self.machine.start() for _ in range(4)]
        said = [run.communicate(timeout=60)[1] for run in runs]
        self.assertEqual([run.returncode for run in runs], [0] * 4, said)
        self.assertEqual(sorted(said)[:3], [""] * 3)
        self.assertEqual(len(self.machine.calls("cmake")), 2, "asked before and after the install, by one run")
        self.assert_pip_ran(1)

    def test_cannot_be_written_is_one_sentence(self):
        self.assert_fails("cannot write into", "TANDEM_SETUP_DIR", TANDEM_SETUP_DIR="packages/build")
        self.give_torch()
        (self.machine.bin / "mv").unlink()
        self.assert_fails("cannot write .*setup.env", "TANDEM_SETUP_DIR")
        self.assertEqual(sorted(os.listdir(self.machine.build)), ["setup.lock", "setup.log"])


class TheCall(SetupTest):
    def test_with_an_unknown_mode_is_refused_with_code_2(self):
        self.assert_fails("unknown mode: demo", r"tools/setup.sh \[build\|check\]", "demo", code=2)
        self.assert_fails("unknown mode: build check", "build", "build", "check", code=2)

    def test_where_one_stands_does_not_matter(self):
        self.give_torch("2.11.0", self.make_python(self.machine.root / "other/bin"))
        fake_torch(self.machine.root / "here/torch", "2.4.0")
        self.assert_passes(cwd=self.machine.root / "here", PYTHON="../other/bin/python3")
        self.assert_recorded(TORCH_VERSION="2.11.0")


class Compiler(SetupTest):
    def test_none_is_one_sentence(self):
        (self.machine.bin / "c++").unlink()
        self.assert_fails(r"no C\+\+ compiler was found", r"sudo apt-get install g\+\+")

    def test_asked_for_by_name_is_never_replaced(self):
        self.assert_fails("looked for icpc", "set CXX", CXX="icpc")
        self.machine.fake(self.machine.bin / "broken", "exit 1")
        self.assert_fails("compiler broken does not run", "CXX", CXX="broken")

    def test_too_old_is_one_sentence(self):
        self.assert_fails("GCC 10 is too old", "CXX=", STUB_CXX_FLAGS="-U__clang__ -U__GNUC__ -D__GNUC__=10")
        self.assert_fails("Clang 13 is too old", "CXX=", STUB_CXX_FLAGS="-D__clang__ -D__clang_major__=13")

    def test_just_new_enough_passes_and_may_be_several_words(self):
        self.give_torch()
        self.assert_passes(STUB_CXX_FLAGS="-U__clang__ -U__GNUC__ -D__GNUC__=11")
        self.assert_passes(CXX="env c++", STUB_CXX_FLAGS="-D__clang__ -D__clang_major__=14")


class Python(SetupTest):
    def test_that_does_not_serve_is_one_sentence(self):
        self.assert_fails("wrong Python: .*python3 is 3.9, and 3.10", "set PYTHON", STUB_PYTHON_VERSION="3.9.18")
        self.machine.fake(self.machine.python, "exit 127")
        self.assert_fails("wrong Python: python3 does not run", "set PYTHON")
        self.machine.python.unlink()
        self.assert_fails("wrong Python: python3 was not found", "sudo apt-get install python3")
        self.assert_fails("wrong Python: python4 was not found", "set PYTHON", PYTHON="python4")

    def test_behind_a_shim_is_recorded_by_its_own_path(self):
        other = self.make_python(self.machine.root / "other/bin")
        self.give_torch("2.11.0", other)
        self.machine.fake(self.machine.bin / "python3", f'exec "{other}" "$@"')
        self.assert_passes()
        self.assert_recorded(PYTHON=other, TORCH_VERSION="2.11.0")


class Packages(SetupTest):
    def setUp(self):
        super().setUp()
        self.give_torch()

    def assert_installs(self, mode, *packages, **env):
        self.assert_passes(mode, says=["setup: installing Debian packages: " + " ".join(packages)], **env)
        self.assertEqual(self.machine.calls("apt-get"), [
            "apt-get update", "apt-get install -y --no-install-recommends " + " ".join(packages)])

    def test_that_are_all_there_need_no_apt(self):
        (self.machine.bin / "apt-get").unlink()
        self.assert_passes("check")

    def test_only_those_missing_or_too_old_are_installed(self):
        self.machine.lacks("libyaml-cpp-dev")
        write(self.machine.root / "have/cmake", "3.9.6\n")
        self.assert_installs("build", "cmake", "libyaml-cpp-dev")

    def test_are_eight_for_build_and_ten_for_check_on_a_bare_machine(self):
        for mode, count in (("build", 8), ("check", 10)):
            self.machine = self.fresh()
            self.give_torch()
            self.machine.lacks(*PACKAGES)
            self.assert_installs(mode, *list(PACKAGES)[:count])

    def test_python3_venv_is_one_only_where_a_venv_must_be_made(self):
        self.machine.lacks("python3-venv", "cmake")
        _, lines = self.machine.run(PYTHON=self.make_python(self.machine.root / "other/bin"))
        self.assertIn("setup: installing Debian packages: cmake python3-venv", lines)

    def test_are_installed_by_sudo_where_it_needs_no_password(self):
        self.machine.lacks("cmake")
        write(self.machine.root / "have/free-sudo")
        self.assert_installs("build", "cmake", STUB_UID=1000)
        self.assertEqual(len(self.machine.calls("sudo -n env")), 2)

    def test_are_installed_by_sudo_with_a_password_at_a_terminal(self):
        self.machine.lacks("cmake")
        terminal = pty.openpty()
        for end in terminal:
            self.addCleanup(os.close, end)
        user = {"stdin": terminal[1], "STUB_UID": 1000}
        self.assert_fails("no right", "apt-get install -y cmake$", announced=1, STUB_PASSWORD_IS_WRONG=1, **user)
        self.assert_installs("build", "cmake", **user)

    def test_without_the_right_the_exact_line_to_run_is_told(self):
        self.machine.lacks("cmake", "ninja-build")
        for _ in ("sudo asks for a password", "no sudo"):
            self.assert_fails("no right to install", "sudo apt-get install -y cmake ninja-build$", STUB_UID=1000)
            (self.machine.bin / "sudo").unlink(missing_ok=True)
        self.assertEqual(self.machine.calls("apt-get"), [])

    def test_missing_without_apt_or_after_it_are_named_as_things(self):
        self.machine.lacks("cmake", "libcli11-dev", "libyaml-cpp-dev")
        things = "CMake 3.22 or newer, CLI11 headers, yaml-cpp$"
        self.assert_fails(f"still missing after apt-get: {things}", "log: ", announced=1, STUB_APT_DOES_NOTHING=1)
        (self.machine.bin / "apt-get").unlink()
        self.assert_fails(f"no apt-get .*: {things}", "package manager")

    def test_that_apt_cannot_install_are_one_sentence_each(self):
        self.machine.lacks("cmake")
        for says, sentence in (
            ("Temporary failure resolving 'mirror'", "no network: apt-get"),
            ("E: Failed to fetch cmake.deb\nE: Sorry", "no network: apt-get"),
            ("E: Unable to fetch some archives", "no network: apt-get"),
            ("E: Could not get lock /var/lib/dpkg/lock-frontend", "another program is installing packages"),
            ("cannot copy: No space left on device", "the disk is full"),
        ):
            self.assert_fails(sentence, "run again .log: .*build/setup.log", announced=1, STUB_APT_SAYS=says)
        self.assert_fails("apt-get failed$", "E: odd .log: .*build/setup.log", announced=1, STUB_APT_SAYS="E: odd")


class Torch(SetupTest):
    def test_dir_may_be_a_package_its_parent_an_environment_or_a_zip(self):
        self.give_torch()
        package = self.give_torch("2.10.0", self.make_python(self.machine.root / "other/bin"))
        libtorch = fake_torch(self.machine.root / "libtorch", "2.12.1+cu126", "build-version")
        for asked in (package, package.parent, package.parents[3], package.relative_to(self.machine.root)):
            self.assert_passes(TORCH_DIR=asked)
            self.assert_recorded(TORCH_DIR=package, TORCH_VERSION="2.10.0", PYTHON=self.machine.python)
        self.assert_passes(TORCH_DIR=libtorch)
        self.assert_recorded(TORCH_DIR=libtorch, TORCH_VERSION="2.12.1+cu126")

    def test_dir_that_does_not_serve_is_refused(self):
        old = fake_torch(self.machine.root / "old", "2.9.1+cpu")
        self.assert_fails("TORCH_DIR=.*nowhere holds no torch", "unset TORCH_DIR", TORCH_DIR="nowhere")
        self.assert_fails("TORCH_DIR=.*old holds torch 2.9.1.cpu, and 2.10", "unset TORCH_DIR", TORCH_DIR=old)
        (old / "version.py").unlink()
        self.assert_fails("TORCH_DIR=.*old holds torch .unknown.", "unset TORCH_DIR", TORCH_DIR=old)

    def test_of_the_python_is_used_from_2_10_on(self):
        for version in ("2.10.0", "2.13.0+cpu", "2.14.0a0+git12", "2.10.0rc1", "3.0.0"):
            torch = self.give_torch(version)
            self.assert_passes()
            self.assert_recorded(TORCH_DIR=torch, TORCH_VERSION=version)
        self.assert_pip_ran(0)

    def test_of_the_python_that_does_not_serve_is_left_alone_for_the_venv(self):
        for version, fault in (("2.9.1+cu128", "is older than 2.10"), ("2.13.0", "has no C++ headers")):
            self.machine = self.fresh()
            torch = self.give_torch(version)
            if "headers" in fault:
                (torch / HEADER).unlink()
            before = tree(torch)
            said = f"setup: torch {version} of {self.machine.python} {fault}: using a private .venv"
            self.assert_passes(says=[said, VENV_LINE])
            self.assert_recorded(TORCH_VERSION="2.13.0+cpu")
            self.assertEqual(tree(torch), before)

    def test_missing_from_a_named_python_is_said_and_that_python_makes_the_venv(self):
        self.give_torch()
        other = self.make_python(self.machine.root / "other/bin")
        self.assert_passes(PYTHON=other, says=[f"setup: {other} has no torch: using a private .venv", VENV_LINE])
        self.assert_recorded(TORCH_DIR=self.machine.venv / "lib/python3.11/site-packages/torch")


class Venv(SetupTest):
    def test_is_made_where_no_torch_is_found(self):
        self.assert_passes(says=[VENV_LINE])
        self.assert_recorded(PYTHON=self.machine.venv / "bin/python")
        self.assertEqual(self.machine.calls("python3 -m venv"), [f"python3 -m venv {self.machine.venv}"])
        self.assert_pip_ran(1)

    def test_that_has_the_torch_is_kept_as_it_is(self):
        torch = self.give_torch("2.13.0+cpu", self.make_python(self.machine.venv / "bin", "python"))
        for peer in FOLDERS:
            (torch.parent / peer).mkdir(parents=True)
        before = tree(self.machine.venv)
        self.assert_passes()
        self.assert_recorded(PYTHON=self.machine.venv / "bin/python")
        self.assertEqual(tree(self.machine.venv), before)

    def test_with_another_torch_or_without_what_tests_compare_with_is_completed(self):
        for version in ("2.11.0", "2.13.0+cpu"):
            self.machine = self.fresh()
            self.give_torch(version, self.make_python(self.machine.venv / "bin", "python"))
            (self.machine.venv / "lib/python3.11/site-packages/pip").mkdir()
            self.machine.lacks("python3-venv")
            self.assert_passes(says=[VENV_LINE])
            self.assert_recorded(TORCH_VERSION="2.13.0+cpu")
            self.assertEqual(self.machine.calls("python3 -m venv"), [])

    def test_without_pip_is_completed(self):
        write(self.machine.venv / "bin/python", "not a program")
        write(self.machine.venv / "lib/python3.11/site-packages/pip-24.0.dist-info/METADATA")
        self.assert_passes(says=[VENV_LINE])
        self.assert_pip_ran(1)

    def test_whose_making_was_interrupted_is_completed_by_the_next_run(self):
        for signal, code, activated in (("INT", 130, False), ("KILL", -9, True)):
            self.machine = self.fresh()
            self.assertEqual(self.machine.run(STUB_PIP_SIGNAL=signal), (code, [VENV_LINE]))
            self.assertFalse(self.machine.record.exists())
            python = self.machine.venv / "bin" if activated else self.machine.python.parent
            self.assert_passes(says=[VENV_LINE], PATH=f"{python}:{self.machine.bin}")
            self.assert_pip_ran(2)

    def test_needs_two_gigabytes_free(self):
        self.assert_fails("has 700 MB free, and torch needs 2048 MB", "VENV", STUB_FREE_KB=700 * 1024)
        self.assertEqual(self.machine.calls("python3 -m venv"), [])
        self.assert_passes(says=[VENV_LINE], STUB_FREE_KB=2048 * 1024)

    def test_that_cannot_be_made_is_one_sentence(self):
        self.assert_fails("cannot write into .*packages/venv", "VENV", VENV="packages/venv")
        self.assert_fails("python -m venv failed$", "no luck .log: .*setup.log", announced=1, STUB_VENV_SAYS="no luck")

    def test_that_pip_cannot_fill_is_one_sentence_each(self):
        self.assert_fails("the disk is full: pip", "log: ", announced=1, STUB_PIP_SAYS="No space left on device")
        for sign in ("Could not resolve host", "No matching distribution found", "ConnectionError", "Max retries",
                     "Network is unreachable", "Name or service not known"):
            says = f"Collecting torch\nERROR: {sign}: x\nlast words"
            self.assert_fails("no network: pip", "run again .log: .*setup.log", announced=1, STUB_PIP_SAYS=says)
        self.assert_fails("pip failed$", "ERROR: odd .log: .*setup.log", announced=1, STUB_PIP_SAYS="one\nERROR: odd")
        self.assert_passes(says=[VENV_LINE])


class ThisMachine(unittest.TestCase):
    def test_passes_as_it_is(self):
        """The machine's own tools, less the means to install anything."""
        try:
            version = metadata.version("torch")
        except metadata.PackageNotFoundError:
            self.skipTest(f"{sys.executable} has no torch")
        if not shutil.which("ninja") or not Path("/usr/include/CLI/CLI.hpp").exists():
            self.skipTest("not a machine to build on")
        with tempfile.TemporaryDirectory() as folder:
            for tool in ("apt-get", "sudo", "df"):
                write(Path(folder) / tool, "#!/bin/sh\necho 0\n").chmod(0o755)
            env = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "PYTHON": sys.executable,
                   "TANDEM_SETUP_DIR": folder, "VENV": folder + "/venv", "TORCH_DIR": "", "CXX": ""}
            done = subprocess.run([SCRIPT], env=env, capture_output=True, text=True, timeout=60)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
            record = (Path(folder) / "setup.env").read_text().splitlines()
            self.assertEqual(record[0], f"PYTHON={sys.executable}")
            self.assertTrue(record[2].startswith(f"TORCH_VERSION={version.partition('+')[0]}"), record[2])


if __name__ == "__main__":
    unittest.main()

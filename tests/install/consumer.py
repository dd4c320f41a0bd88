"""Builds programs outside the tree against an installed Tandem, as a user's own project would."""

import os
import pathlib
import re
import subprocess

BUILD = pathlib.Path(os.environ["TANDEM_BUILD"])
SOURCE = pathlib.Path(os.environ["TANDEM_SOURCE"])
PREFIX = BUILD / "tests" / "prefix"  # filled by the test `install`

# The project of README.md: a program `train` of one file.
(PROJECT,) = re.findall(r"^```cmake\n(.*?)^```$", (SOURCE / "README.md").read_text(), re.M | re.S)


def cache_value(name: str) -> str:
    """What the build of Tandem itself was configured with."""
    for line in (BUILD / "CMakeCache.txt").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return line.split("=", 1)[1]
    return ""


def run(command: list, **options) -> subprocess.CompletedProcess:
    return subprocess.run(command, capture_output=True, text=True, timeout=500, **options)


def configure(folder: pathlib.Path, *options: str, out: pathlib.Path | None = None, flags: str = "",
              **variables: str) -> subprocess.CompletedProcess:
    """Configures the project in `folder`. `flags` are those of the compiler, `variables` of the environment."""
    sanitizer = {"address": "-fsanitize=address,undefined", "thread": "-fsanitize=thread"}
    flags = f"{sanitizer.get(cache_value('TANDEM_SANITIZE'), '')} {flags}".strip()
    return run(["cmake", "-G", "Ninja", "-S", folder, "-B", out or folder / "out", f"-DCMAKE_PREFIX_PATH={PREFIX}",
                f"-DCMAKE_CXX_COMPILER={cache_value('CMAKE_CXX_COMPILER')}", f"-DCMAKE_CXX_FLAGS={flags}",
                "-DCMAKE_BUILD_TYPE=Release", *options], env={**os.environ, **variables})


def build_project(folder: pathlib.Path, out: pathlib.Path, *options: str, flags: str = "") -> None:
    for step in (lambda: configure(folder, *options, out=out, flags=flags), lambda: run(["cmake", "--build", out])):
        result = step()
        if result.returncode != 0:
            raise AssertionError(f"{result.args}\n{result.stdout}{result.stderr}")


def build_program(folder: pathlib.Path, main: str) -> pathlib.Path:
    """The program made of one C++ file, in a project of its own in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "CMakeLists.txt").write_text(PROJECT)
    (folder / "train.cpp").write_text(main)
    build_project(folder, folder / "out")
    return folder / "out" / "train"


def tandem(*arguments: str) -> subprocess.CompletedProcess:
    return run([PREFIX / "bin" / "tandem", *arguments])

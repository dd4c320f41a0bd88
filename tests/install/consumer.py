"""Builds programs outside the tree against an installed Tandem, as a user's own project would."""

import os
import pathlib
import subprocess

BUILD = pathlib.Path(os.environ["TANDEM_BUILD"])
SOURCE = pathlib.Path(os.environ["TANDEM_SOURCE"])
PREFIX = BUILD / "tests" / "prefix"  # filled by the test `install`

PROJECT = """cmake_minimum_required(VERSION 3.22)
project(consumer LANGUAGES CXX)
find_package(tandem REQUIRED)
add_executable(consumer main.cpp)
target_link_libraries(consumer PRIVATE tandem::tandem)
"""


def cache_value(name: str) -> str:
    """What the build of Tandem itself was configured with."""
    for line in (BUILD / "CMakeCache.txt").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return line.split("=", 1)[1]
    return ""


def run(command: list, **options) -> subprocess.CompletedProcess:
    return subprocess.run(command, capture_output=True, text=True, timeout=500, **options)


def configure(folder: pathlib.Path, *options: str) -> subprocess.CompletedProcess:
    (folder / "CMakeLists.txt").write_text(PROJECT)
    sanitizer = {"address": "-fsanitize=address,undefined", "thread": "-fsanitize=thread"}
    flags = sanitizer.get(cache_value("TANDEM_SANITIZE"), "")
    return run(["cmake", "-G", "Ninja", "-S", folder, "-B", folder / "out", f"-DCMAKE_PREFIX_PATH={PREFIX}",
                f"-DCMAKE_CXX_COMPILER={cache_value('CMAKE_CXX_COMPILER')}", f"-DCMAKE_CXX_FLAGS={flags}",
                "-DCMAKE_BUILD_TYPE=Release", *options])


def build_program(folder: pathlib.Path, main: str) -> pathlib.Path:
    """The program made of one C++ file, in a project of its own in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "main.cpp").write_text(main)
    for result in (configure(folder), run(["cmake", "--build", folder / "out"])):
        if result.returncode != 0:
            raise AssertionError(f"{result.args}\n{result.stdout}{result.stderr}")
    return folder / "out" / "consumer"


def tandem(*arguments: str) -> subprocess.CompletedProcess:
    return run([PREFIX / "bin" / "tandem", *arguments])

#!/usr/bin/env python3
"""Runs every check of the code: layers, style, format, lint. Usage: check.py BUILD, a configured build folder.

Prints one line per check, and the findings of those that failed. A check that cannot run here is reported as not run.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
FORMAT_VERSION = 14  # other versions format differently
GCC_ONLY = re.compile(r" -fpch-preprocess| -Winvalid-pch| -include (?:\\.|\S)+?cmake_pch\.hxx")  # clang cannot read GCC's precompiled headers


def run(*command: object) -> tuple[int, str]:
    result = subprocess.run([str(word) for word in command], cwd=ROOT, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True)
    return result.returncode, result.stdout


def sources(*patterns: str) -> list[str]:
    return run("git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns)[1].split()


def check_format() -> tuple[str, str]:
    version = re.search(r"version (\d+)", run("clang-format", "--version")[1])
    if not version or int(version[1]) != FORMAT_VERSION:
        return "not run", f"needs clang-format {FORMAT_VERSION}, found {version[1] if version else 'none'}"
    code, text = run("clang-format", "--dry-run", "--Werror", *sources("*.cpp", "*.h"))
    return verdict(code, text + "\nhint: make format")


def clang_database(build: pathlib.Path) -> pathlib.Path:
    """The compile commands of the build, without flags that only GCC knows."""
    commands = json.loads((build / "compile_commands.json").read_text())
    for command in commands:
        command["command"] = GCC_ONLY.sub("", command["command"]) + " -Wno-unknown-pragmas"
    folder = build / "clang"
    folder.mkdir(exist_ok=True)
    (folder / "compile_commands.json").write_text(json.dumps(commands))
    return folder


def joined(unit: str) -> list[str]:
    """The sources that a unit compiles: those it joins (TANDEM_JOIN), or itself."""
    if "/Unity/" not in unit:
        return [unit]
    return re.findall(r'#include "(.+\.cpp)"', pathlib.Path(unit).read_text())


def is_linted(unit: str) -> bool:
    paths = [os.path.relpath(source, ROOT) for source in joined(unit)]
    return any(path.startswith(("src/", "models/", "recipes/")) and not path.endswith("_test.cpp") for path in paths)


def check_lint(build: pathlib.Path) -> tuple[str, str]:
    database = clang_database(build)
    # Files that this build does not compile, such as nccl without CUDA, have no compile command.
    units = {entry["file"] for entry in json.loads(pathlib.Path(database, "compile_commands.json").read_text())}
    linted = sorted(filter(is_linted, units))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda unit: run("clang-tidy", "--quiet", "-p", database, unit), linted))
    return verdict(max(code for code, _ in results), "".join(text for code, text in results if code))


def verdict(code: int, text: str) -> tuple[str, str]:
    return ("ok", "") if code == 0 else ("failed", text)


def main() -> int:
    build = pathlib.Path(sys.argv[1])
    checks = {
        "layers": lambda: verdict(*run(sys.executable, "tools/check_layers.py")),
        "style": lambda: verdict(*run(sys.executable, "tools/check_style.py")),
        "format": check_format,
        "lint": lambda: check_lint(build),
    }
    failed = False
    for name, check in checks.items():
        outcome, text = check()
        failed |= outcome == "failed"
        print(f"{name}: {outcome}" + (f" ({text})" if outcome == "not run" else f"\n{text}" if text else ""), flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())

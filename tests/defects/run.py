#!/usr/bin/env python3
"""Puts known defects back, one at a time, and sees that a test notices. Usage: run.py BUILD [NAME].

A patch in this folder begins with `test: REGEX`, which names the tests that must turn red, and a sentence or two on the defect.
The patch is undone whatever happens.
"""

import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def run(*command: object) -> subprocess.CompletedProcess:
    return subprocess.run([str(word) for word in command], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True)


def tests_pass(build: pathlib.Path, pattern: str) -> bool:
    """Builds, then runs the tests; a build that fails is no test that turned red."""
    built = run("cmake", "--build", build)
    if built.returncode != 0:
        raise SystemExit(f"defects: the build failed\n{built.stdout}")
    tested = run("ctest", "--test-dir", build, "-R", pattern, "--no-tests=error")
    if "No tests were found" in tested.stdout:
        raise SystemExit(f"defects: no test matches {pattern}")
    return tested.returncode == 0


def is_noticed(patch: pathlib.Path, build: pathlib.Path) -> bool:
    pattern = re.match(r"test: (.+)", patch.read_text())[1]
    if not tests_pass(build, pattern):
        raise SystemExit(f"defects: {pattern} fails without {patch.name}")
    applied = run("git", "apply", patch)
    if applied.returncode != 0:
        raise SystemExit(f"defects: {patch.name} does not apply\n{applied.stdout}hint: make it again from the code as it is now")
    try:
        return not tests_pass(build, pattern)
    finally:
        run("git", "apply", "-R", patch).check_returncode()
        run("cmake", "--build", build)


def main() -> int:
    build = pathlib.Path(sys.argv[1]).resolve()
    wanted = sys.argv[2] if len(sys.argv) > 2 else ""
    patches = sorted(patch for patch in HERE.glob("*.patch") if wanted in patch.stem)
    if not patches:
        print("defects: there is no patch to try", file=sys.stderr)
        return 1
    missed = 0
    for patch in patches:
        noticed = is_noticed(patch, build)
        missed += not noticed
        print(f"{patch.stem}: {'noticed' if noticed else 'NOT NOTICED'}", flush=True)
    print(f"defects: {len(patches) - missed} noticed, {missed} not noticed")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Runs the tests of a build folder with CTest and prints a summary.

CTest counts a skipped test as passed; here skipped tests are counted separately, with their reasons. A run without a passed test fails.
"""

import argparse
import collections
import os
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=pathlib.Path, help="build folder")
    parser.add_argument("--jobs", default="2", help="number of parallel tests")
    parser.add_argument("--only", help="regular expression on test names")
    parser.add_argument("--label", help="only tests with this label")
    return parser.parse_args()


def run_ctest(arguments: argparse.Namespace, report: pathlib.Path) -> int:
    command = ["ctest", "--test-dir", str(arguments.build), "--parallel", arguments.jobs, "--output-on-failure",
               "--no-tests=error", "--output-junit", str(report.resolve())]
    command += ["-R", arguments.only] if arguments.only else []
    command += ["-L", arguments.label] if arguments.label else []
    report.unlink(missing_ok=True)
    return subprocess.run(command, env={**os.environ, "CTEST_COLOR_OUTPUT": "0"}).returncode


def outcome_of(case: ElementTree.Element) -> str:
    """Only a test that reported it counts as skipped; one that is disabled, or whose program is missing, has failed."""
    skipped = case.find("skipped")
    if skipped is not None and skipped.get("message", "").startswith("SKIP_"):
        return "skipped"
    return "passed" if case.get("status") == "run" else "failed"


def skip_reason(case: ElementTree.Element) -> str:
    """The reason of a skipped test: `not run: REASON` (GoogleTest and CMake) or `skipped 'REASON'` (unittest)."""
    reason = re.search(r"not run: (.*)|skipped ['\"](.*)['\"]", case.findtext("system-out") or "")
    return (reason[1] or reason[2]).strip() if reason else "no reason given"


def summarize(report: pathlib.Path) -> int:
    cases: dict[str, list[ElementTree.Element]] = collections.defaultdict(list)
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        cases[outcome_of(case)].append(case)
    reasons = collections.Counter(skip_reason(case) for case in cases["skipped"])
    print()
    for case in cases["failed"]:
        print(f"failed: {case.get('name')}")
    for reason, count in reasons.most_common():
        print(f"not run: {count} ({reason})")
    passed, failed, skipped = (len(cases[key]) for key in ("passed", "failed", "skipped"))
    print(f"tests: {passed} passed, {failed} failed, {skipped} skipped")
    return 0 if passed and not failed else 1


def main() -> int:
    arguments = parse_arguments()
    report = arguments.build / "tests.xml"
    code = run_ctest(arguments, report)
    if not report.exists():
        print("run_tests: CTest wrote no report\nhint: does a test match the name or label?", file=sys.stderr)
        return code or 1
    return max(code, summarize(report))


if __name__ == "__main__":
    sys.exit(main())

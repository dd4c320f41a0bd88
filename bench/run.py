#!/usr/bin/env python3
"""Runs the benchmarks: ours and the peer, interleaved, on the same work. Usage: run.py BUILD [NAME].

NAME is a benchmark or the beginning of its name. Writes one row each to bench/results/MACHINE.json. A ratio above 1 means that
ours is better; it is the claim. The times are notes: the machine may be shared.
"""

import json
import os
import pathlib
import platform
import shlex
import sys
import tempfile
from statistics import median

from measure import Bench
from rows import all_rows

ROOT = pathlib.Path(__file__).resolve().parents[1]


def run(bench: Bench) -> dict:
    """Each round runs both sides, so that other load affects both. The first round is a warm-up."""
    bench.prepare()
    rounds = [bench.round(bench.ours, bench.peer) for _ in range(bench.runs + 1)][1:]
    ours, peer = median(one.ours for one in rounds), median(one.peer for one in rounds)
    diffs = [one.max_diff for one in rounds if one.max_diff is not None]
    return {"name": bench.name, "ours": ours, "peer": peer, "peer_name": bench.peer_name, "unit": bench.unit,
            "ratio": peer / ours, "goal": bench.goal, "limit": bench.limit,
            "runs_ours": [one.ours for one in rounds], "runs_peer": [one.peer for one in rounds],
            "command_ours": shlex.join(bench.ours), "command_peer": shlex.join(bench.peer),
            "max_diff": max(diffs, default=None), "tolerance": bench.tolerance}


def report(row: dict) -> None:
    verdict = "goal met" if row["ratio"] >= row["goal"] else "below the goal"
    if not agrees(row):
        verdict = f"WRONG: results differ by {row['max_diff']:g}, at most {row['tolerance']:g}"
    print(f"{row['name']}: {row['ratio']:.4g} times {row['peer_name']} (ours {row['ours']:.5g} {row['unit']}, "
          f"peer {row['peer']:.5g} {row['unit']}; goal {row['goal']:g}: {verdict})", flush=True)


def agrees(row: dict) -> bool:
    """True if the results agree; NaN does not."""
    return row["tolerance"] is None or row["max_diff"] <= row["tolerance"]


def store(rows: list[dict]) -> pathlib.Path:
    """Keeps the rows of benchmarks that did not run this time."""
    path = ROOT / "bench" / "results" / f"{platform.node()}.json"
    path.parent.mkdir(exist_ok=True)
    kept = json.loads(path.read_text()) if path.exists() else []
    fresh = {row["name"] for row in rows}
    path.write_text(json.dumps([row for row in kept if row["name"] not in fresh] + rows, indent=1) + "\n")
    return path


def main() -> int:
    build = pathlib.Path(sys.argv[1]).resolve()
    wanted = sys.argv[2] if len(sys.argv) > 2 else ""
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        os.environ |= {"TANDEM_STATE_DIR": f"{scratch}/jobs", "OMP_NUM_THREADS": "1"}
        known = all_rows(build, pathlib.Path(scratch))
        chosen = [bench for bench in known if bench.name.startswith(wanted)]
        if not chosen:
            names = ", ".join(bench.name for bench in known)
            print(f"bench: there is no benchmark '{wanted}'\nhint: there are: {names}", file=sys.stderr)
            return 2
        for bench in chosen:
            if why := bench.missing():
                print(f"{bench.name}: not run: {why}")
                continue
            rows.append(run(bench))
            report(rows[-1])
            path = store(rows)
    if rows:
        print(f"rows are in {path}")
    return 0 if all(agrees(row) and row["ratio"] >= row["limit"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Runs the benchmarks: ours and the peer, interleaved, on the same work. Usage: run.py BUILD [NAME].

Writes one row each to bench/results/MACHINE.json. A ratio above 1 means that ours is better; it is the claim. The times are
notes: the machine may be shared.
"""

import json
import pathlib
import platform
import shlex
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
RUNS = 15


def benches(build: pathlib.Path) -> list[dict]:
    torchrun = [sys.executable, "-m", "torch.distributed.run"]
    tandem = str(build / "bin" / "tandem")
    return [
        # How long a user waits for the first word of a launcher.
        {"name": "start", "unit": "s", "goal": 100.0, "limit": 20.0, "peer_name": "torchrun --help",
         "ours": [tandem, "--help"], "peer": [*torchrun, "--help"]},
    ]


def seconds(command: list[str]) -> float:
    begin = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return time.perf_counter() - begin


def measure(bench: dict) -> dict:
    """Each round runs both, so that whatever else the machine does falls on both."""
    for side in ("ours", "peer"):
        seconds(bench[side])
    rounds = [(seconds(bench["ours"]), seconds(bench["peer"])) for _ in range(RUNS)]
    ours, peer = (statistics.median(column) for column in zip(*rounds))
    return {"name": bench["name"], "ours": ours, "peer": peer, "peer_name": bench["peer_name"], "unit": bench["unit"],
            "ratio": peer / ours, "goal": bench["goal"], "limit": bench["limit"],
            "runs_ours": [run for run, _ in rounds], "runs_peer": [run for _, run in rounds],
            "command_ours": shlex.join(bench["ours"]), "command_peer": shlex.join(bench["peer"]),
            "max_diff": None, "tolerance": None}


def store(rows: list[dict]) -> pathlib.Path:
    """Rows of benchmarks that did not run this time stay."""
    path = ROOT / "bench" / "results" / f"{platform.node()}.json"
    path.parent.mkdir(exist_ok=True)
    kept = json.loads(path.read_text()) if path.exists() else []
    fresh = {row["name"] for row in rows}
    path.write_text(json.dumps([row for row in kept if row["name"] not in fresh] + rows, indent=1) + "\n")
    return path


def main() -> int:
    build = pathlib.Path(sys.argv[1])
    wanted = sys.argv[2] if len(sys.argv) > 2 else ""
    chosen = [bench for bench in benches(build) if wanted in ("", bench["name"])]
    if not chosen:
        names = ", ".join(bench["name"] for bench in benches(build))
        print(f"bench: there is no benchmark '{wanted}'\nhint: there are: {names}", file=sys.stderr)
        return 2
    rows = [measure(bench) for bench in chosen]
    for row in rows:
        verdict = "goal met" if row["ratio"] >= row["goal"] else "below the goal"
        print(f"{row['name']}: {row['ratio']:.1f} times {row['peer_name']} (ours {row['ours']:.4f} {row['unit']}, "
              f"peer {row['peer']:.4f} {row['unit']}; goal {row['goal']:g}: {verdict})")
    print(f"rows are in {store(rows)}")
    return 0 if all(row["ratio"] >= row["limit"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())

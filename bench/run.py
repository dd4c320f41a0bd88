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
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
RUNS = 15
LOG_RUNS = 7
PRODUCER = "head -c 500000000 /dev/zero | tr '\\0' 'x' | fold -w 120"


def seconds(command: list[str]) -> float:
    begin = time.perf_counter()
    subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return time.perf_counter() - begin


def resident_mb(command: list[str]) -> float:
    """What the launcher, with every process that it keeps for itself, holds in memory while its ranks sleep."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        process.stdout.readline()  # rank 0 is there, so the launcher has done its work
        pids = [process.pid]
        for pid in pids:
            children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            pids += [int(child) for child in children if b"RANK=" not in pathlib.Path(f"/proc/{child}/environ").read_bytes()]
        return sum(pss_kb(pid) for pid in pids) / 1024
    finally:
        process.terminate()
        process.wait()


def pss_kb(pid: int) -> int:
    text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:"))


def benches(build: pathlib.Path, scratch: pathlib.Path) -> list[dict]:
    torchrun = [sys.executable, "-m", "torch.distributed.run"]
    tandem = str(build / "bin" / "tandem")
    run = [tandem, "run", "--device", "cpu"]
    standalone = [*torchrun, "--standalone", "--no-python"]
    accelerate = [sys.executable, "-m", "accelerate.commands.launch", "--multi_gpu", "--num_machines", "1", "--mixed_precision", "no",
                  "--dynamo_backend", "no", "--main_process_port", "0", "--no_python"]
    ready = ["sh", "-c", "echo ready; exec sleep 100"]
    return [
        # How long a user waits for the first word of a launcher.
        {"name": "start", "unit": "s", "goal": 100.0, "limit": 20.0, "peer_name": "torchrun --help",
         "ours": [tandem, "--help"], "peer": [*torchrun, "--help"]},
        # What starting and ending ranks costs, when they have nothing to do.
        {"name": "launch", "unit": "s", "goal": 200.0, "limit": 100.0, "peer_name": "torchrun",
         "ours": [*run, "-n", "2", "true"], "peer": [*standalone, "--nproc_per_node=2", "true"]},
        {"name": "launch-8", "unit": "s", "goal": 100.0, "limit": 50.0, "peer_name": "torchrun",
         "ours": [*run, "-n", "8", "true"], "peer": [*standalone, "--nproc_per_node=8", "true"]},
        {"name": "launch-accelerate", "unit": "s", "goal": 200.0, "limit": 100.0, "peer_name": "accelerate launch",
         "ours": [*run, "--num_processes", "2", "true"], "peer": [*accelerate, "--num_processes", "2", "true"], "runs": LOG_RUNS},
        # 1 GB of lines from two ranks, against the same producers without us.
        {"name": "logs", "unit": "s", "goal": 0.6, "limit": 0.4, "peer_name": "cat > file", "runs": LOG_RUNS,
         "ours": [*run, "-q", "-n", "2", "--log-dir", str(scratch / "ours"), "sh", "-c", PRODUCER],
         "peer": ["sh", "-c", f"(({PRODUCER}) | cat >{scratch}/one) & (({PRODUCER}) | cat >{scratch}/two); wait"]},
        # What the launcher itself holds of the machine's memory.
        {"name": "memory", "unit": "MB", "goal": 10.0, "limit": 5.0, "peer_name": "torchrun", "measure": resident_mb, "runs": 1,
         "ours": [*run, "-n", "64", *ready], "peer": [*standalone, "--nproc_per_node=64", *ready]},
    ]


def measure(bench: dict) -> dict:
    """Each round runs both, so that whatever else the machine does falls on both."""
    one = bench.get("measure", seconds)
    for side in ("ours", "peer"):
        one(bench[side])
    rounds = [(one(bench["ours"]), one(bench["peer"])) for _ in range(bench.get("runs", RUNS))]
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
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["TANDEM_STATE_DIR"] = f"{scratch}/jobs"
        known = benches(build, pathlib.Path(scratch))
        chosen = [bench for bench in known if bench["name"].startswith(wanted)]
        if not chosen:
            names = ", ".join(bench["name"] for bench in known)
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

"""The Bench type, and the ways to measure a command."""

import csv
import importlib.util
import json
import operator
import os
import pathlib
import random
import re
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

Command = list[str]


@dataclass(frozen=True)
class Round:
    """One measurement of each side, and the largest difference of their results."""
    ours: float
    peer: float
    max_diff: float | None = None


@dataclass(frozen=True)
class Bench:
    name: str
    unit: str
    goal: float  # promised ratio peer / ours
    limit: float  # a lower ratio fails the run
    peer_name: str
    ours: Command
    peer: Command
    round: Callable[[Command, Command], Round]
    runs: int = 7
    tolerance: float | None = None  # of max_diff
    missing: Callable[[], str] = lambda: ""  # reason why it cannot run on this machine
    prepare: Callable[[], object] = lambda: None  # called once, before the first round


def each(read: Callable[[Command], float]) -> Callable[[Command, Command], Round]:
    """A round with the same measurement of both sides."""
    return lambda ours, peer: Round(read(ours), read(peer))


def seconds(command: Command) -> float:
    begin = time.perf_counter()
    subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return time.perf_counter() - begin


def seconds_to_first_step(command: Command) -> float:
    """The time until the line of the first step. The command is then stopped and read to its end, when no rank is left."""
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                               start_new_session=True)
    try:
        first = next((line for line in process.stdout if re.match(r"step +1\b", line)), None)
        passed = time.perf_counter() - begin
    finally:
        stop(process)
    if first is None:
        raise SystemExit(f"bench: {shlex.join(command)} ended with code {process.returncode} before its first step")
    return passed


def stop(process: subprocess.Popen) -> None:
    """Stops a process and its group; launchers stop their ranks."""
    os.killpg(process.pid, signal.SIGTERM)
    try:
        process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise


def first_step_round(ours: Command, peer: Command) -> Round:
    """In a new folder each time, so that no token cache of an earlier run is found."""
    with tempfile.TemporaryDirectory() as folder:
        return Round(seconds_to_first_step([*ours, "--run-dir", folder]), seconds_to_first_step(peer))


def resident_mb(command: Command) -> float:
    """The memory of the launcher and its helper processes while its ranks sleep."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        process.stdout.readline()  # rank 0 has started, so the launcher is idle
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


def results(*commands: Command) -> list[dict]:
    """The output of concurrent programs, one JSON object each. Each has its own session, as ranks have, because the kernel
    schedules a busy machine by session."""
    running = [subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, start_new_session=True)
               for command in commands]
    printed = [process.communicate()[0] for process in running]
    for process in running:
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, process.args)
    return [json.loads(text) for text in printed]


def all_reduce_round(ours: Command, peer: Command) -> Round:
    """Both sides check their sums, which are integers."""
    (our,), (their,) = results(ours), results(peer)
    return Round(our["us"], their["us"], max(our["max_diff"], their["max_diff"]))


def floor_round(ours: Command, alone: Command) -> Round:
    """Against two independent processes: the slower one of each step."""
    (our,), pair = results(ours), results(alone, alone)
    slower = map(max, *(process["alone_ms"] for process in pair))
    return Round(median(our["ddp_ms"]), median(slower))


def segment_floor_round(ours: Command, alone: Command) -> Round:
    """The same for the steps of a program that is told by its launcher how many ranks there are."""
    (our,), pair = results(ours), results(alone, alone)
    return Round(median(our["step_ms"]), median(map(max, *(process["step_ms"] for process in pair))))


def ddp_round(ours: Command, peer: Command) -> Round:
    (our,), (their,) = results(ours), results(peer)
    return Round(median(our["ddp_ms"]), median(their["step_ms"]), abs(our["loss"] - their["loss"]))


def training_round(ours: Command, peer: Command) -> Round:
    """Initial weights have the same distribution but differ, so the first losses must be close if both compute the same."""
    (our,), (their,) = results(ours), results(peer)
    diffs = (abs(one - other) for one, other in zip(our["losses"][:5], their["losses"]))
    return Round(median(our["step_ms"]), median(their["step_ms"]), max(diffs))


def memory_round(ours: Command, peer: Command) -> Round:
    """The most memory that was allocated at one time."""
    (our,), (their,) = results(ours), results(peer)
    return Round(our["memory_gb"], their["memory_gb"])


def step_round(ours: Command, other: Command) -> Round:
    """The same steps in two ways, both ours. Other batches of batch norm give other losses."""
    (our,), (their,) = results(ours), results(other)
    return Round(median(our["step_ms"]), median(their["step_ms"]))


def turns_round(both: Command, _: Command) -> Round:
    """One process that alternates between both sides."""
    (result,) = results(both)
    steps = len(result["ddp_ms"])
    if result["collectives"] < steps:
        raise SystemExit(f"bench: {result['collectives']} collectives in {steps} steps: nothing was reduced")
    return Round(median(result["ddp_ms"]), median(result["alone_ms"]))


def evaluation_round(both: Command, _: Command) -> Round:
    """Batches of an evaluation, against the forward passes in them."""
    (result,) = results(both)
    return Round(median(result["evaluation_ms"]), median(result["forward_ms"]))


def exact_round(both: Command, _: Command) -> Round:
    (result,) = results(both)
    return Round(median(result["exact_ms"]), median(result["usual_ms"]))


def save_round(both: Command, _: Command) -> Round:
    """Blocks of steps with and without a checkpoint. A time counts only if every checkpoint is complete."""
    with tempfile.TemporaryDirectory() as folder:
        (result,) = results([*both, "--folder", folder])
    if result["verified"] != len(result["saving_s"]):
        raise SystemExit(f"bench: {result['verified']} whole checkpoints of {len(result['saving_s'])}")
    return Round(median(result["saving_s"]), median(result["idle_s"]))


def bpe_round(ours: Command, peers: Command) -> Round:
    """Against the faster of two peers, which both compare their ids with ours."""
    (our,), (their,) = results(ours), results(peers)
    return Round(our["seconds"], min(their["seconds"].values()), their["different"])


def write_pairs(table: pathlib.Path, pairs: pathlib.Path) -> None:
    """3,000 references of 25 words from its dialogues; predictions are 22 of these words, a third of them replaced."""
    draw = random.Random(1)
    with open(table, newline="") as file:
        words = [word for row in csv.DictReader(file) for word in row["dialogue"].split()]
    with open(pairs, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["reference", "prediction"])
        for _ in range(3000):
            begin = draw.randrange(len(words) - 25)
            passage = words[begin:begin + 25]
            said = [word if draw.random() < 2 / 3 else draw.choice(words) for word in passage[:22]]
            writer.writerow([" ".join(passage), " ".join(said)])


def rouge_round(table: pathlib.Path) -> Callable[[Command, Command], Round]:
    """Pairs of texts from the table, and the largest difference of the scores."""
    def read(ours: Command, peer: Command) -> Round:
        with tempfile.TemporaryDirectory() as folder:
            write_pairs(table, pathlib.Path(folder, "pairs.csv"))
            (our,), (their,) = (results([*command, "--pairs", f"{folder}/pairs.csv"]) for command in (ours, peer))
        diffs = (abs(one - other) for one, other in zip(our["scores"], their["scores"], strict=True))
        return Round(our["us"], their["us"], max(diffs))
    return read


def distance_round(ours: Command, peer: Command) -> Round:
    """The largest difference of two pixels of the maps."""
    (our,), (their,) = results(ours), results(peer)
    return Round(our["ms"], their["ms"], max(abs(one - other) for one, other in zip(our["map"], their["map"], strict=True)))


def loader_round(ours: Command, peer: Command) -> Round:
    """The largest difference of two values, of every 1009th of the images and every 1013th of their planes."""
    (our,), (their,) = results(ours), results(peer)
    return Round(our["ms"], their["ms"], max(abs(one - other) for one, other in zip(our["pixels"], their["pixels"], strict=True)))


def loader_threads_round(ours: Command, alone: Command) -> Round:
    """Two threads against two processes at once: the slower one, and each has as many samples as ours. All in one session, since the
    kernel shares a busy machine among sessions."""
    command = shlex.join(alone)
    (our,) = results(ours)
    printed = subprocess.run(["sh", "-c", f"{command} & {command}; wait"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return Round(our["ms"], max(json.loads(line)["ms"] for line in printed.splitlines()) / 2)


def decode_round(ours: Command, peer: Command) -> Round:
    """The weights are random and equal on both sides; the first caller creates them. max_diff counts different tokens."""
    folder = pathlib.Path(peer[peer.index("--folder") + 1])
    if not folder.exists():
        subprocess.run([*peer, "--make"], check=True)
    (our,), (their,) = results(ours), results(peer)
    different = sum(map(operator.ne, our["tokens"], their["tokens"]))
    return Round(median(our["token_ms"]), median(their["token_ms"]), different)


def missing_packages(*names: str) -> Callable[[], str]:
    return lambda: ", ".join(f"needs the package {name}" for name in names if importlib.util.find_spec(name) is None)


def missing_cuda() -> str:
    import torch  # slow to import, and only this row needs it
    return "" if torch.cuda.is_available() else "needs a GPU and a torch with CUDA"

"""Every benchmark: the commands of both sides, and the promised ratio."""

import json
import pathlib
import subprocess
import sys

from bpe.bpe_texts import gather
from first_step.dialogues import write_dialogues
from measure import (Bench, Command, all_reduce_round, bpe_round, ddp_round, decode_round, distance_round, each, evaluation_round,
                     exact_round, first_step_round, floor_round, loader_round, loader_threads_round, memory_round, missing_cuda, missing_packages,
                     resident_mb, results, rouge_round, save_round, seconds, segment_floor_round, step_round, training_round, turns_round)

HERE = pathlib.Path(__file__).resolve().parent
TORCHRUN = [sys.executable, "-m", "torch.distributed.run"]
STANDALONE = [*TORCHRUN, "--standalone", "--no-python"]
ACCELERATE = [sys.executable, "-m", "accelerate.commands.launch", "--multi_gpu", "--num_machines", "1", "--mixed_precision", "no",
              "--dynamo_backend", "no", "--main_process_port", "0", "--no_python"]
PRODUCER = "head -c 500000000 /dev/zero | tr '\\0' 'x' | fold -w 120"
READY = ["sh", "-c", "echo ready; exec sleep 100"]

# Bytes of the tensor; repetitions of ours, which is much faster, and of the peer.
SIZES = {"4kB": (4096, 20000, 300), "64kB": (65536, 5000, 300), "1MB": (1 << 20, 500, 200), "4MB": (1 << 22, 200, 100),
         "67MB": (1 << 26, 20, 10)}


def launcher_rows(tandem: str, scratch: pathlib.Path) -> list[Bench]:
    run = [tandem, "run", "--device", "cpu"]
    return [
        # Time to the first output of the launcher.
        Bench("start", "s", goal=100, limit=20, peer_name="torchrun --help", runs=15, round=each(seconds),
              ours=[tandem, "--help"], peer=[*TORCHRUN, "--help"]),
        # Cost of starting and stopping ranks that do nothing.
        Bench("launch", "s", goal=200, limit=100, peer_name="torchrun", runs=15, round=each(seconds),
              ours=[*run, "-n", "2", "true"], peer=[*STANDALONE, "--nproc_per_node=2", "true"]),
        Bench("launch-8", "s", goal=100, limit=50, peer_name="torchrun", runs=15, round=each(seconds),
              ours=[*run, "-n", "8", "true"], peer=[*STANDALONE, "--nproc_per_node=8", "true"]),
        Bench("launch-accelerate", "s", goal=200, limit=100, peer_name="accelerate launch", round=each(seconds),
              ours=[*run, "--num_processes", "2", "true"], peer=[*ACCELERATE, "--num_processes", "2", "true"]),
        # 1 GB of output from two ranks, against the same producers without a launcher.
        Bench("logs", "s", goal=0.6, limit=0.4, peer_name="cat > file", round=each(seconds),
              ours=[*run, "-q", "-n", "2", "--log-dir", str(scratch / "ours"), "sh", "-c", PRODUCER],
              peer=["sh", "-c", f"(({PRODUCER}) | cat >{scratch}/one) & (({PRODUCER}) | cat >{scratch}/two); wait"]),
        # Memory of the launcher itself.
        Bench("memory", "MB", goal=10, limit=5, peer_name="torchrun", runs=1, round=each(resident_mb),
              ours=[*run, "-n", "64", *READY], peer=[*STANDALONE, "--nproc_per_node=64", *READY]),
    ]


def first_step_row(tandem: str, scratch: pathlib.Path) -> Bench:
    """Time to the first training step. Ours generates 4,000 dialogues, the peer reads as many; both train a tokenizer of 512 tokens
    on them, encode them and run a step on two ranks."""
    script, table = str(HERE / "first_step" / "gpt2_ddp.py"), scratch / "dialogues.csv"
    return Bench("first-step", "s", goal=5, limit=4, peer_name="torchrun + DDP + Gloo", round=first_step_round,
                 missing=missing_packages("tokenizers"), prepare=lambda: write_dialogues(table, 4000),
                 ours=[tandem, "summarize", "train", "--preset", "demo", "--nproc", "2", "--device", "cpu"],
                 peer=[*TORCHRUN, "--standalone", "--nproc_per_node=2", script, str(table)])


def all_reduce_row(name: str, size: str, goal: float, limit: float, ours: Command, ranks: Command) -> Bench:
    num_bytes, our_iterations, peer_iterations = SIZES[size]
    script = str(HERE / "all_reduce" / "all_reduce_gloo.py")
    return Bench(f"{name}-{size}", "us", goal, limit, "Gloo", round=all_reduce_round, tolerance=0,
                 ours=[*ranks, *ours, "--bytes", str(num_bytes), "--iterations", str(our_iterations)],
                 peer=[*ranks, sys.executable, script, "--bytes", str(num_bytes), "--iterations", str(peer_iterations)])


def all_reduce_rows(tandem: str, programs: pathlib.Path) -> list[Bench]:
    """Two ranks, one thread each; the launcher is the same on both sides."""
    ranks = [tandem, "run", "-q", "--device", "cpu", "-n", "2"]
    program = str(programs / "all_reduce")
    arena = {"4kB": (100, 50), "4MB": (8, 5), "67MB": (6, 4)}
    return [*(all_reduce_row("all-reduce", size, *bounds, [program], ranks) for size, bounds in arena.items()),
            *(all_reduce_row("all-reduce-ordinary", size, 1, 0.9, [program, "--ordinary"], ranks) for size in SIZES)]


def gpt_rows(tandem: str, programs: pathlib.Path) -> list[Bench]:
    program, script = str(programs / "gpt"), str(HERE / "gpt" / "gpt_ddp.py")
    two = [tandem, "run", "-q", "--device", "cpu", "-n", "2", program, "--mode", "ddp"]
    gpt2 = [program, "--preset", "gpt2-124m", "--device", "cuda", "--bf16", "--batch-size", "64", "--blocks", "4"]
    return [
        # Cost of data parallelism: two ranks, against two independent processes.
        Bench("gpt-2ranks-floor", "ms", goal=0.97, limit=0.94, peer_name="two separate processes", round=floor_round,
              ours=two, peer=[program, "--mode", "alone"]),
        Bench("gpt-2ranks-ddp", "ms", goal=1.07, limit=1.03, peer_name="torchrun + DDP + Gloo", round=ddp_round, tolerance=1e-4,
              ours=two, peer=[*TORCHRUN, "--standalone", "--nproc_per_node=2", script]),
        # Overhead of our reducer and NCCL on a single rank.
        Bench("gpt2-nccl-1rank", "ms", goal=0.99, limit=0.98, peer_name="the same steps without it", round=turns_round,
              missing=missing_cuda, ours=[*gpt2, "--mode", "both", "--transport", "nccl"], peer=[*gpt2, "--mode", "alone"]),
    ]


def gpt2_rows(programs: pathlib.Path, precision: str) -> list[Bench]:
    """Training steps of GPT-2 with 124M parameters on 16 x 1024 tokens, on one GPU."""
    ours = [str(programs / "gpt2"), "--precision", precision]
    peer = [sys.executable, str(HERE / "gpt2" / "gpt2_torch.py"), "--precision", precision]
    return [
        Bench(f"gpt2-{precision}", "ms", goal=1.1, limit=0.9, peer_name="PyTorch", round=training_round, tolerance=0.1,
              missing=missing_cuda, ours=ours, peer=peer),
        Bench(f"gpt2-{precision}-compiled", "ms", goal=0.9, limit=0.65, peer_name="torch.compile", round=training_round,
              tolerance=0.1, missing=missing_cuda, ours=ours, peer=[*peer, "--compile"]),
    ]


def exact_rows(tandem: str, programs: pathlib.Path) -> list[Bench]:
    """Cost of exact mode: eight shards, against the same micro-batches with plain accumulation."""
    program = str(programs / "exact")
    return [Bench(f"exact-{n}ranks", "ms", goal=0.97, limit=0.9, peer_name="train_step without it", round=exact_round,
                  ours=[tandem, "run", "-q", "--device", "cpu", "-n", str(n), program], peer=[program]) for n in (1, 2)]


def save_row(tandem: str, programs: pathlib.Path) -> Bench:
    """Cost of saving in the background: a checkpoint every 20 steps, against the same steps without. One round has ten blocks of
    each."""
    program = str(programs / "save")
    return Bench("save", "s", goal=0.98, limit=0.95, peer_name="the same steps without it", runs=3, round=save_round,
                 ours=[tandem, "run", "-q", "--device", "cpu", "-n", "2", program], peer=[program])


def bpe_row(programs: pathlib.Path, scratch: pathlib.Path) -> Bench:
    """One thread, unseen text, a vocabulary of the size of GPT-2's, trained by ours on other text."""
    program, folder = str(programs / "bpe"), scratch / "bpe"

    def prepare() -> None:
        gather(folder)
        results([program, "--train", "--folder", str(folder)])

    return Bench("bpe", "s", goal=5, limit=4, peer_name="the faster of tiktoken and tokenizers", round=bpe_round, tolerance=0,
                 missing=missing_packages("tiktoken", "tokenizers"), prepare=prepare,
                 ours=[program, "--folder", str(folder)], peer=[sys.executable, str(HERE / "bpe" / "bpe_peers.py"), str(folder)])


def rouge_row(programs: pathlib.Path) -> Bench:
    return Bench("rouge", "us", goal=150, limit=100, peer_name="rouge-score", tolerance=1e-9, missing=missing_packages("rouge_score"),
                 round=rouge_round(HERE.parent / "recipes" / "summarize" / "packages.csv"),
                 ours=[str(programs / "rouge")], peer=[sys.executable, str(HERE / "rouge" / "rouge_score_peer.py")])


def distance_rows(programs: pathlib.Path) -> list[Bench]:
    """Maps of distances to scribbles (s) and to contours (c) of a 500 x 375 image, and squared distances of any size, on one core."""
    ours, peer = [str(programs / "distance"), "--map"], [sys.executable, str(HERE / "distance" / "scipy_peer.py"), "--map"]
    return [Bench(f"distance-{kind}", "ms", goal=3, limit=3, peer_name="scipy", tolerance=0, missing=missing_packages("scipy"),
                  round=distance_round, ours=[*ours, kind], peer=[*peer, kind]) for kind in ("s", "c", "squared")]


def loader_rows(programs: pathlib.Path, scratch: pathlib.Path) -> list[Bench]:
    """Batches of `tandem segment train`: JPEGs of 500 x 375 pixels with four planes, changed as in guide 002. Both sides draw the same."""
    folder, script = scratch / "samples", str(HERE / "segment_loader" / "segment_loader_torchvision.py")
    ours = [str(programs / "segment_loader"), "--folder", str(folder)]
    torchvision = pathlib.Path(sys.prefix) / "apart" / "torchvision"  # where tools/setup.sh puts it

    def prepare() -> None:
        subprocess.run([sys.executable, script, str(folder), "--prepare"], check=True)
        (folder / "plan.json").write_text(json.dumps(results([*ours, "--plan"])[0]))

    common = {"missing": lambda: "" if torchvision.is_dir() else f"{sys.executable} has no torchvision", "prepare": prepare}
    return [Bench("segment-loader", "ms", goal=3, limit=3, peer_name="torchvision v2 on Pillow", round=loader_round, tolerance=3,
                  ours=ours, peer=[sys.executable, script, str(folder)], **common),
            Bench("segment-loader-2threads", "ms", goal=0.9, limit=0.9, peer_name="two separate processes", round=loader_threads_round,
                  ours=[*ours, "--workers", "2"], peer=ours, **common)]


def decode_rows(programs: pathlib.Path, scratch: pathlib.Path) -> list[Bench]:
    """The 124M model at batch size 1 on two threads. In 16 bits rounding differs between the sides, so tokens may diverge."""
    where = ["--folder", str(scratch / "gpt2")]
    ours, peer = [str(programs / "decode"), *where], [sys.executable, str(HERE / "decode" / "decode_transformers.py"), *where]
    return [
        Bench("decode", "ms", goal=1.8, limit=1.5, peer_name="transformers.generate", round=decode_round, tolerance=0,
              missing=missing_packages("transformers"), ours=ours, peer=peer),
        Bench("decode-bf16", "ms", goal=3, limit=2.5, peer_name="transformers.generate", round=decode_round,
              missing=missing_packages("transformers"), ours=[*ours, "--bf16"], peer=[*peer, "--bf16"]),
    ]


def segment_row(name: str, programs: pathlib.Path, scratch: pathlib.Path, flags: Command, shape: Command, **others) -> Bench:
    folder, script = str(scratch / name), str(HERE / "segment_step" / "segment_step_torch.py")
    peer_flags = [flag for flag, word in (("--compile", "compile"), ("--autotune", "benchmark")) if word in others["peer_name"]]
    return Bench(name, **{"unit": "ms", "round": training_round, **others},
                 prepare=lambda: subprocess.run([sys.executable, script, folder, "--prepare", *shape], check=True),
                 ours=[str(programs / "segment_step"), "--folder", folder, *flags], peer=[sys.executable, script, folder, *flags, *peer_flags])


def segment_rows(tandem: str, programs: pathlib.Path, scratch: pathlib.Path) -> list[Bench]:
    """Training steps of res50_ASPP_lorm with all terms of the loss, from the same weights on the same batch, both channels-last."""
    missing = missing_packages("safetensors")
    # Cost of the metric: the classes of a batch, counted in a confusion matrix.
    metric = {"peer_name": "the forward pass alone", "goal": 0.98, "limit": 0.98, "round": evaluation_round}
    return [segment_row("segment-step", programs, scratch, [], [], peer_name="PyTorch", goal=1, limit=1, tolerance=1e-3, missing=missing),
            segment_row("segment-evaluate", programs, scratch, ["--evaluate"], [], **metric, missing=missing),
            *segment_own_rows(tandem, programs, scratch), *segment_gpu_rows(programs, scratch, metric)]


def segment_own_rows(tandem: str, programs: pathlib.Path, scratch: pathlib.Path) -> list[Bench]:
    """Ours in two ways: two ranks with synchronized batch norm against two independent processes, and two micro-batches against the same
    images at once. LoRM, whose count follows from the forward pass, needs a backward pass of its own with several micro-batches."""
    script = HERE / "segment_step" / "segment_step_torch.py"

    def row(name: str, goal: float, ours: Command, peer: Command, batch: int, **others) -> Bench:
        folder = str(scratch / name)
        program = [str(programs / "segment_step"), "--folder", folder]
        make = [sys.executable, str(script), folder, "--prepare", "--batch-size", str(batch)]
        return Bench(name, "ms", goal=goal, limit=goal, missing=missing_packages("safetensors"), prepare=lambda: subprocess.run(make, check=True),
                     ours=[*others.pop("launcher", []), *program, *ours], peer=[*program, *peer], **others)

    two = {"peer_name": "two separate processes", "round": segment_floor_round, "launcher": [tandem, "run", "-q", "--device", "cpu", "-n", "2"]}
    halves = {"peer_name": "the same images at once", "round": step_round}
    return [row("segment-step-2ranks", 1 / 1.05, [], [], 2, **two),
            row("segment-step-accumulate", 0.85, ["--no-lorm", "--micro-batches", "2"], ["--no-lorm"], 4, **halves),
            row("segment-step-accumulate-lorm", 0.55, ["--micro-batches", "2"], [], 4, **halves)]


def segment_gpu_rows(programs: pathlib.Path, scratch: pathlib.Path, metric: dict) -> list[Bench]:
    """The same on one GPU, 16 images of 465 x 465 in 16 bits: time and memory."""
    def row(name: str, flags: Command, **others) -> Bench:
        gpu = ["--device", "cuda:0", "--warmup", "5", "--steps", "20", *flags]
        return segment_row(name, programs, scratch, gpu, ["--batch-size", "16", "--crop", "465"], missing=missing_cuda, **others)

    rows = [row("segment-evaluate-bf16", ["--precision", "bf16", "--evaluate"], **metric)]
    for precision in ("bf16", "fp16"):
        for suffix, name, goal in (("", "PyTorch", 1.15), ("-autotuned", "PyTorch, cudnn.benchmark", 1.15),
                                   ("-compiled", "torch.compile, cudnn.benchmark", 1)):
            rows.append(row(f"segment-step-{precision}{suffix}", ["--precision", precision], peer_name=name, goal=goal, limit=goal, tolerance=0.1))
            rows.append(row(f"segment-memory-{precision}{suffix}", ["--precision", precision], peer_name=name, goal=1, limit=1, unit="GB", runs=1,
                            round=memory_round))
    return rows


def all_rows(build: pathlib.Path, scratch: pathlib.Path) -> list[Bench]:
    tandem, programs = str(build / "bin" / "tandem"), build / "bin" / "bench"
    return [*launcher_rows(tandem, scratch), first_step_row(tandem, scratch), *all_reduce_rows(tandem, programs),
            *gpt_rows(tandem, programs), *gpt2_rows(programs, "bf16"), *gpt2_rows(programs, "fp16"),
            *exact_rows(tandem, programs), save_row(tandem, programs), bpe_row(programs, scratch), rouge_row(programs),
            *loader_rows(programs, scratch), *decode_rows(programs, scratch), *distance_rows(programs),
            *segment_rows(tandem, programs, scratch)]

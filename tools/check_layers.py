#!/usr/bin/env python3
"""Checks that includes go down only: from module to module, to public headers, to torch and to other libraries.

Usage: check_layers.py [ROOT]. One line per finding and exit code 1; 0 when clean; 2 when there is nothing to check.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path
from posixpath import dirname, join, normpath
from typing import Iterable, Iterator

# What each module may include besides base and itself.
TRAIN = {"config", "comm", "data", "amp", "kernels", "optim", "ddp", "checkpoint", "monitor"}
RECIPES = {"train", "models", "config", "data", "amp", "optim", "monitor", "checkpoint", "text"}
EVERY = TRAIN | RECIPES | {"launch"}
MAY_INCLUDE: dict[str, set[str]] = {
    "base": set(), "config": set(), "comm": set(), "data": set(), "amp": set(), "kernels": set(), "text": set(),
    "optim": {"kernels"}, "launch": {"config"}, "ddp": {"comm"}, "checkpoint": {"comm"}, "monitor": {"comm"},
    "train": TRAIN, "models": {"kernels"}, "recipes": RECIPES, "cli": {"config", "launch"},
    "tandem": EVERY, "examples": EVERY | {"tandem"}, "tools": set(), "tests": EVERY, "bench": EVERY,
}
UNCHECKED = {"tests", "bench"}
PUBLIC_HEADERS = {
    "tandem/error.h": "base", "tandem/random_key.h": "base", "tandem/world.h": "base", "tandem/units.h": "base",
    "tandem/config.h": "config", "tandem/field.h": "config", "tandem/value.h": "config",
    "tandem/communicator.h": "comm", "tandem/store.h": "comm", "tandem/work.h": "comm",
    "tandem/checkpoint.h": "checkpoint", "tandem/checkpoint_folder.h": "checkpoint", "tandem/safetensors.h": "checkpoint",
    "tandem/check_replicas.h": "ddp", "tandem/ddp.h": "ddp",
    "tandem/batch_norm.h": "kernels", "tandem/recompute.h": "kernels",
    "tandem/batch_reading.h": "data", "tandem/dataset.h": "data",
    "tandem/length_order.h": "data", "tandem/loader.h": "data", "tandem/permutation.h": "data",
    "tandem/sampler.h": "data", "tandem/shard.h": "data", "tandem/worker_threads.h": "data",
    "tandem/event_log.h": "monitor", "tandem/model_size.h": "monitor", "tandem/monitor_options.h": "monitor",
    "tandem/progress.h": "monitor",
    "tandem/rank_times.h": "monitor", "tandem/run_text.h": "monitor", "tandem/step_line.h": "monitor",
    "tandem/tensorboard.h": "monitor", "tandem/throughput.h": "monitor",
    "tandem/autocast.h": "amp", "tandem/loss_scaler.h": "amp", "tandem/precision.h": "amp",
    "tandem/clip.h": "optim", "tandem/ema.h": "optim", "tandem/optimizer.h": "optim", "tandem/schedule.h": "optim",
    "tandem/accelerator.h": "train", "tandem/accelerator_options.h": "train", "tandem/run_options.h": "train",
    "tandem/batch_plan.h": "train", "tandem/training_loop.h": "train", "tandem/train_step.h": "train", "tandem/training.h": "train",
    "tandem/run_worker.h": "train", "tandem/sync_batchnorm.h": "train", "tandem/tandem.h": "tandem",
}
TORCH = ("torch/", "ATen/", "c10/", "caffe2/")
TORCH_FREE = {"base", "config", "data", "launch", "cli", "monitor", "text"}
TORCH_FREE_FILES = re.compile(  # of shm and of checkpoint, all but what sees tensors; of train, what comes before
    r"src/comm/shm/(?!shm(_test)?\.)|src/checkpoint/(?!(checkpoint|named_tensors)(_test)?\.)"
    r"|src/train/(resume|run_environment|run_files|run_folder|self_launch)(_test)?\.|include/tandem/(checkpoint_folder|run_options)\.h")
TESTS = ("*_test.cpp", "*_test.cu", "tests/*")
LIBRARY_HOMES: dict[str, tuple[str, ...]] = {
    "CLI/": ("src/config/flags.cpp",), "nlohmann/": ("src/base/json.cpp",), "yaml-cpp/": ("src/config/yaml.cpp",),
    "gtest/": TESTS, "gmock/": TESTS, "fmt/": (), "spdlog/": (), "glog/": (), "gloo/": (), "google/protobuf/": (),
}
CPP = (".cpp", ".cc", ".cu", ".h", ".hpp", ".cuh")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.M)

Finding = tuple[str, int, str]


def module_of(path: str) -> str:
    if path.startswith("include/"):
        return PUBLIC_HEADERS.get(path.removeprefix("include/"), path)
    parts = path.split("/")
    return parts[1] if parts[0] == "src" and len(parts) > 2 else parts[0]


def locate(path: str, name: str, quoted: bool, files: set[str]) -> str:
    """The file meant by an include: beside the includer, made by CMake, public or named from src/; "" for the rest."""
    for candidate in (normpath(join(dirname(path), name)), f"cmake/{name}.in"):
        if quoted and candidate in files:
            return candidate
    folder, slash, _ = name.partition("/")
    if folder == "tandem":
        return "include/" + name
    return "src/" + name if slash and folder in MAY_INCLUDE else ""


def wrong_home(path: str, name: str) -> str | None:
    for library, homes in LIBRARY_HOMES.items():
        if name.startswith(library) and not any(fnmatch(path, home) for home in homes):
            return f"{name} belongs in {', '.join(homes) or 'no file'}"
    return None


def wrong_layer(path: str, name: str, target: str) -> str | None:
    module, wanted = module_of(path), module_of(target)
    is_outside = module == "examples" or path.startswith("include/")
    if is_outside and wanted != "examples" and not target.startswith("include/"):
        return f"public headers and examples may not include {name}, which is internal"
    if wanted in {"base", module, *MAY_INCLUDE[module]} or wanted not in MAY_INCLUDE:
        return None
    return f"{module} may not include {wanted} ({name})"


def is_torch_free(path: str) -> bool:
    return module_of(path) in TORCH_FREE or TORCH_FREE_FILES.match(path) is not None


def wrong_torch(path: str, name: str) -> str | None:
    is_torch_header = name in PUBLIC_HEADERS and not is_torch_free("include/" + name)
    brings_torch = name.startswith(TORCH) or is_torch_header
    return f"{path} is free of torch and may not include {name}" if is_torch_free(path) and brings_torch else None


def wrong_include(path: str, name: str, quoted: bool, files: set[str]) -> str | None:
    """The first rule that an include breaks, as a sentence."""
    if (sentence := wrong_home(path, name)) or module_of(path) in UNCHECKED:
        return sentence
    target = locate(path, name, quoted, files)
    is_test_support = name.startswith("multiproc/") and fnmatch(path, "*_test.c*")
    if quoted and not target and not is_test_support:
        return f"{name} is neither in a module nor beside this file; a library's header goes in <>"
    return (target and wrong_layer(path, name, target)) or wrong_torch(path, name)


def check(root: Path, files: list[str]) -> Iterator[Finding]:
    known = set(files)
    for path in (path for path in files if path.endswith(CPP)):
        if module_of(path) not in MAY_INCLUDE:
            yield path, 1, f"add {path.removeprefix('include/')} or its folder to the tables of tools/check_layers.py"
            continue
        text = (root / path).read_text(errors="replace")
        for match in INCLUDE.finditer(text):
            if sentence := wrong_include(path, match[2], match[1] == '"', known):
                yield path, text.count("\n", 0, match.start()) + 1, sentence


def list_files(root: Path) -> list[str]:
    """Paths from root: what git would commit; without git, every file outside build*/ and dot folders."""
    if (root / ".git").exists():
        git = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(git, check=True, capture_output=True, text=True).stdout.split("\0")
        return sorted(path for path in set(listed) if (root / path).is_file())
    found = []
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = [name for name in subfolders if not name.startswith((".", "build"))]
        found += [Path(folder, name).relative_to(root).as_posix() for name in names]
    return sorted(found)


def report(name: str, num_files: int, findings: Iterable[Finding]) -> int:
    """Prints the findings, or that there are none, and returns the exit code."""
    if num_files == 0:
        print(f"{name}: no source file found, so nothing was checked", file=sys.stderr)
        return 2
    lines = [f"{path}:{line}: {sentence}" for path, line, sentence in sorted(findings)]
    print("\n".join(lines) if lines else f"{name}: {num_files} files, 0 findings")
    return 1 if lines else 0


def main(args: list[str]) -> int:
    root = Path(args[0] if args else Path(__file__).parents[1]).resolve()
    files = list_files(root)
    return report("layers", sum(path.endswith(CPP) for path in files), check(root, files))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

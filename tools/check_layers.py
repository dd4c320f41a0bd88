#!/usr/bin/env python3
"""Checks that includes go down only (from module to module, to public headers, to torch and to other libraries), and
that no type is defined in two files, nor a helper function in two files of a folder.

Usage: check_layers.py [ROOT]. One line per finding and exit code 1; 0 when clean; 2 when there is nothing to check.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from fnmatch import fnmatch
from pathlib import Path
from posixpath import dirname, join, normpath
from typing import Iterator

from source_tree import CPP, Finding, line_of, list_files, report, view

# What each module may include besides base and itself.
TRAIN = {"config", "comm", "data", "amp", "kernels", "optim", "ddp", "checkpoint", "monitor"}
RECIPE = TRAIN | {"train"}
RECIPES = {"recipe", "train", "comm", "models", "config", "data", "amp", "optim", "monitor", "checkpoint", "text", "image"}
EVERY = TRAIN | RECIPES | {"launch"}
MAY_INCLUDE: dict[str, set[str]] = {
    "base": set(), "config": set(), "comm": set(), "data": set(), "amp": set(), "kernels": set(), "text": set(),
    "image": set(),
    "optim": {"kernels"}, "launch": {"config"}, "ddp": {"comm"}, "checkpoint": {"comm"}, "monitor": {"comm", "image"},
    "train": TRAIN, "models": {"kernels"}, "recipe": RECIPE, "recipes": RECIPES, "cli": {"config", "launch"},
    "tandem": EVERY, "examples": EVERY | {"tandem"}, "tools": set(), "tests": EVERY, "bench": EVERY,
}
UNCHECKED = {"tests", "bench"}
PUBLIC_HEADERS = {
    "tandem/error.h": "base", "tandem/random_key.h": "base", "tandem/run_options.h": "base", "tandem/units.h": "base",
    "tandem/world.h": "base",
    "tandem/config.h": "config", "tandem/detail/field.h": "config", "tandem/detail/value.h": "config",
    "tandem/communicator.h": "comm",
    "tandem/checkpoint.h": "checkpoint", "tandem/checkpoint_folder.h": "checkpoint",
    "tandem/ddp.h": "ddp",
    "tandem/batch_norm.h": "kernels", "tandem/recompute.h": "kernels",
    "tandem/dataset.h": "data", "tandem/detail/batch_reading.h": "data", "tandem/loader.h": "data",
    "tandem/sampler.h": "data",
    "tandem/event_log.h": "monitor",
    "tandem/mixed_precision.h": "amp",
    "tandem/ema.h": "optim", "tandem/optimizer.h": "optim", "tandem/schedule.h": "optim",
    "tandem/accelerator.h": "train", "tandem/accelerator_options.h": "train", "tandem/detail/loop.h": "train",
    "tandem/detail/training_loop.h": "train", "tandem/evaluation.h": "train", "tandem/metrics.h": "train",
    "tandem/run_worker.h": "train", "tandem/train_step.h": "train", "tandem/training.h": "train",
    "tandem/tandem.h": "tandem",
}
TORCH = ("torch/", "ATen/", "c10/", "caffe2/")
TORCH_FREE = {"base", "config", "data", "launch", "cli", "monitor", "text", "image"}
TORCH_FREE_FILES = re.compile(  # of shm and of checkpoint, all but what sees tensors; of train, what comes before
    r"src/comm/shm/(?!shm(_test)?\.)|src/checkpoint/(?!(checkpoint|load_weights|named_tensors)(_test)?\.)"
    r"|src/train/(resume|run_environment|run_files|run_folder|self_launch)(_test)?\."
    r"|src/recipe/(?!(optimization|optimize_options|prediction|recipe|run_commands|trained_options)(_test)?\.)"
    r"|include/tandem/checkpoint_folder\.h")
LINKED = ("include/", "src/", "models/", "recipes/")
TESTS = ("*_test.cpp", "*_test.cu", "*_test.h", "tests/*")
LIBRARY_HOMES: dict[str, tuple[str, ...]] = {
    "CLI/": ("src/config/flags.cpp",), "nlohmann/": ("src/base/json.cpp",), "yaml-cpp/": ("src/config/yaml.cpp",),
    "torch/torch.h": ("examples/*", "tests/install/programs/*"),  # 10 s in every object; include the headers that are used
    "gtest/": TESTS, "gmock/": TESTS, "fmt/": (), "spdlog/": (), "glog/": (), "gloo/": (), "google/protobuf/": (),
}
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.M)
SCOPE = re.compile(
    r"\bnamespace\b\s*(?P<namespace>[\w:]*)\s*$"
    r"|\b(?:class|struct|union|enum(?:\s+(?:class|struct))?)\s+(?:\[\[[^\]]*\]\]\s*|alignas\([^)]*\)\s*)*(?P<type>\w+)"
    r"\s*(?:final\s*)?(?::(?!:)[^()]*)?$")
HELPER = re.compile(r"^(?!TEST|template|using|return)[\w:][\w:<>,&*\[\] ]*[ &*](\w+)\(", re.M)
MADE_FOR_TYPES = {"visit_fields", "validate", "enum_names", "preset_options"}  # found by the type of their argument
ALIAS = re.compile(r"\busing\s+(?P<type>\w+)\s*=")


def module_of(path: str) -> str:
    if path.startswith("include/"):
        return PUBLIC_HEADERS.get(path.removeprefix("include/"), path)
    parts = path.split("/")
    return parts[1] if parts[0] == "src" and len(parts) > 2 else parts[0]


def recipe_of(path: str) -> str:
    """The recipe that a file of recipes/ belongs to; "" for other files."""
    found = re.match(r"(?:src/)?recipes/([^/]+)/", path)
    return found[1] if found else ""


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
    if module == wanted == "recipes" and recipe_of(path) != recipe_of(target):
        return f"recipes may not include each other ({name}); what two of them need belongs in src/recipe"
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


def types_in(code: str) -> Iterator[tuple[str, int]]:
    """Qualified name and offset of each type and alias of a named namespace; those in anonymous ones, classes and
    functions are seen by one file only."""
    code = re.sub(r"^[ \t]*#.*", lambda line: " " * len(line[0]), code, flags=re.M)
    scopes: list[str | None] = []  # the names of the open namespaces; None for every other brace
    start = 0
    for token in re.finditer(r"[{};]", code):
        head = code[start:token.start()]
        found = (SCOPE if token[0] == "{" else ALIAS).search(head) if token[0] != "}" else None
        if found and found["type"] and None not in scopes:
            yield "::".join([*filter(None, scopes), found["type"]]), start + found.start()
        if token[0] == "{":
            scopes.append((found and found.groupdict().get("namespace")) or None)
        elif token[0] == "}" and scopes:
            scopes.pop()
        start = token.end()


def check_types(texts: dict[str, str]) -> Iterator[Finding]:
    """The one-definition rule: library and recipes, tests beside them included, may be linked into one program."""
    places: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for path, text in texts.items():
        if path.startswith(LINKED):
            code = view(path, text, "code")
            for name, offset in types_in(code):
                places[name].append((path, line_of(code, offset)))
    for name, same in places.items():
        for path, line in same:
            if others := sorted({other for other, _ in same} - {path}):
                yield path, line, f"{name} is also defined in {', '.join(others)}"


def check_helpers(texts: dict[str, str]) -> Iterator[Finding]:
    """The sources of a folder are compiled as one: a second function of the same name in an unnamed namespace would be
    an overload, and might be called in place of the first."""
    places: dict[tuple[str, bool, str], list[tuple[str, int]]] = defaultdict(list)
    for path, text in texts.items():
        if not path.endswith(".cpp") or module_of(path) in {"examples", "bench"}:
            continue
        code = view(path, text, "code")
        for block in re.finditer(r"^namespace \{\n.*?^\} +$", code, re.M | re.S):
            for name in {match[1] for match in HELPER.finditer(block[0])} - MADE_FOR_TYPES:
                places[dirname(path), path.endswith("_test.cpp"), name].append((path, line_of(code, block.start())))
    for (_, _, name), same in places.items():
        for path, line in same:
            if others := sorted({other for other, _ in same} - {path}):
                yield path, line, f"{name}() is also defined in {', '.join(others)}, which is compiled with this file"


def check_includes(texts: dict[str, str], known: set[str]) -> Iterator[Finding]:
    for path, text in texts.items():
        if module_of(path) not in MAY_INCLUDE:
            yield path, 1, f"add {path.removeprefix('include/')} or its folder to the tables of tools/check_layers.py"
            continue
        for match in INCLUDE.finditer(text):
            if sentence := wrong_include(path, match[2], match[1] == '"', known):
                yield path, line_of(text, match.start()), sentence


def check_namespaces(texts: dict[str, str]) -> Iterator[Finding]:
    """Each recipe has a namespace of its own, so that two can be linked into one program."""
    for path, text in texts.items():
        own = f"tandem::{recipe_of(path)}"
        for match in re.finditer(r"^namespace (tandem[\w:]*) \{", text, re.M) if recipe_of(path) else ():
            if match[1] != own and not match[1].startswith(own + "::"):
                yield path, line_of(text, match.start()), f"namespace {match[1]}: everything here is in {own}"


def check(root: Path, files: list[str]) -> Iterator[Finding]:
    texts = {path: (root / path).read_text(errors="replace") for path in files if path.endswith(CPP)}
    yield from check_includes(texts, set(files))
    yield from check_types(texts)
    yield from check_helpers(texts)
    yield from check_namespaces(texts)


def main(args: list[str]) -> int:
    root = Path(args[0] if args else Path(__file__).parents[1]).resolve()
    files = list_files(root)
    return report("layers", sum(path.endswith(CPP) for path in files), check(root, files))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

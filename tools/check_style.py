#!/usr/bin/env python3
"""Checks the house style where a machine can: sizes, names, stray calls, comments, copies, tests, dead options.

Usage: check_style.py [ROOT]. One line per finding and exit code 1; 0 when clean; 2 when there is nothing to check.
Rules read the text, not the syntax tree: they are made for clang-formatted code and may be fooled by anything else.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Callable, Iterator

from source_tree import CPP, Finding, line_of, list_files, report, view

Tree = dict[str, str]  # path from the root -> text

HASH = (".py", ".sh", ".cmake", ".mk", "CMakeLists.txt", "Makefile", ".ci/run")  # languages with # comments
ALL = ("",)
LIBRARY = ("src/", "include/", "models/", "recipes/")
TESTS = r"^tests/|_test\.\w+$"
THESE_CHECKERS = re.compile(r"(?:tests/)?tools/check_(?:layers|style)(?:_test)?\.py")

FILE_LINES = {".cpp": 500, ".cc": 500, ".cu": 500, ".h": 250, ".hpp": 250, ".cuh": 250, ".py": 500}
FUNCTION_LINES = 60

BANNED_IN_FILES = set("manager helper util utils handler processor wrapper common misc info impl factory".split())
BANNED_IN_TYPES = BANNED_IN_FILES | {"base", "context"}
TYPE = re.compile(
    r"\b(?:class|struct|enum(?:\s+(?:class|struct))?)\s+(?:\[\[[^\]]*\]\]\s*|alignas\([^)]*\)\s*)*(\w+)"
    r"|\busing\s+(\w+)\s*=")
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")

NOWHERE = r"(?!)"
RUN_WORKER = r"^src/train/run_worker\.|^include/tandem/run_worker\.h$"
STRAY_CALLS = (  # what is wrong, how it looks, the folders watched, the paths where it is right
    ("argv belongs to main, config/ and run_worker",
     r"\bargv\b",
     ALL, rf"(?:^|/)main\.cpp$|^examples/|^src/config/|^src/launch/ranks/spawn\.cpp$|{RUN_WORKER}|{TESTS}"),
    ("the environment belongs to src/base/worker_env.cpp",
     r"\b(?:(?:secure_)?getenv|setenv|unsetenv|putenv|environ)\b",
     ALL, rf"^src/base/worker_env\.cpp$|{TESTS}"),
    ("nothing here prints; return a value and let monitor/ or cli/ write it",
     r"\bstd::(?:cout|cerr|clog)\b|\b(?:v?f?printf|f?puts|putchar|perror)\s*\(|#\s*include\s*<iostream>",
     LIBRARY, NOWHERE),
    ("only cli/, monitor/, launch/ and run_worker write to the terminal",
     r"\bwrite(?:_all)?\s*\([^;{}]*\bSTD(?:OUT|ERR)_FILENO",
     LIBRARY, rf"^src/(?:cli|monitor|launch)/|^src/train/run_worker\.cpp$|{TESTS}"),
    ("nothing here exits; throw an Error",
     r"(?<!void )(?<![\w.>:])(?:std::|::)?(?:exit|_Exit|abort|quick_exit)\s*\(|\bstd::terminate\s*\(",
     LIBRARY, NOWHERE),
    ("only a process that spawn.cpp or guard.cpp made, or a test, ends this way",
     r"(?<![\w.>])_exit\s*\(",
     LIBRARY, rf"^src/launch/ranks/(?:guard|spawn)\.cpp$|{TESTS}"),
    ("only run_worker, src/cli/main.cpp and what calls a dataset catch everything",
     r"\bcatch\s*\(\s*(?:\.\.\.|(?:const\s+)?std::exception\b)",
     ALL, rf"^src/cli/main\.cpp$|^src/data/loader\.cpp$|{RUN_WORKER}|{TESTS}"),
)

MACRO = re.compile(r"^[ \t]*#[ \t]*(?:define|ifdef|ifndef|if(?!.*TORCH_VERSION))\b.*", re.M)

ECHO_WORDS, ECHO_SHARE, ECHO_COUNT = 0.60, 0.15, 5
BANNER = re.compile(r"([=*#~/─━═-])\1{3}|(?://|#|\*)[ \t]*(?:(?:Step|STEP)\s+\d|step\s+\d+\s*[:.)])")
UNFINISHED = re.compile(
    r"\bXXX\b|\bHACK\b|(?i:\b(?:todo|fixme|not implemented|placeholder|stub|for now|in a real|dummy|hard-?coded)\b)")
# First folders of paths: of every Linux system and of notebook services; invented ones in tests and pages; of strings
# that are not absolute paths (keys of torch, ends of paths of Python modules).
KNOWN_ROOTS = set(
    "bin dev etc lib lib64 proc run sbin sys tmp usr var kaggle content "
    "a docker elsewhere no nowhere runs venv x "
    "default_pg concurrent multiprocessing".split())
ABSOLUTE_PATH = re.compile(  # two folders, or one outside of quotes; not the end of a path: folder + "/no/such"
    r"(?:(?<![^\s=])|(?<=-[IL])|(?<=file://))/([A-Za-z_][\w-]*)[^\s'\"`,;:)]*"
    r"|(?<![\w.~)}\]<>*/$%@&-])(?<!\+ [\"'])/([A-Za-z_][\w.-]*)/[\w.*{$<-][^\s'\"`,;:)]*")
KNOWN_HOSTS = set("127.0.0.1 apache.org arxiv.org example.com github.com huggingface.co localhost pytorch.org".split())
HOST = re.compile(  # of a URL, or by itself
    r"\b[a-z][a-z0-9+.-]*://(?:[^\s/@]*@)?(?:www\.)?([A-Za-z0-9][\w.-]*)"
    r"|(?<![\w.@/-])(?:www\.)?((?:[a-z0-9-]+\.)+(?:com|org))\b")
NO_PATHS = (".csv", ".gitignore")  # data is as others wrote it; git's paths begin at the repository

WINDOW, WINDOW_MIN_LINES = 8, 50
DUPLICATE_SHARE = {"src/": 0.03, "recipes/": 0.10}
NOT_CODE = re.compile(r"[{}()\[\];,\s]*$|//|#\s*(?:include|pragma)")

SLEEP = re.compile(r"\b(?:(?:sleep_for|sleep_until|usleep|nanosleep)\b|sleep\s*\()")
POLL = re.compile(r"(?://|#) poll\b")
DISABLED = re.compile(r"\bDISABLED_|\b(?:EXPECT|ASSERT)_TRUE\(true\)|@unittest\.skip\b")

FIELD = re.compile(r"\bfield\s*\([^,()]*,\s*\w+(?:(?:\.|->)\w+)*(?:\.|->)(\w+)")
READ = re.compile(r"(?:\.|->)(\w+)\b(?!\s*=(?!=))")

SCOPE = re.compile(
    r"\s*(?:template\s*<.*>\s*(?:requires\b.*)?)?(?:inline\s+)?(?:namespace|class|struct|union|enum)\b"
    r"|\s*extern\s*$", re.S)
MEMBER_INIT = re.compile(r"\)[^:]*:(?!:).*[\w>]\s*$", re.S)
NO_STATEMENT = re.compile(r"^[ \t]*#.*|\b(?:public|private|protected)\s*:(?!:)", re.M)


def is_source(path: str) -> bool:
    return path.endswith(CPP + HASH)


def pick(tree: Tree, folders: tuple[str, ...] = ALL, kinds: tuple[str, ...] = CPP) -> Iterator[tuple[str, str]]:
    """The files of some kinds under some folders."""
    return ((path, text) for path, text in tree.items() if path.startswith(folders) and path.endswith(kinds))


def hits(pattern: re.Pattern[str], text: str) -> Iterator[tuple[int, str]]:
    """Line and words of each match."""
    return ((line_of(text, match.start()), match[0].strip()) for match in pattern.finditer(text))


def words_of(text: str) -> list[str]:
    """The words of a name or sentence, in lower case: LossScaler and loss_scaler are both loss, scaler."""
    return [word.lower() for word in WORD.findall(text)]


def file_size(tree: Tree) -> Iterator[Finding]:
    for path, text in pick(tree, kinds=tuple(FILE_LINES)):
        limit, num_lines = FILE_LINES[PurePosixPath(path).suffix], len(text.splitlines())
        if num_lines > limit:
            yield path, limit + 1, f"{num_lines} lines, at most {limit}; one file, one idea"


def kind_of_brace(head: str) -> str:
    """What a brace opens after this text at namespace or class level: a scope, a value or the body of a function."""
    if SCOPE.match(head):
        return "scope"
    is_argument = head.count("(") > head.count(")")
    is_value = is_argument or "(" not in head or head.rstrip().endswith("=") or MEMBER_INIT.search(head)
    return "value" if is_value else "body"


@lru_cache(maxsize=None)
def cpp_functions(code: str) -> list[tuple[int, int]]:
    """Where each function at namespace or class level begins (with its signature) and ends."""
    code = NO_STATEMENT.sub(lambda match: ";" * len(match[0]), code)
    found: list[tuple[int, int]] = []
    braces, start = ["scope"], 0
    for token in re.finditer(r"[{};]", code):
        ended = braces[-1] if token[0] != "{" else ""
        if token[0] == "{":
            braces.append(kind_of_brace(code[start:token.start()]) if braces[-1] == "scope" else "block")
        elif token[0] == "}" and len(braces) > 1:
            braces.pop()
        if token[0] == "}" and ended == "body":
            found.append((start + re.search(r"\S", code[start:]).start(), token.start()))
        if braces[-1] == "scope" and ended != "value":
            start = token.end()
    return found


def python_functions(path: str, text: str) -> Iterator[tuple[int, int]]:
    """First and last line of each; Python itself names the file and the line of one that does not parse."""
    for node in ast.walk(ast.parse(text, path)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.lineno, node.end_lineno or node.lineno


def function_size(tree: Tree) -> Iterator[Finding]:
    spans = [(path, *span) for path, text in pick(tree, kinds=(".py",)) for span in python_functions(path, text)]
    for path, text in pick(tree):
        code = view(path, text, "code")
        spans += [(path, line_of(code, begin), line_of(code, end)) for begin, end in cpp_functions(code)]
    for path, first, last in spans:
        if last - first + 1 > FUNCTION_LINES:
            yield path, first, f"a function of {last - first + 1} lines, at most {FUNCTION_LINES}"


def banned_name(tree: Tree) -> Iterator[Finding]:
    for path in filter(is_source, tree):
        stem = PurePosixPath(path).name.split(".")[0]
        if stem == "base" or BANNED_IN_FILES & set(words_of(stem)):
            yield path, 1, f"the file name {stem} does not name a thing"
    for path, text in pick(tree, kinds=(*CPP, ".py")):
        code = view(path, text, "code")
        for match in TYPE.finditer(code):
            name = match[1] or match[2]
            holder = name.removesuffix("Impl")
            words = words_of(holder if f"TORCH_MODULE({holder})" in code else name)
            if BANNED_IN_TYPES & set(words) or words[-1:] == ["data"]:
                yield path, line_of(code, match.start()), f"the type name {name} does not name a thing"


def stray_call(tree: Tree) -> Iterator[Finding]:
    for sentence, pattern, folders, right_place in STRAY_CALLS:
        for path, text in pick(tree, folders):
            if not re.search(right_place, path):
                for line, call in hits(re.compile(pattern), view(path, text, "code")):
                    yield path, line, f"{' '.join(call.split())}: {sentence}"


def macro(tree: Tree) -> Iterator[Finding]:
    for path, text in pick(tree):
        for line, directive in hits(MACRO, view(path, text, "code")):
            yield path, line, f"{directive}: no macros and no conditional code"


def lone_comments(text: str) -> Iterator[tuple[int, set[str], set[str]]]:
    """Line, words and words of the next two code lines, for each // comment of one line and at least two words."""
    lines = ["", *(line.strip() for line in text.splitlines()), ""]
    for number in range(1, len(lines) - 1):
        before, here, after = (line.startswith("//") for line in lines[number - 1:number + 2])
        words = {word for word in words_of(lines[number]) if len(word) >= 3}
        if here and not before and not after and len(words) >= 2:
            code = [line for line in lines[number + 1:] if line and not line.startswith("//")]
            yield number, words, set(words_of(" ".join(code[:2])))


def comment_echo(tree: Tree) -> Iterator[Finding]:
    comments = [(path, *comment) for path, text in pick(tree, LIBRARY) for comment in lone_comments(text)]
    echoes = [(path, line) for path, line, words, code in comments if len(words & code) >= ECHO_WORDS * len(words)]
    if len(echoes) >= ECHO_COUNT and len(echoes) > ECHO_SHARE * len(comments):
        for path, line in echoes:
            yield path, line, f"repeats the code below it, as do {len(echoes)} of {len(comments)} one-line comments"


def comment_banner(tree: Tree) -> Iterator[Finding]:
    for path, text in pick(tree, kinds=CPP + HASH):
        for line in sorted({line for line, _ in hits(BANNER, view(path, text, "comment"))}):
            yield path, line, "no rulers, boxes or step numbers in comments"


def unfinished(tree: Tree) -> Iterator[Finding]:
    for path, text in pick(tree, kinds=CPP + HASH):
        if not THESE_CHECKERS.fullmatch(path):
            for line, words in hits(UNFINISHED, view(path, text, "comment", "string")):
                yield path, line, f"says {words}: finish it, or leave it out"


def machine_path(tree: Tree) -> Iterator[Finding]:
    for path, text in tree.items():
        for pattern, known, what in (ABSOLUTE_PATH, KNOWN_ROOTS, "path"), (HOST, KNOWN_HOSTS, "host"):
            for match in pattern.finditer("" if path.endswith(NO_PATHS) else text):
                if (match[1] or match[2]) not in known:
                    yield path, line_of(text, match.start()), f"{match[0]} is a {what} that only one machine may know"


def code_lines(text: str) -> list[tuple[int, str]]:
    lines = ((number, line.strip()) for number, line in enumerate(text.splitlines(), 1))
    return [(number, line) for number, line in lines if not NOT_CODE.match(line)]


def copied_windows(lines: dict[str, list[tuple[int, str]]]) -> dict[tuple[str, int], tuple[str, int]]:
    """Each place where a window that occurs twice begins, with another place of it."""
    places = defaultdict(list)
    for path, numbered in lines.items():
        for at in range(len(numbered) - WINDOW + 1):
            places[tuple(line for _, line in numbered[at:at + WINDOW])].append((path, at))
    repeated = (same for same in places.values() if len(same) > 1)
    return {place: same[1] if place == same[0] else same[0] for same in repeated for place in same}


def duplicate(tree: Tree) -> Iterator[Finding]:
    for folder, limit in DUPLICATE_SHARE.items():
        lines = {path: code_lines(text) for path, text in pick(tree, (folder,))}
        num_lines = sum(map(len, lines.values()))
        copies = copied_windows(lines)
        num_copied = len({(path, at + i) for path, at in copies for i in range(WINDOW)})
        if num_lines < WINDOW_MIN_LINES or num_copied <= limit * num_lines:
            continue
        share = f"{num_copied / num_lines:.1%} of {folder} is copied, at most {limit:.0%}"
        for (path, at), (other, other_at) in copies.items():
            if (path, at - 1) not in copies:
                yield path, lines[path][at][0], f"also stands at {other}:{lines[other][other_at][0]}; {share}"


def test_sleep(tree: Tree) -> Iterator[Finding]:
    for path, text in pick(tree, kinds=(*CPP, ".py")):
        if re.search(TESTS, path):
            lines = text.split("\n")
            for line, call in hits(SLEEP, view(path, text, "code")):
                if not POLL.search(lines[line - 1]):
                    yield path, line, f"{call}: wait for the event, or mark the bounded loop with a poll comment"


def disabled_test(tree: Tree) -> Iterator[Finding]:
    for path, text in pick(tree, kinds=(*CPP, ".py")):
        for line, words in hits(DISABLED, view(path, text, "code")):
            yield path, line, f"{words}: a test that cannot fail tests nothing"


def visit_functions(code: str) -> list[tuple[int, int]]:
    return [(begin, end) for begin, end in cpp_functions(code) if "visit_fields" in code[begin:code.index("{", begin)]]


def dead_field(tree: Tree) -> Iterator[Finding]:
    codes = {path: view(path, text, "code") for path, text in pick(tree, LIBRARY) if not re.search(TESTS, path)}
    fields, read = [], set()
    for path, code in codes.items():
        rest = code
        for begin, end in visit_functions(code):
            fields += [(path, line_of(code, begin + m.start()), m[1]) for m in FIELD.finditer(code[begin:end])]
            rest = rest.replace(code[begin:end], "")
        read |= set(READ.findall(rest))
    for path, line, member in fields:
        if member not in read:
            yield path, line, f"nothing reads {member}: an option without effect"


def shell_strict(tree: Tree) -> Iterator[Finding]:
    for path, text in pick(tree, kinds=(".sh", ".ci/run")):
        if not re.search(r"^set -\w*e", "\n".join(text.splitlines()[:20]), re.M):
            yield path, 1, "no set -e near the top"


RULES: dict[str, Callable[[Tree], Iterator[Finding]]] = {
    "file-size": file_size,
    "function-size": function_size,
    "banned-name": banned_name,
    "stray-call": stray_call,
    "macro": macro,
    "comment-echo": comment_echo,
    "comment-banner": comment_banner,
    "unfinished": unfinished,
    "machine-path": machine_path,
    "duplicate": duplicate,
    "test-sleep": test_sleep,
    "disabled-test": disabled_test,
    "dead-field": dead_field,
    "shell-strict": shell_strict,
}


def read_tree(root: Path) -> Tree:
    """Every text file; one with a zero byte is binary."""
    contents = ((path, (root / path).read_bytes()) for path in list_files(root))
    return {path: content.decode(errors="replace") for path, content in contents if b"\0" not in content}


def main(args: list[str]) -> int:
    tree = read_tree(Path(args[0] if args else Path(__file__).parents[1]).resolve())
    findings = ((path, line, f"{name}: {text}") for name, rule in RULES.items() for path, line, text in rule(tree))
    return report("style", sum(map(is_source, tree)), findings)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""What the tests of `tandem summarize` share: a tiny trained model, and that what is refused leaves nothing behind."""

import atexit
import functools
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "launch"))
from support import TANDEM, LaunchTest, wait_until  # noqa: E402,F401

SHAPE = ("--layers", 1, "--heads", 2, "--width", 16, "--context", 192, "--vocabulary", 300)
SHORT = ("--max-steps", 2, "--batch-size", 4, "--eval-samples", 4, "--max-new-tokens", 4)
HEADER = "id,dialogue,summary\n"
ROWS = [f"a{i},Ann: I bake {i} cakes. Ben: And I eat {i * i}.,Ben eats {i * i} cakes.\n" for i in range(24)]
GOOD = HEADER + "".join(ROWS)


@functools.cache
def made_once() -> pathlib.Path:
    """A folder with a tiny trained run, runs/tiny, and its export, hf. Nobody changes it."""
    folder = pathlib.Path(tempfile.mkdtemp()).resolve()
    atexit.register(shutil.rmtree, folder)
    (folder / "train.csv").write_text(GOOD)
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    for words in (("train", "--train", "train.csv", *SHAPE, *SHORT, "--name", "tiny"),
                  ("export", "--from", "runs/tiny", "--output", "hf")):
        subprocess.run([TANDEM, "summarize", *map(str, words)], cwd=folder, env=environment, check=True, capture_output=True)
    return folder


def files_in(folder: pathlib.Path) -> dict[str, bytes]:
    """What each file holds; a folder is there with nothing."""
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b"" for path in folder.rglob("*")}


def limit_files(size: int) -> dict:
    """Options of a process that cannot write more into any file, as on a full disk."""
    return {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)), "restore_signals": False}


class SummarizeTest(LaunchTest):
    def setUp(self):
        super().setUp()
        self.env["OMP_NUM_THREADS"] = "1"  # more would wait for each other most of the time
        made = made_once()
        self.tiny, self.hf = made / "runs" / "tiny", made / "hf"
        self.train_csv = self.write("train.csv", GOOD)

    def summarize(self, *arguments, **options) -> subprocess.CompletedProcess:
        return self.run_tandem("summarize", *arguments, **options)

    def run_well(self, *arguments, **options) -> subprocess.CompletedProcess:
        result = self.summarize(*arguments, **options)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def assert_error(self, result: subprocess.CompletedProcess, code: int, facts: tuple, hint: tuple) -> None:
        """One sentence and one hint, which state these facts in whatever words."""
        said = re.fullmatch(r"error: (.+)\nhint: (.+)\n", result.stderr)
        self.assertIsNotNone(said, result.stderr)
        for text, wanted in zip(said.groups(), (facts, hint)):
            for fact in wanted:
                self.assertIn(fact, text)
        self.assertEqual((result.stdout, result.returncode), ("", code), result.stderr)

    def assert_refused(self, words: tuple, code: int, facts: tuple, hint: tuple, **options) -> None:
        """Nothing may be new or changed afterwards, neither here nor in the run that was made once."""
        before, tiny = files_in(self.folder), files_in(self.tiny)
        self.assert_error(self.summarize(*words, **options), code, facts, hint)
        self.assertEqual(files_in(self.folder).keys(), before.keys())
        self.assertEqual(files_in(self.folder), before)
        self.assertEqual(files_in(self.tiny), tiny)

    def assert_train_refused(self, words: tuple, code: int, facts: tuple, hint: tuple, **options) -> None:
        """The same of a training."""
        words = ("train", *words, *SHORT)
        self.assert_refused(words, code, (*facts, "[rank 0 of 1]"), hint, **options)

    def copy_of_hf(self, name: str) -> pathlib.Path:
        return shutil.copytree(self.hf, self.folder / name)

    def copy_of_run(self) -> pathlib.Path:
        return shutil.copytree(self.tiny, self.folder / "runs" / "tiny")

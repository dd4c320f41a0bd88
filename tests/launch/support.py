"""Shared by the launcher tests: a clean environment, a temporary folder, and waiting for a condition."""

import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time
import unittest
import uuid

BUILD = pathlib.Path(os.environ["TANDEM_BUILD"])
SOURCE = pathlib.Path(os.environ["TANDEM_SOURCE"])
TANDEM = BUILD / "bin" / "tandem"
LIMIT = 60  # seconds that nothing here should come near
STRANGE = re.compile(r"PET_|SLURM_|OMPI_|PMI_|PMIX_|MV2_|KAGGLE_|JPY_|TANDEM_(?!BUILD|SOURCE|SOAK)|TORCHELASTIC_|ACCELERATE_|NCCL_|"
                     r"(RANK|WORLD_SIZE|LOCAL_RANK|LOCAL_WORLD_SIZE|MASTER_ADDR|MASTER_PORT|OMP_NUM_THREADS|PYTHONPATH|NO_COLOR)$")


def wait_until(condition, what: str, limit: float = LIMIT) -> float:
    """Seconds until the condition is true."""
    begin = time.monotonic()
    while not condition():
        if time.monotonic() - begin > limit:
            raise AssertionError(f"{what}: not within {limit} s")
        time.sleep(0.005)  # poll
    return time.monotonic() - begin


def processes_with(text: str) -> list[int]:
    """Running processes with the text in their environment."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            alive = (entry / "stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
            if alive and text.encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            pass  # it ended meanwhile
    return found


def read_terminal(terminal: int) -> bytes:
    """Reads until no process has the other end open; closes our end."""
    shown = b""
    try:
        while data := os.read(terminal, 1000):
            shown += data
    except OSError:
        pass  # EIO: the last writer is gone
    os.close(terminal)
    return shown


class ErrorTest(unittest.TestCase):
    maxDiff = None

    def assert_error(self, result: subprocess.CompletedProcess, code: int, *facts: str) -> None:
        """Standard error is one sentence and one hint that contain the facts: names, numbers, commands. The wording is free."""
        self.assertRegex(result.stderr, r"^error: [^\n]+\nhint: [^\n]+\n$")
        self.assertEqual((result.stdout, result.returncode), ("", code), result.stderr)
        for fact in facts:
            self.assertIn(fact, result.stderr)


class LaunchTest(ErrorTest):

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name).resolve()
        self.mark = f"TANDEM_TEST_MARK={uuid.uuid4()}"
        clean = {name: value for name, value in os.environ.items() if not STRANGE.match(name)}
        self.env = {**clean, "CUDA_VISIBLE_DEVICES": "", "TANDEM_STATE_DIR": str(self.folder / "jobs"),
                    **dict([self.mark.split("=")])}
        self.addCleanup(self.kill_what_is_left)

    def kill_what_is_left(self):
        for pid in processes_with(self.mark):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def write(self, name: str, text: str) -> pathlib.Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
        return path

    def run_tandem(self, *arguments, program=TANDEM, env=None, **options) -> subprocess.CompletedProcess:
        options = {"capture_output": True, "text": True, "timeout": 4 * LIMIT, "cwd": self.folder, **options}
        return subprocess.run([str(word) for word in (program, *arguments)], env={**self.env, **(env or {})}, **options)

    def run_ranks(self, *arguments, **options) -> subprocess.CompletedProcess:
        return self.run_tandem("run", *arguments, **options)

    def start(self, *arguments, env=None, **options) -> subprocess.Popen:
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "cwd": self.folder, **options}
        process = subprocess.Popen([str(word) for word in (TANDEM, *arguments)], env={**self.env, **(env or {})}, **options)
        self.addCleanup(self.close, process)
        return process

    def close(self, process: subprocess.Popen) -> None:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream:
                stream.close()

    def job_folder(self) -> pathlib.Path:
        (job,) = (self.folder / "jobs").iterdir()
        return job

    def log(self, rank: int) -> str:
        return (self.job_folder() / f"rank{rank}.log").read_text()

    def logs(self, ranks: int) -> list[str]:
        return [self.log(rank) for rank in range(ranks)]

    def assert_nothing_left(self, limit: float = LIMIT) -> float:
        return wait_until(lambda: not processes_with(self.mark), "every process of the test has ended", limit)

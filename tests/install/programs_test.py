"""The programs of tests/install/programs, built against an installed Tandem, agree with plain LibTorch on 1, 2 and 3 ranks."""

import json
import math
import os
import pathlib
import struct
import subprocess
import tempfile
import unittest

from consumer import PREFIX, SOURCE, build_project

RANKS = (1, 2, 3)
FLOAT, DOUBLE = 1e-6, 1e-9  # largest difference, relative to the largest weight


def write_safetensors(path: pathlib.Path, tensors: dict[str, tuple[list[int], list[float]]]) -> None:
    """In bf16: the upper half of each float, rounded to nearest even."""
    header, data = {}, b""
    for name, (shape, values) in tensors.items():
        bits = [struct.unpack("<I", struct.pack("<f", value))[0] for value in values]
        raw = b"".join(struct.pack("<H", (bit + 0x7FFF + (bit >> 16 & 1)) >> 16) for bit in bits)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


class Programs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.out = pathlib.Path(temporary.name)
        # Neither the programs nor our headers, which are no system headers here, give a warning.
        build_project(SOURCE / "tests" / "install" / "programs", cls.out, "-DCMAKE_NO_SYSTEM_FROM_IMPORTED=ON", "-DCMAKE_CXX_FLAGS_RELEASE=-O0",
                      flags="-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror")

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def result(self, command: list) -> dict:
        environment = {**os.environ, "PATH": f"{PREFIX}/bin:{os.environ['PATH']}", "CUDA_VISIBLE_DEVICES": ""}
        done = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.screen = done.stdout + done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    def run_program(self, name: str, ranks: int, *arguments) -> dict:
        return self.result(["tandem", "run", "--device", "cpu", "-n", str(ranks), self.out / name, *arguments])

    def assert_learned(self, result: dict, limit: float, ranks: int) -> None:
        self.assertLess(result["difference"], limit, f"{ranks} ranks: {result}")
        self.assertLess(result["after"], 0.99 * result["before"], result)

    def test_agree_with_plain_libtorch(self):
        for ranks in RANKS:
            self.assert_learned(self.run_program("dist_mnist", ranks), FLOAT, ranks)
            self.assert_learned(self.run_program("gan", ranks), DOUBLE, ranks)
            self.assert_learned(self.run_program("images", ranks, self.folder), DOUBLE, ranks)
            self.check_cv_example(ranks)
            self.check_teacher(ranks)
            self.check_ragged_metrics(ranks)

    def check_cv_example(self, ranks: int) -> None:
        result = self.result([self.out / "cv_example", "--nproc", str(ranks), "--device", "cpu", "--json", "--name", f"on-{ranks}"])
        self.assert_learned(result, DOUBLE, ranks)
        self.assertLess(result["difference in loss"], DOUBLE)
        self.assertEqual((result["steps"], result["evaluations"]), (15, 3))
        events = [json.loads(line) for line in (self.folder / "runs" / f"on-{ranks}" / "events.jsonl").read_text().splitlines()]
        self.assertEqual([event["step"] for event in events if "valid/loss" in event], [5, 10, 15])

    def check_teacher(self, ranks: int) -> None:
        sizes = {"bert.encoder.weight": [8, 4], "bert.encoder.bias": [8], "bert.output.weight": [3, 8], "bert.output.bias": [3]}
        tensors = {name: (shape, [0.3 * math.sin(i * 1.7 + phase) for i in range(math.prod(shape))])
                   for phase, (name, shape) in enumerate(sizes.items(), 1)}
        tensors["cls.bias"] = ([2], [0.0, 1.0])
        write_safetensors(self.folder / "teacher.safetensors", tensors)
        self.assert_learned(self.run_program("teacher", ranks, self.folder / "teacher.safetensors"), FLOAT, ranks)
        self.assertIn("left out: cls.bias\n", self.screen)

    def check_ragged_metrics(self, ranks: int) -> None:
        result = self.run_program("ragged_metrics", ranks)
        self.assertLess(result["difference"], 1e-12)
        self.assertEqual((result["wrong"], result["counted"], result["difference in accuracy"]), (0, 37, 0))
        self.assertEqual(result["boxes"], 5 * (0 + 1 + 2 + 3 + 4 + 5 + 6) + 0 + 1)


if __name__ == "__main__":
    unittest.main()

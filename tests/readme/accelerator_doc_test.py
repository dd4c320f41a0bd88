"""Checks docs/accelerator.md, which shows an example, and the results of examples 04 to 06."""

import json
import os
import pathlib
import re
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "launch"))
from support import BUILD, SOURCE, LaunchTest  # noqa: E402

PAGE = (SOURCE / "docs" / "accelerator.md").read_text()


class AcceleratorDoc(unittest.TestCase):
    def test_shows_the_example_as_it_is(self):
        [(path, code)] = re.findall(r"^`(examples/\S+)`:\n\n```cpp\n(.*?)```", PAGE, re.M | re.S)
        self.assertEqual(code, (SOURCE / path).read_text())

    def test_links_to_what_is_there(self):
        for target in re.findall(r"\]\(([\w-]+\.md)", PAGE):
            self.assertTrue((SOURCE / "docs" / target).exists(), target)

    def test_names_messages_that_exist(self):
        code = "".join(path.read_text() for path in (SOURCE / "src" / "train").glob("accelerator*_test.cpp"))
        code = code.replace('"\n            "', "")
        for message in re.findall(r"^\| `((?:accelerator|training): [^`]*)`", PAGE, re.M):
            if "moved the model" not in message:  # needs a GPU
                self.assertIn(message, code)


class Examples(LaunchTest):
    def result(self, name: str, *arguments: str) -> dict:
        result = self.run_tandem(*arguments, "--device", "cpu", "--json", program=BUILD / "bin" / "examples" / name)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.screen = result.stderr
        [line] = result.stdout.splitlines()
        return json.loads(line)

    def test_04_learns_and_keeps_its_run(self):
        result = self.result("04_accelerator", "--nproc", "2", "--name", "first")
        self.assertEqual((result["steps"], result["why_stopped"]), (640, ""))
        self.assertLess(result["largest error"], 0.2)
        self.assertIn("batch      32 samples a step = 16 a micro-batch x 1 micro-batch x 2 ranks\n", self.screen)
        self.assertIn("replicas  equal to the bit on all ranks after step 640\n", self.screen)
        folder = self.folder / "runs" / "first"
        self.assertEqual(pathlib.Path(result["folder"]), folder)
        self.assertTrue((folder / "checkpoints" / "step-00000640" / "model.safetensors").exists())
        steps = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
        self.assertEqual([e["step"] for e in steps if e["event"] == "step"], list(range(1, 641)))

    def test_04_stops_when_told_and_goes_on_by_the_command_it_shows(self):
        stopped = self.result("04_accelerator", "--nproc", "2", "--stop-at", "1ms", "--shards", "2", "--name", "parts")
        self.assertEqual((stopped["steps"], stopped["why_stopped"]), (1, "--stop-at"))
        [command] = re.findall(r"^next +(.*)$", self.screen, re.M)
        self.assertEqual(command.split()[-4:], ["--name", "parts", "--resume", "latest"])
        arguments = [word for word in command.split()[1:] if word not in ("--stop-at", "1ms", "--device", "cpu", "--json")]
        went_on = self.result("04_accelerator", *arguments)
        whole = self.result("04_accelerator", "--shards", "2", "--name", "whole")
        self.assertEqual((went_on["steps"], went_on["loss"]), (640, whole["loss"]))

    def run_04(self, name: str, redirect: str) -> subprocess.CompletedProcess:
        program = BUILD / "bin" / "examples" / "04_accelerator"
        return subprocess.run(f"'{program}' --max-steps 3 --json --name {name} {redirect}", shell=True, timeout=60,
                              cwd=self.folder, env={**os.environ, "CUDA_VISIBLE_DEVICES": ""}, text=True,
                              stderr=subprocess.PIPE)

    def test_04_tells_of_a_result_that_went_nowhere(self):
        result = self.run_04("full", "> /dev/full")
        self.assertIn("error: cannot write the result to standard output: No space left on device", result.stderr)
        self.assertNotEqual(result.returncode, 0)

    def test_04_keeps_its_files_clean_of_a_closed_output(self):
        self.run_04("closed", ">&-")
        for line in (self.folder / "runs" / "closed" / "events.jsonl").read_text().splitlines():
            json.loads(line)

    def test_04_goes_on_without_a_reader(self):
        command = [BUILD / "bin/examples/04_accelerator", "--device", "cpu", "--name", "unread", "--run-dir", self.folder / "runs",
                   "--epochs", "3"]
        run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        run.stdout.readline()
        run.stdout.close()
        self.assertEqual(run.wait(timeout=120), 0)
        self.assertTrue((self.folder / "runs/unread/checkpoints/step-00000192/DONE").exists())

    def test_05_gives_the_same_on_any_number_of_ranks(self):
        losses = [self.result("05_accumulate", "--nproc", ranks)["loss"] for ranks in ("1", "2", "4")]
        for loss in losses:
            self.assertLess(loss, 0.01)
            self.assertAlmostEqual(loss, losses[0], delta=1e-6)

    def test_06_learns_in_each_precision(self):
        for precision in ("fp32", "bf16", "fp16"):
            result = self.result("06_mixed_precision", "--nproc", "2", "--precision", precision)
            self.assertGreater(result["accuracy"], 0.95, precision)


if __name__ == "__main__":
    unittest.main()

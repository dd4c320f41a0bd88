"""docs/accelerator.md agrees with the sources: examples, links, messages. Runs the examples 04 to 06 and 08."""

import json
import os
import pathlib
import re
import subprocess
import sys
import textwrap
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "launch"))
from doc_links import lost_targets  # noqa: E402
from support import BUILD, SOURCE, LaunchTest  # noqa: E402

PAGE = (SOURCE / "docs" / "accelerator.md").read_text()


class AcceleratorDoc(unittest.TestCase):
    def test_shows_the_example_as_it_is(self):
        [(path, code)] = re.findall(r"^`(examples/\S+)`:\n\n```cpp\n(.*?)```", PAGE, re.M | re.S)
        self.assertEqual(code, (SOURCE / path).read_text())

    def test_shows_the_loop_of_the_gan_as_it_is(self):
        [(path, code)] = re.findall(r"From `(examples/\S+)`:\n\n```cpp\n(.*?)```", PAGE, re.S)
        self.assertIn(textwrap.indent(code, "  "), (SOURCE / path).read_text())
        self.assertLess(len(code.splitlines()), 15)

    def test_links_to_what_is_there(self):
        self.assertEqual(lost_targets(PAGE, SOURCE), [])

    def test_names_messages_that_exist(self):
        """The fixed fragments of each message, without its numbers and names, are in the sources."""
        sources = [*(SOURCE / "src" / "train").glob("*.cpp"), SOURCE / "include" / "tandem" / "accelerator.h"]
        code = "".join(path.read_text() for path in sources if not path.name.endswith("_test.cpp"))
        literals = re.findall(r'"((?:[^"\\\n]|\\.)*)"', re.sub(r'"\n *"', "", code))
        messages = re.findall(r"^\| `(?:accelerator|training): ([^`]*)`", PAGE, re.M)
        self.assertGreater(len(messages), 10)
        for message in messages:
            for fragment in re.split(r"(?:\bstep )?\d+|(?:\bpart )?'[^']*'|METHOD", message):
                self.assertTrue(any(fragment.strip() in literal for literal in literals), f"{fragment!r} of {message!r}")


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
        went_on = self.result("04_accelerator", *command.split()[1:], "--stop-at", "1h")
        whole = self.result("04_accelerator", "--shards", "2", "--name", "whole")
        self.assertEqual((went_on["steps"], went_on["train_loss"]), (640, whole["train_loss"]))

    def run_04(self, name: str, redirect: str) -> subprocess.CompletedProcess:
        program = BUILD / "bin" / "examples" / "04_accelerator"
        return subprocess.run(f"'{program}' --max-steps 3 --json --name {name} {redirect}", shell=True, timeout=60,
                              cwd=self.folder, env={**os.environ, "CUDA_VISIBLE_DEVICES": ""}, text=True,
                              stderr=subprocess.PIPE)

    def test_04_tells_of_a_result_that_went_nowhere(self):
        result = self.run_04("full", "> /dev/full")
        self.assertRegex(result.stderr, r"error: .*standard output: No space left on device")
        self.assertEqual(result.returncode, 8)

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

    def check_gan(self, result: dict) -> None:
        self.assertEqual((result["steps"], result["why_stopped"]), (1280, ""))
        self.assertLess(result["mean error"], 0.1)
        self.assertLess(result["spread error"], 0.3)
        noise = result["baselines"]["the noise"]
        self.assertGreater(min(noise["mean error"], noise["spread error"]), 0.8)

    def test_08_learns_the_distribution_on_1_and_2_ranks(self):
        for ranks in ("1", "2"):
            self.check_gan(self.result("08_gan", "--nproc", ranks, "--name", f"on-{ranks}"))
        [event] = [json.loads(line) for line in (self.folder / "runs/on-2/events.jsonl").read_text().splitlines()
                   if '"step":1280,' in line and '"event":"step"' in line]
        terms = [event[name] for name in ("discriminator", "generator.adversarial", "generator.features")]
        self.assertAlmostEqual(event["loss"], sum(terms), delta=1e-9)
        self.assertIn("generator.norm", event)

    def test_08_resumes_to_the_same_bits_on_another_number_of_ranks(self):
        exact = ("--shards", "2", "--schedule", "constant", "--max-steps")
        self.result("08_gan", *exact, "40", "--nproc", "2", "--name", "whole")
        self.result("08_gan", *exact, "20", "--nproc", "2", "--name", "parts")
        self.result("08_gan", *exact, "40", "--nproc", "1", "--name", "parts")
        self.assertIn("step-00000020, at step 20", self.screen)
        for name in ("model.safetensors", "optimizer.safetensors"):
            whole, parts = (self.folder / "runs" / run / "checkpoints/step-00000040" / name for run in ("whole", "parts"))
            self.assertEqual(whole.read_bytes(), parts.read_bytes(), name)
        self.assertIn(b'"generator.ema.average.0.weight"', whole.read_bytes())


if __name__ == "__main__":
    unittest.main()

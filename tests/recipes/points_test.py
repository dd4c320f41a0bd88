"""The smallest recipe, tests/recipes/points: what src/recipe gives every recipe."""

import json
import os
import re
import resource
import subprocess
import sys
import pathlib
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "launch"))
from support import BUILD, SOURCE, LaunchTest  # noqa: E402

TRAIN = ("train", "--name", "fit")


class PointsTest(LaunchTest):
    def setUp(self):
        super().setUp()
        self.env["OMP_NUM_THREADS"] = "1"
        self.env["PATH"] = f"{BUILD / 'tests'}{os.pathsep}{self.env['PATH']}"  # `tandem points` finds tandem-points there

    def points(self, *words, **options) -> subprocess.CompletedProcess:
        return self.run_tandem("points", *words, **options)

    def run_well(self, *words, **options) -> str:
        done = self.points(*words, **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def result(self, *words) -> dict:
        return json.loads(self.run_well(*words, "--json").splitlines()[-1])

    def assert_refused(self, words: tuple, code: int, facts: tuple, hint: tuple) -> None:
        said = re.fullmatch(r"error: (.+)\nhint: (.+)\n", (refused := self.points(*words)).stderr)
        self.assertIsNotNone(said, refused.stderr)
        for text, wanted in zip(said.groups(), (facts, hint)):
            for fact in wanted:
                self.assertIn(fact, text)
        self.assertEqual((refused.stdout, refused.returncode), ("", code))


class Train(PointsTest):
    def test_learns_the_same_on_one_rank_and_on_two(self):
        one, two = (self.result("train", "--name", str(ranks), "--nproc", ranks) for ranks in (1, 2))
        self.assertEqual(one["steps"], 160)  # 20 epochs of 64 points, 8 a step
        self.assertLess(one["loss"], 1e-3)
        self.assertAlmostEqual(one["loss"], two["loss"], delta=1e-6)

    def test_has_presets_that_file_and_flags_override(self):
        self.assertEqual(self.result(*TRAIN, "--preset", "quick")["steps"], 20)
        self.write("run.yaml", "max-steps: 7\npreset: quick\n")
        shown = self.run_well("train", "--config", "run.yaml", "--lr", "0.5", "--dump-config")
        self.assertRegex(shown, "(?m)^preset: quick  # run.yaml:2$")
        self.assertRegex(shown, "(?m)^max-steps: 7  # run.yaml:1$")
        self.assertRegex(shown, "(?m)^lr: 0.5  # --lr$")
        self.assertRegex(self.run_well("train", "--preset", "quick", "--help"), r"--max-steps .*\n?.*default 20\)")
        self.assert_refused(("train", "--preset", "quik"), 2, ("--preset", "'quik'"), ("did you mean quick?",))

    def test_evaluates_keeps_the_best_and_stops_when_the_patience_is_exhausted(self):
        stopped = self.result(*TRAIN, "--lr", "0", "--eval-every", "2", "--patience", "3")
        self.assertEqual(stopped["steps"], 8)  # the evaluation at step 2 is the best
        self.assertIn("--patience 3", stopped["why_stopped"])
        self.assertEqual((self.folder / "runs/fit/checkpoints/best").read_text().strip(), "step-00000002")
        self.assertNotIn("--resume", self.points(*TRAIN, "--name", "again", "--lr", "0", "--eval-every", "2", "--patience", "3").stdout)
        events = [json.loads(line) for line in (self.folder / "runs/fit/events.jsonl").read_text().splitlines()]
        evaluated = [event["step"] for event in events if "loss" in event and event["event"] not in ("step", "end")]
        self.assertEqual(evaluated, [2, 4, 6, 8])
        (board,) = (self.folder / "runs/fit").glob("events.out.*")
        self.assertEqual(board.read_bytes().count(b"validation/loss"), 4)  # TensorBoard's tag
        self.assert_refused(("train", "--patience", "3"), 2, ("patience is 3",), ("--eval-every",))

    def test_keeps_the_patience_when_it_is_resumed(self):
        patient = (*TRAIN, "--lr", "0", "--eval-every", "2", "--patience", "3")
        self.assertEqual(self.result(*patient, "--max-steps", "4")["why_stopped"], "")
        self.assertEqual(self.result(*patient)["steps"], 8)

    def test_goes_on_where_it_was(self):
        self.result("train", "--name", "whole", "--max-steps", "40", "--schedule", "constant")
        self.result(*TRAIN, "--max-steps", "20", "--schedule", "constant")
        self.result(*TRAIN, "--max-steps", "40", "--schedule", "constant")
        whole, parts = (self.run_well("evaluate", "--from", f"runs/{name}") for name in ("whole", "fit"))
        self.assertEqual(whole, parts)


class Use(PointsTest):
    def setUp(self):
        super().setUp()
        self.trained = self.result(*TRAIN, "--preset", "quick")

    def test_evaluates_to_the_same_bits_on_any_number_of_ranks(self):
        said = [self.run_well("evaluate", "--from", "runs/fit", "--nproc", ranks) for ranks in (1, 2, 3)]
        self.assertEqual(said[0], f"loss {self.trained['loss']}\n")
        self.assertEqual(said, said[:1] * 3)

    def predict(self, *words, **options) -> subprocess.CompletedProcess:
        return self.points("predict", "--from", "runs/fit", "--output", "out.txt", *words, **options)

    def written(self, *words) -> str:
        done = self.predict(*words)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([path.name for path in self.folder.glob("out*")], ["out.txt"])
        return (self.folder / "out.txt").read_text()

    def test_predicts_every_row_once_and_in_order_on_any_number_of_ranks(self):
        files = [self.written("--nproc", ranks) for ranks in (1, 2, 3)]
        self.assertEqual(files, files[:1] * 3)
        self.assertEqual(len(set(files[0].splitlines())), 30)
        self.assertEqual(len(files[0].splitlines()), 30)

    def test_predicts_on_from_a_draft_that_was_stopped(self):
        whole = self.written()
        (self.folder / "out.txt").unlink()

        def limit() -> None:  # no file may grow beyond this, as on a full disk
            resource.setrlimit(resource.RLIMIT_FSIZE, (250, 250))

        stopped = self.predict("--nproc", 1, preexec_fn=limit, restore_signals=False)
        self.assertIn("out.txt.part", stopped.stderr)
        self.assertFalse((self.folder / "out.txt").exists())
        kept = (self.folder / "out.txt.part").read_text().count("\n") - 1
        self.assertGreaterEqual(kept, 4)
        self.assertRegex(self.predict("--precision", "bf16").stderr, rf"out\.txt\.part.* {kept} rows")
        self.result(*TRAIN, "--preset", "quick", "--lr", "0.2", "--resume", "no", "--name", "other")
        self.assertRegex(self.predict("--from", "runs/other").stderr, rf"out\.txt\.part.* {kept} rows")
        self.assertEqual(self.written("--nproc", 2), whole)


class Commands(PointsTest):
    def test_are_listed_and_the_nearest_is_named(self):
        self.assertEqual(self.run_well(), self.run_well("--help"))
        self.assertRegex(self.run_well("--help"), r"(?m)^  train     train the model\n  evaluate  .*\n  predict   .*$")
        self.assert_refused(("evalute",), 2, ("tandem points", "'evalute'"), ("`tandem points evaluate`",))
        self.assertTrue(self.run_well("predict", "--help").startswith("usage: tandem points predict [flags]\n\nWrite what the model"))


class Page(unittest.TestCase):
    def test_quotes_the_recipe_which_is_short(self):
        recipe = SOURCE / "tests" / "recipes" / "points"
        files = {path.name: path.read_text() for path in sorted(recipe.iterdir())}
        self.assertLess(files["points.cpp"].count("\n") + files["main.cpp"].count("\n"), 120)
        page = (SOURCE / "CONTRIBUTING.md").read_text().partition("\n## How to add a recipe\n")[2].partition("\n## ")[0]
        quoted = re.findall(r"^```cpp\n(.*?)^```$", page, re.M | re.S)
        self.assertGreaterEqual(len(quoted), 5)
        for block in quoted:
            self.assertTrue(any(block in text for text in files.values()), block)


if __name__ == "__main__":
    unittest.main()

"""`tandem segment` as a user runs it, from a VOC folder to masks, and what it refuses."""

import json
import os
import pathlib
import re
import shutil
import struct
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "launch"))
from support import BUILD, LaunchTest  # noqa: E402

SEEDS = (1000, 1, 2) if "TANDEM_SOAK" in os.environ else (1000,)
PROGRAM = BUILD / "bin" / "tandem-segment"
SMALL = ("--layers", 14, "--width", 8, "--crop", 65, "--precision", "fp32", "--threads", 1, "--device", "cpu")
SHORT = (*SMALL, "--batch-size", 2, "--max-steps", 2, "--eval-epochs", 0, "--warmup-epochs", 0)


class SegmentTest(LaunchTest):
    def setUp(self):
        super().setUp()
        self.env["OMP_NUM_THREADS"] = "1"

    def segment(self, *words, **options):
        return self.run_tandem("segment", *words, **options)

    def run_well(self, *words, **options) -> str:
        result = self.segment(*words, **options)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def result(self, *words) -> dict:
        return json.loads(self.run_well(*words, "--json").splitlines()[-1])

    def write_voc(self, name: str = "voc") -> pathlib.Path:
        """The built-in shapes as a folder in VOC's layout, 12 to train on and 5 to evaluate on."""
        self.run_well("shapes", name, "--samples", 12, "--valid-samples", 5)
        folder = self.folder / name
        self.assertTrue((folder / "JPEGImages").is_dir())
        return folder

    def log_of(self, run: str) -> str:
        return (self.folder / "runs" / run / "logs" / "rank0.log").read_text()


class Shapes(SegmentTest):
    def test_are_learned_from_scribbles_on_two_ranks(self):
        words = ("train", "--preset", "demo", "--nproc", 2, "--name", "demo")
        result = self.result(*words)
        self.assertGreaterEqual(result["mean_iou"], 0.5)
        self.assertLess(result["baselines"]["all_background"]["mean_iou"], 0.25)
        self.assertTrue((self.folder / "runs/demo/samples.png").read_bytes().startswith(b"\x89PNG"))
        log = self.log_of("demo")
        self.assertIn("batch norm synchronized over 2 ranks", log)
        self.assertIn("img/s", log)
        self.assertRegex(log, r"l_segs [\d.]+ \| l_pseudo")

        # What the run says is what the command says, on any number of ranks.
        for ranks in (1, 2, 3):
            again = self.result("evaluate", "--from", "runs/demo", "--nproc", ranks, "--device", "cpu")
            self.assertEqual(again["images"], result["images"])
            self.assertAlmostEqual(again["mean_iou"], result["mean_iou"], delta=1e-3)

    def learn(self, seed: int, *words) -> float:
        """By the labels alone, without pseudo labels and distance maps."""
        result = self.result("train", "--preset", "demo", "--nproc", 2, "--dataset", "ScribbleOnly", "--l-segs", 1, "--l-pseudo", 0,
                             "--l-lorm", 0, "--l-ds", 0, "--l-dc", 0, "--seed", seed, *words)
        self.assertLess(result["baselines"]["all_background"]["mean_iou"], 0.25)
        return result["mean_iou"]

    def test_are_learned_from_scribbles_alone(self):
        for seed in SEEDS:
            self.assertGreaterEqual(self.learn(seed, "--epochs", 24, "--class-weights", "1,1,1,1"), 0.55, seed)

    def test_are_learned_from_full_masks(self):
        for seed in SEEDS:
            self.assertGreaterEqual(self.learn(seed, "--train-path", "SegmentationClassAug"), 0.75, seed)


class Folders(SegmentTest):
    def test_of_voc_are_trained_on_evaluated_and_predicted(self):
        voc = self.write_voc()
        self.run_well("prepare", "--data", voc)
        names = sorted(path.name for path in (voc / "distance_s").glob("*.png"))
        self.assertEqual(len(names), 12)
        changed = {path: path.stat().st_mtime_ns for path in (voc / "distance_s").glob("*.png")}
        self.run_well("prepare", "--data", voc)
        self.assertEqual({path: path.stat().st_mtime_ns for path in changed}, changed, "nothing is written twice")

        result = self.result("train", "--data", voc, "--numclasses", 4, "--dataset", "ScribblePseudoDsDc", "--l-pseudo", 1,
                             "--l-lorm", 0.1, "--l-ds", 1, "--l-dc", 1, *SHORT, "--verify", "--name", "voc")
        self.assertEqual(result["images"], 5)
        self.assertIn("verified   17 samples read, 0 unusable", self.log_of("voc"))

        self.run_well("predict", "--from", "runs/voc", "--images", voc / "JPEGImages", "--output", "masks", "--overlay", "--scores",
                      "--nproc", 2, "--device", "cpu")
        masks = sorted((self.folder / "masks").glob("*.png"))
        self.assertEqual(len(masks), 17)
        header = masks[0].read_bytes()
        self.assertEqual(struct.unpack(">II", header[16:24]), (96, 96))
        self.assertEqual(header[25], 3, "a palette")
        self.assertEqual(len(list((self.folder / "masks").glob("*.overlay.jpg"))), 17)
        self.assertEqual(len(list((self.folder / "masks").glob("*.safetensors"))), 17)
        table = (self.folder / "masks/predictions.csv").read_text().splitlines()
        self.assertEqual(table[0], "mask,height,width")
        self.assertEqual(len(table), 18)

        # An image is never replaced by its mask.
        self.assertEqual(self.segment("predict", "--from", "runs/voc", "--images", voc / "SegmentationClassAug", "--output",
                                      voc / "SegmentationClassAug", "--device", "cpu").returncode, 3, "masks would replace the input")
        self.run_well("predict", "--from", "runs/voc", "--images", voc / "JPEGImages" / "train_3.jpg", "--output", "one", "--device", "cpu")
        self.assertEqual((self.folder / "one/train_3.png").read_bytes(), (self.folder / "masks/train_3.png").read_bytes())

        # Any two folders of masks can be compared; a folder equals itself.
        score = self.result("score", voc / "SegmentationClassAug", voc / "SegmentationClassAug", "--numclasses", 4)
        self.assertEqual(score["mean_iou"], 1)
        self.assertEqual(score["pixel_accuracy"], 1)
        self.assertEqual(self.result("score", "masks", voc / "SegmentationClassAug", "--numclasses", 4)["images"], 17, "overlays are no masks")

    def test_of_masks_predicted_have_the_score_of_the_evaluation(self):
        voc = self.write_voc()
        self.run_well("train", "--data", voc, "--numclasses", 4, *SHORT, "--name", "run")
        names = (voc / "ImageSets/SegmentationAug/val.txt").read_text().split()
        (self.folder / "photos").mkdir()
        (self.folder / "truth").mkdir()
        for name in names:
            shutil.copy(voc / "JPEGImages" / f"{name}.jpg", self.folder / "photos")
            shutil.copy(voc / "SegmentationClassAug" / f"{name}.png", self.folder / "truth")
        for flags in ((), ("--scales", "0.5,1", "--flip", "--window", 65)):
            self.run_well("predict", "--from", "runs/run", "--images", "photos", "--output", "out", *flags, "--device", "cpu")
            evaluated = self.result("evaluate", "--from", "runs/run", "--whole", *flags, "--device", "cpu")
            score = self.result("score", "out", "truth", "--numclasses", 4)
            self.assertAlmostEqual(score["mean_iou"], evaluated["mean_iou"], places=12)
            self.assertAlmostEqual(score["pixel_accuracy"], evaluated["pixel_accuracy"], places=12)
            shutil.rmtree(self.folder / "out")

    def test_with_other_classes_leave_the_head_out(self):
        voc = self.write_voc()
        self.run_well("train", "--data", voc, "--numclasses", 4, *SHORT, "--name", "four")
        self.run_well("export", "--from", "runs/four", "--output", "exported")
        self.run_well("train", "--data", voc, "--numclasses", 7, *SHORT, "--init", "exported", "--name", "seven")
        said = re.search(r"^weights    (.+)$", self.log_of("seven"), re.M)
        self.assertIsNotNone(said, self.log_of("seven"))
        self.assertIn("classifier", said[1])


class Bad(SegmentTest):
    def test_files_are_skipped_counted_and_named(self):
        voc = self.write_voc()
        image, mask = voc / "JPEGImages/train_3.jpg", voc / "SegmentationClassAug/valid_1.png"
        for file in (image, mask):
            file.write_bytes(file.read_bytes()[:200])
        train = ("train", "--data", voc, "--numclasses", 4, *SMALL, "--batch-size", 2, "--epochs", 1)
        for verify in ((), ("--verify",)):
            result = self.result(*train, "--skip-bad", 2, *verify, "--name", f"run{len(verify)}")
            self.assertEqual(result["images"], 4)
            log = self.log_of(f"run{len(verify)}")
            self.assertIn("train_3.jpg", log)
        for whole in ((), ("--whole",)):
            result = self.result("evaluate", "--from", "runs/run0", "--skip-bad", 1, *whole, "--device", "cpu")
            self.assertEqual((result["images"], len(result["skipped"])), (4, 1))
            self.assertIn("valid_1", result["skipped"][0])
            self.assertEqual(sum(map(sum, result["confusion"])), 4 * (96 if whole else 65) ** 2)

    def test_class_numbers_get_the_hint_of_what_is_wrong(self):
        voc = self.write_voc()
        result = self.segment("train", "--data", voc, "--numclasses", 2, *SHORT)
        self.assertIn("2 classes", result.stderr)
        self.assertNotIn("repair or remove it", result.stderr)

    def test_steps_without_a_label_are_steps(self):
        voc = self.write_voc()
        (self.folder / "none.yaml").write_text("names: [a, b, c, d]\nlabel_map: [others=ignored]\n")
        result = self.segment("train", "--data", voc, "--classes", "none.yaml", *SHORT)
        self.assertIn("none of the 5 masks to evaluate on has a pixel with a label", result.stderr)

    def test_evaluation_needs_no_training_data(self):
        voc = self.write_voc()
        self.run_well("train", "--data", voc, "--numclasses", 4, *SHORT, "--name", "run")
        shutil.rmtree(voc / "pascal_2012_scribble")
        (voc / "ImageSets/SegmentationAug/train.txt").unlink()
        self.assertEqual(self.result("evaluate", "--from", "runs/run", "--device", "cpu")["images"], 5)

    def test_flags_without_use_in_a_layout_are_refused(self):
        voc = self.write_voc()
        (self.folder / "pairs").mkdir()
        shutil.copytree(voc / "JPEGImages", self.folder / "pairs/images")
        shutil.copytree(voc / "SegmentationClassAug", self.folder / "pairs/masks")
        for flag in ("--mask-path", "--train-path", "--train-list"):
            result = self.segment("train", "--data", "pairs", "--numclasses", 4, *SHORT, flag, "typo")
            self.assertNotEqual(result.returncode, 0, flag)
            self.assertIn("typo", result.stderr)


if __name__ == "__main__":
    unittest.main()

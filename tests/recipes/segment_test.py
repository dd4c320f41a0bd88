"""`tandem segment` as a user runs it, from a VOC folder to masks; every command line of guide 002; what it refuses."""

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
            self.assertGreaterEqual(self.learn(seed, "--train-path", "SegmentationClassAug"), 0.7, seed)


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
        self.assertIn("verified   every file was read; 0 cannot be used", self.log_of("voc"))

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

    def test_that_are_bad_are_named(self):
        voc = self.write_voc()
        train = ("train", "--data", voc, "--numclasses", 4, *SHORT)
        image = next((voc / "JPEGImages").glob("*.jpg"))
        mask = voc / "pascal_2012_scribble" / f"{image.stem}.png"
        good = image.read_bytes(), mask.read_bytes()

        def refused(facts: tuple, *words, code: int = 7) -> None:
            result = self.segment(*train, "--verify", *words)
            self.assertNotEqual(result.returncode, 0, facts)
            for fact in (*facts, "hint: "):
                self.assertIn(fact, result.stderr)

        image.write_bytes(good[0][:300])
        refused((image.name,))
        image.write_bytes(good[0])
        result = self.segment("train", "--data", voc, "--numclasses", 2, *SHORT, "--verify")
        self.assertIn("2 classes", result.stderr)
        refused(("nowhere",), "--train-path", "nowhere")
        (voc / "ImageSets/SegmentationAug/train.txt").write_text("")
        refused(("train.txt",))
        refused(("missing",), "--data", "missing")


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


class Guide(SegmentTest):
    """The lines of guide 002, with `tandem segment train` in place of `train.py`."""
    GUIDE = ("--layers", 14, "--numclasses", 4, "--model_path", "None", "--model_type", "res50_ASPP_lorm", "--shrink_factor", 1, "--l_segs", 1,
             "--l_pesudo", 1, "--l_lorm", 1, "--label_smooth", 0.1, "--l_ds", 1, "--l_dc", 1, "--dataset", "ScribblePseudoDsDc",
             "--train_path", "pascal_2012_scribble", "--pesudo_path", "bmp_ws_train_aug_dataset", "--distancemap_s", "distance_s",
             "--distancemap_c", "distance_c", "--workers", 1, "--batchsize", 2, "--epochs", 1, "--chk_interval", 5, "--val_epoch", 0,
             "--lr", "1e-3", "--warmup_epoch", 0, "--wdecay", "5e-4", "--momentum", 0.9, "--logdir", "./log/",
             "--width", 8, "--crop", 65, "--max-steps", 2, "--precision", "fp32", "--threads", 1)

    def setUp(self):
        super().setUp()
        self.voc = self.write_voc()
        self.run_well("prepare", "--data", self.voc)
        self.guide = (*self.GUIDE, "--dataset_path", self.voc)

    def ranks_of(self, result) -> int:
        self.assertEqual(result.returncode, 0, result.stderr)
        (run,) = (path for path in (self.folder / "log").iterdir() if not path.is_symlink())
        log = (run / "logs" / "rank0.log").read_text() if (run / "logs").exists() else result.stdout + result.stderr
        shutil.rmtree(self.folder / "log")
        return int(re.search(r"x (\d+) ranks?$", log, re.M)[1])

    def test_torchrun(self):
        result = self.run_tandem("run", "--nproc_per_node=2", "--standalone", PROGRAM, "train", "--distributed", *self.guide)
        self.assertEqual(self.ranks_of(result), 2)

    def test_torch_distributed_launch(self):
        result = self.run_tandem("run", "--nproc_per_node=2", "--use_env", PROGRAM, "train", "--distributed", *self.guide)
        self.assertEqual(self.ranks_of(result), 2)

    def test_one_process(self):
        self.assertEqual(self.ranks_of(self.segment("train", *self.guide)), 1)

    def test_the_debug_line_is_one_process(self):
        self.assertEqual(self.ranks_of(self.segment("train", "--distributed", "--local_rank=0", *self.guide)), 1)

    def test_the_environment_of_vs_code_is_one_process(self):
        self.env.update(RANK="0", WORLD_SIZE="1", LOCAL_RANK="0", MASTER_ADDR="localhost", MASTER_PORT="12355")
        self.assertEqual(self.ranks_of(self.segment("train", "--distributed", "--local_rank", "0", *self.guide)), 1)

    def test_names_of_scalars_are_in_tensorboard(self):
        self.assertEqual(self.segment("train", *self.guide).returncode, 0)
        (events,) = (path for path in (self.folder / "log").glob("*/events.out.tfevents.*") if not path.parent.is_symlink())
        content = events.read_bytes()
        for name in (b"val/val_iou", b"train/l_ds", b"train/l_dc", b"train/l_segs", b"samples"):
            self.assertIn(name, content)


if __name__ == "__main__":
    unittest.main()

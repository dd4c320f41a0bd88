"""`tandem segment` with data that is bad, incomplete or in the way: what is refused, what is left out, what continues."""

import json
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys
import unittest
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from segment_test import BUILD, SHORT, SMALL, SegmentTest  # noqa: E402
from support import wait_until  # noqa: E402

NOBODY = 65534
FOUR = ("--numclasses", 4)


def png(width: int, height: int, value: int = 0, depth: int = 8) -> bytes:
    """A grey image of one value."""
    def chunk(name: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
    row = b"\0" + value.to_bytes(depth // 8, "big") * width
    header = struct.pack(">IIBBBBB", width, height, depth, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(row * height)) + chunk(b"IEND", b"")


def cmyk_of(jpeg: bytes) -> bytes:
    """The header of a JPEG with four components; its data do not matter."""
    at = jpeg.index(b"\xff\xc0")
    old = jpeg[at:at + 2 + struct.unpack(">H", jpeg[at + 2:at + 4])[0]]
    new = b"\xff\xc0" + struct.pack(">H", 20) + old[4:9] + b"\4" + b"".join(bytes((i, 0x11, 0)) for i in range(1, 5))
    return jpeg.replace(old, new)


class DataTest(SegmentTest):
    def setUp(self):
        super().setUp()
        self.voc = self.write_voc()
        self.image = self.voc / "JPEGImages/train_3.jpg"
        self.scribble = self.voc / "pascal_2012_scribble/train_3.png"
        self.valid_mask = self.voc / "SegmentationClassAug/valid_1.png"
        self.list = self.voc / "ImageSets/SegmentationAug/train.txt"

    def assert_refused(self, result: subprocess.CompletedProcess, code: int, *facts: str) -> None:
        """One sentence and one hint, whatever a launcher says besides."""
        said = re.findall(r"^(error|hint): .+$", result.stderr, re.M)
        self.assertEqual((said, result.returncode, result.stdout), (["error", "hint"], code, ""), result.stderr)
        for fact in facts:
            self.assertIn(fact, result.stderr)

    def train(self, *words, **options):
        return self.segment("train", "--data", self.voc, *FOUR, *SHORT, *words, **options)

    def write_pairs(self) -> pathlib.Path:
        """images/ and masks/ with train and val; the stems are the same in both."""
        for kind, ending in (("JPEGImages", ".jpg"), ("SegmentationClassAug", ".png")):
            for old in (self.voc / kind).iterdir():
                which, number = old.stem.split("_")
                new = self.folder / "pairs" / ("images" if ending == ".jpg" else "masks") / {"valid": "val"}.get(which, which) / (number + ending)
                new.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(old, new)
        return self.folder / "pairs"


class BadInput(DataTest):
    def test_is_refused_in_one_sentence_that_names_it(self):
        jpeg, missing = self.image.read_bytes(), self.folder / "missing"
        table = (
            ("a truncated JPEG", self.image, jpeg[:300], (), (self.image, "1 of 17 samples", "truncated or damaged")),
            ("an empty file", self.image, b"", (), (self.image, "is empty")),
            ("a CMYK JPEG", self.image, cmyk_of(jpeg), (), (self.image, "CMYK")),
            ("another format", self.image, b"RIFF\x10\0\0\0WEBPVP8 ", (), (self.image, "WebP")),
            ("a mask of 16 bits", self.scribble, png(96, 96, 1, 16), (), (self.scribble, "16")),
            ("a mask of another size", self.scribble, png(90, 96), (), (self.scribble, "90 x 96", self.image, "96 x 96")),
            ("class 30 of 21", self.scribble, png(96, 96, 30), ("--numclasses", 21), (self.scribble, "value 30", "21 classes")),
            ("an empty list", self.list, b"\n", (), (self.list, "is empty", "--train-list")),
            ("no list", None, b"", ("--train-list", "nix.txt"), (self.voc / "nix.txt", "no list", "--train-list")),
            ("the null device as list", None, b"", ("--train-list", "/dev/null"), ("/dev/null is empty",)),
            ("a missing folder of data", None, b"", ("--data", missing), (missing, "no folder", "--data")),
            ("a missing folder of labels", None, b"", ("--train-path", "nix"), (self.voc / "nix", "no folder", "--train-path")),
            ("a file as folder of labels", None, b"", ("--train-path", self.list), (self.list, "is a file, not a folder", "--train-path")),
            ("a file as folder of data", None, b"", ("--data", self.list), (self.list, "is a file, not a folder")),
        )
        for what, file, content, words, facts in table:
            with self.subTest(what):
                good = file.read_bytes() if file else b""
                if file:
                    file.write_bytes(content)
                self.assert_refused(self.train("--verify", *words), 8, *map(str, facts))
                if file:
                    file.write_bytes(good)
        self.assertEqual(self.train("--verify", "--name", "good").returncode, 0)

    def test_of_files_that_are_missing_is_refused_before_training(self):
        for words in ((), ("--verify",)):
            for file, named_by in ((self.image, self.list), (self.scribble, self.list), (self.valid_mask, self.list.with_name("val.txt"))):
                with self.subTest(file=file.name, words=words):
                    kept = file.rename(self.folder / "kept")
                    self.assert_refused(self.train(*words), 8, f"1 of 17 samples cannot be used: there is no file {file}", str(named_by),
                                      "leave it out with --skip-bad 1")
                    file.mkdir()
                    self.assert_refused(self.train(*words), 8, f"{file}: Is a directory")
                    file.rmdir()
                    kept.rename(file)
        self.assertEqual(list(self.folder.glob("runs/*/events.jsonl")), [], "no run has begun")

    def test_of_two_missing_maps_names_the_command_that_makes_them(self):
        self.run_well("prepare", "--data", self.voc, *FOUR)
        for number in (4, 7):
            (self.voc / f"distance_c/train_{number}.png").unlink()
        words = ("--dataset", "ScribblePseudoDc", "--l-pseudo", 1, "--l-dc", 1)
        self.assert_refused(self.train(*words), 8, "2 of 17 samples", str(self.voc / "distance_c/train_4.png"), "train_7.jpg",
                          "tandem segment prepare", "leave them out with --skip-bad 2")
        result = json.loads(self.train(*words, "--skip-bad", 2, "--json").stdout.splitlines()[-1])
        self.assertEqual(result["unusable"], 2)

    def test_of_a_folder_that_cannot_be_read_is_no_empty_folder(self):
        user = {}
        if os.geteuid() == 0:  # whom permissions do not stop
            user = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
            self.folder.chmod(0o777)
            if subprocess.run([BUILD / "bin" / "tandem-segment", "--help"], capture_output=True, **user).returncode != 0:
                self.skipTest("another user may not start the programs of this build")
        pairs = self.write_pairs()
        for closed in (pairs / "images/train", pairs / "images"):
            closed.chmod(0)
            result = self.segment("train", "--data", "pairs", *FOUR, *SHORT, **user)
            closed.chmod(0o755)
            self.assert_refused(result, 8, "Permission denied", "images")

    def test_of_other_commands_is_refused_too(self):
        mask = self.valid_mask
        table = (
            (("prepare",), 3, ("data is empty", "--data VOC2012")),
            (("shapes", ""), 3, ("tandem segment shapes voc",)),
            (("shapes", "voc"), 3, ("voc exists already", "tandem segment shapes voc")),
            (("score", mask, mask), 8, (str(mask), "is a file, not a folder")),
            (("score", "nix", "voc"), 8, ("there is no folder nix",)),
            (("train", "--data", "voc", "--samples", 7, *SHORT), 2, ("samples is 7", "voc")),
            (("train", "--preset", "demo", "--valid-list", "z", "--device", "cpu"), 2, ("valid-list is z", "builtin:shapes")),
            (("train", "--preset", "demo", "--verify", "--device", "cpu"), 2, ("verify is true", "builtin:shapes")),
        )
        for words, code, facts in table:
            with self.subTest(words):
                self.assert_refused(self.segment(*words), code, *facts)


class SkipBad(DataTest):
    def test_leaves_a_sample_out_of_its_own_set_only(self):
        pairs = self.write_pairs()
        (pairs / "images/train/1.jpg").write_bytes(b"no image")
        words = ("train", "--data", pairs, *FOUR, *SHORT)
        for verify in ((), ("--verify",)):
            result = self.result(*words, *verify, "--skip-bad", 1, "--epochs", 1, "--max-steps", 6, "--name", f"run{len(verify)}")
            self.assertEqual((result["images"], result["unusable"]), (5, 1))
            log = self.log_of(f"run{len(verify)}")
            self.assertIn(f"left out   {pairs}/images/train/1.jpg is neither a JPEG nor a PNG", log)
            self.assertEqual(log.count("images/train/1.jpg"), 1)
            self.assertIn("\nunusable   1 of 17 samples left out\n", log)
        self.assertIn("verified   17 samples read, 1 unusable\n", log)

    def test_is_a_total_of_both_sets_and_all_ranks(self):
        for name in ("train_2", "train_5", "train_9"):
            (self.voc / f"JPEGImages/{name}.jpg").write_bytes(b"no image")
        self.valid_mask.write_bytes(b"no image")
        words = ("train", "--data", self.voc, *FOUR, *SMALL, "--batch-size", 2, "--epochs", 1)
        for ranks in (1, 2):
            for verify in ((), ("--verify",)):
                with self.subTest(ranks=ranks, verify=verify):
                    name = f"run{ranks}{len(verify)}"
                    result = self.result(*words, "--nproc", ranks, *verify, "--skip-bad", 4, "--name", name)
                    self.assertEqual((result["images"], result["unusable"]), (4, 4))
                    self.assertIn("\nunusable   4 of 17 samples left out\n", self.log_of(name))
                    few = self.segment(*words, "--nproc", ranks, *verify, "--skip-bad", 3, "--name", f"few{name}")
                    self.assertEqual(few.returncode, 8, few.stderr)
                    self.assertIn("--skip-bad", few.stderr)

    def test_that_is_too_small_loses_no_step(self):
        for number in range(2):
            (self.voc / f"JPEGImages/train_{number}.jpg").write_bytes(b"no image")
        words = ("train", "--data", self.voc, *FOUR, *SMALL, "--batch-size", 4, "--nproc", 2, "--name", "run")
        few = self.segment(*words, "--epochs", 1, "--skip-bad", 1)
        self.assertEqual(few.returncode, 8, few.stderr)
        self.assertIn("--skip-bad 2", few.stderr)
        self.assertTrue(list((self.folder / "runs/run/checkpoints").glob("step-*")), few.stderr)
        self.assertGreater(self.result(*words, "--epochs", 2, "--skip-bad", 2, "--resume", "latest")["mean_iou"], 0)

    def test_of_evaluate_is_a_total_too(self):
        self.assertEqual(self.train("--name", "run").returncode, 0)
        (self.voc / "JPEGImages/valid_0.jpg").unlink()
        for number in (1, 3):
            (self.voc / f"SegmentationClassAug/valid_{number}.png").write_bytes(b"no image")
        words = ("evaluate", "--from", "runs/run", "--device", "cpu", "--eval-batch", 1)
        for ranks in (1, 2, 3):
            result = self.result(*words, "--nproc", ranks, "--skip-bad", 3)
            self.assertEqual((result["images"], result["unusable"], len(result["skipped"])), (2, 3, 3))
            few = self.segment(*words, "--nproc", ranks, "--skip-bad", 2)
            self.assertEqual(few.returncode, 8, few.stderr)
        self.assertIn("unusable  3 of 5 samples left out\n", self.run_well(*words, "--skip-bad", 3))


class Predict(DataTest):
    def setUp(self):
        super().setUp()
        self.assertEqual(self.train("--name", "run").returncode, 0)
        self.photos = self.folder / "photos"
        self.photos.mkdir()
        for number in range(3):
            shutil.copy(self.voc / f"JPEGImages/valid_{number}.jpg", self.photos)

    def predict(self, *words, **options):
        return self.segment("predict", "--from", self.folder / "runs/run", "--device", "cpu", *words, **options)

    def test_does_not_read_what_it_has_written(self):
        for _ in range(2):
            result = self.predict("--images", ".", "--overlay", cwd=self.photos)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("wrote 3 masks", result.stdout)
        self.assertEqual(len(list((self.photos / "masks").iterdir())), 3 * 2 + 1)

    def test_refuses_to_write_among_the_images(self):
        for output in ("photos", "photos/../photos/."):
            self.assert_refused(self.predict("--images", "photos", "--output", output), 3, "the folder of the images", "--output masks")
        self.assertEqual(len(list(self.photos.iterdir())), 3)
        self.assert_refused(self.predict("--images", "nix.jpg"), 8, "no file or folder nix.jpg")

    def test_tells_of_files_of_an_earlier_prediction(self):
        words = ("--images", "photos", "--output", "out")
        self.assertNotIn("earlier", self.predict(*words, "--overlay", "--scores").stdout)
        self.assertIn("6 files", self.predict(*words).stdout)
        self.assertIn("3 files", self.predict(*words, "--overlay").stdout)

    def test_quotes_names_in_its_table(self):
        (self.photos / "valid_0.jpg").rename(self.photos / 'a, "b".jpg')
        self.assertEqual(self.predict("--images", "photos", "--output", "out").returncode, 0)
        table = (self.folder / "out/predictions.csv").read_text().splitlines()
        self.assertEqual(table[:2], ["mask,height,width", '"a, ""b"".png",96,96'])


class Prepare(DataTest):
    def state_of(self, folder: pathlib.Path) -> dict:
        return {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in folder.glob("distance_*/*")}

    def test_that_is_stopped_leaves_nothing_half_done_and_continues(self):
        self.run_well("shapes", "many", "--samples", 3000, "--valid-samples", 1)
        voc = self.folder / "many"
        words = ("segment", "prepare", "--data", voc, *FOUR, "--threads", 1)
        for stop in (signal.SIGINT, signal.SIGTERM):
            process = self.start(*words)
            wait_until(lambda: any(voc.glob("distance_s/*.png")), "the first map exists")
            process.send_signal(stop)
            said, errors = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 128 + stop, errors)
            self.assertIn("stopped: the same command continues\n", said)
            kept = self.state_of(voc)
            self.assertEqual([path.name for path in kept if path.name.startswith(".")], [])
            self.assertLess(len(kept), 6000)
            shutil.copytree(voc, self.folder / "again", dirs_exist_ok=True)
            if stop == signal.SIGINT:
                shutil.rmtree(voc / "distance_s"), shutil.rmtree(voc / "distance_c")
        num_kept = len(kept) - 2  # without the two files that say how maps are made
        said = self.run_well(*words[1:])
        self.assertIn(f"wrote {6000 - num_kept} distance maps; {num_kept} were there already", said)
        ended = self.state_of(voc)
        self.assertEqual({path: ended[path] for path in kept}, kept, "finished maps stay as they are")
        for kind in ("distance_s", "distance_c"):
            shutil.rmtree(self.folder / "again" / kind)
        self.run_well("prepare", "--data", "again", *FOUR)
        whole = {path.relative_to(self.folder / "again"): content for path, (_, content) in self.state_of(self.folder / "again").items()}
        self.assertEqual({path.relative_to(voc): content for path, (_, content) in ended.items()}, whole)

    def test_leaves_out_what_cannot_be_read(self):
        voc = self.voc
        self.scribble.write_bytes(b"no image")
        self.assert_refused(self.segment("prepare", "--data", voc, *FOUR), 8, "train_3.png", "--skip-bad 1")
        said = self.run_well("prepare", "--data", voc, *FOUR, "--skip-bad", 1)
        self.assertRegex(said, r"left out  .*train_3\.png")
        self.assertIn("unusable  1 sample left out", said)
        self.assertEqual(len(list(voc.glob("distance_?/*.png"))), 22)


class Classes(DataTest):
    def test_are_written_beside_the_shapes_and_named_in_tables(self):
        self.assertEqual(self.segment("train", "--data", "voc", "--classes", "voc/classes.yaml", *SHORT, "--name", "run").returncode, 0)
        said = self.run_well("score", "voc/SegmentationClassAug", "voc/SegmentationClassAug", "--classes", "voc/classes.yaml")
        for table in (said, self.run_well("evaluate", "--from", "runs/run", "--device", "cpu")):
            self.assertRegex(table, r"(?m)^triangle +\d\.\d{4}$")
            self.assertRegex(table, r"(?m)^mean IoU of all classes +\d\.\d{4}  \(absent")

    def test_give_the_baseline_its_name(self):
        (self.folder / "c.yaml").write_text("names: [road, b, c, d]\n")
        result = self.segment("train", "--data", "voc", "--classes", "c.yaml", *SHORT, "--name", "run", "--json")
        self.assertEqual(list(json.loads(result.stdout.splitlines()[-1])["baselines"]), ["all_road"])
        self.assertIn("baseline: all road has", self.run_well("evaluate", "--from", "runs/run", "--device", "cpu"))

    def test_of_an_absent_class_count_as_0_in_the_mean_of_all(self):
        names = ["background", "disc", "square", "triangle", *(f"star {number}" for number in range(96))]
        (self.folder / "c.yaml").write_text(f"names: {json.dumps(names)}\n")
        result = json.loads(self.segment("train", "--data", "voc", "--classes", "c.yaml", *SHORT, "--name", "run", "--json").stdout.splitlines()[-1])
        evaluated = self.result("evaluate", "--from", "runs/run", "--device", "cpu")
        ious = [iou or 0 for iou in evaluated["iou"].values()]
        self.assertAlmostEqual(evaluated["mean_iou_all"], sum(ious) / 100, places=12)
        self.assertGreater(evaluated["mean_iou"], evaluated["mean_iou_all"])
        self.assertAlmostEqual(result["mean_iou_all"], evaluated["mean_iou_all"], delta=1e-3)
        logged = [json.loads(line) for line in (self.folder / "runs/run/events.jsonl").read_text().splitlines()]
        (val,) = [line["val_iou"] for line in logged if "val_iou" in line]
        self.assertAlmostEqual(val, result["mean_iou_all"], places=12)

    def test_and_crop_are_all_that_an_exported_model_says_of_its_data(self):
        (self.folder / "c.yaml").write_text("names: [disc, square, triangle]\nignore_zero: true\n")
        self.assertEqual(self.segment("train", "--data", "voc", "--classes", "c.yaml", *SHORT, "--name", "run").returncode, 0)
        self.run_well("export", "--from", "runs/run", "--output", "model")
        text = "".join(path.read_text() for path in (self.folder / "model").glob("*.yaml"))
        self.assertNotIn(str(self.folder), text)
        self.assertRegex(text, r"(?m)^crop: 65$")
        (self.folder / "c.yaml").unlink()
        run, model = (self.result("evaluate", "--from", name, "--data", "voc", "--device", "cpu") for name in ("runs/run", "model"))
        self.assertEqual(run["confusion"], model["confusion"])
        self.assertEqual(list(model["iou"]), ["disc", "square", "triangle"])


if __name__ == "__main__":
    unittest.main()

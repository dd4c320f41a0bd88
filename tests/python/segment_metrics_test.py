"""Distance maps and scores of `tandem segment`, against scipy and scikit-learn."""

import importlib.util
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(os.environ["TANDEM_BUILD"])
SEGMENT_TOOL = BUILD / "tests" / "segment_tool"
TRAINING = ("--numclasses", 4, "--layers", 14, "--width", 8, "--crop", 65, "--batch-size", 4, "--max-steps", 20, "--eval-epochs", 0, "--lr", 0.01,
            "--warmup-epochs", 0, "--name", "few", "--precision", "fp32", "--device", "cpu")
IGNORED = 255


def run(*words):
    return subprocess.run([SEGMENT_TOOL, *map(str, words)], stdout=subprocess.PIPE, check=True, timeout=120).stdout.decode()


class SegmentMetrics(unittest.TestCase):
    def setUp(self):
        for package in ("PIL", "numpy", "scipy", "sklearn"):
            if importlib.util.find_spec(package) is None:
                self.skipTest(f"{sys.executable} has no {package}")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        import numpy
        self.draw = numpy.random.default_rng(20261118)

    def blobs(self, classes, height=375, width=500):
        """Regions of a few dozen pixels each, as masks have them."""
        import numpy
        from scipy import ndimage
        noise = ndimage.gaussian_filter(self.draw.random((height, width)), 12)
        order = numpy.argsort(numpy.argsort(noise.ravel())).reshape(noise.shape)
        return (order * classes // order.size).astype(numpy.uint8)

    def save(self, name, labels):
        from PIL import Image
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(labels).save(path)
        return path

    def make_map(self, kind, factor, labels):
        import numpy
        from PIL import Image
        run("map", kind, repr(factor), self.save("labels.png", labels), self.folder / "map.png")
        return numpy.asarray(Image.open(self.folder / "map.png")).astype(int)

    def test_maps_of_scribbles_are_those_of_scipy(self):
        import numpy
        from scipy import ndimage
        for factor in (math.e, math.e ** 2, 0.5):
            labels = numpy.full((375, 500), IGNORED, numpy.uint8)
            for _ in range(40):
                y, x = self.draw.integers(370), self.draw.integers(480)
                labels[y:y + 2, x:x + 20] = self.draw.integers(0, 21)
            distances = ndimage.distance_transform_edt((labels == 0) | (labels == IGNORED))
            expected = 255 - numpy.rint(numpy.minimum(255, math.sqrt(factor) * distances)).astype(int)
            difference = numpy.abs(self.make_map("s", factor, labels) - expected)
            self.assertEqual(difference.max(), 0, factor)
            self.assertGreater(len(numpy.unique(expected)), 50)

    def test_maps_of_contours_are_those_of_scipy(self):
        import numpy
        from scipy import ndimage
        labels = self.blobs(3)
        labels[self.blobs(8) == 0] = IGNORED
        mask = (labels != 0) & (labels != IGNORED)
        contours = mask & ~ndimage.binary_erosion(mask, border_value=1)
        expected = numpy.rint(numpy.minimum(255, math.e ** 3 * ndimage.distance_transform_edt(~contours))).astype(int)
        self.assertEqual(numpy.abs(self.make_map("c", math.e ** 6, labels) - expected).max(), 0)
        self.assertGreater(contours.sum(), 1000)

    def test_scores_are_those_of_scikit_learn(self):
        import numpy
        from sklearn import metrics
        truths, predictions = [], []
        for i in range(5):
            truth = self.blobs(6, 120, 170)
            predicted = numpy.where(self.draw.random(truth.shape) < 0.3, self.blobs(7, 120, 170), truth)
            truth[self.blobs(9, 120, 170) == 3] = IGNORED
            self.save(f"truth/{i}.png", truth)
            self.save(f"predicted/{i}.png", predicted)
            truths.append(truth.ravel())
            predictions.append(predicted.ravel())
        truth, predicted = numpy.concatenate(truths), numpy.concatenate(predictions)
        truth, predicted = truth[truth != IGNORED], predicted[truth != IGNORED]
        cells, scores = json.loads(run("score", 8, self.folder / "predicted", self.folder / "truth"))
        ours = numpy.array(cells).reshape(8, 9)
        self.assertEqual(ours[:, :8].tolist(), metrics.confusion_matrix(truth, predicted, labels=range(8)).tolist())
        self.assertEqual(ours[:, 8].sum(), 0)
        iou = metrics.jaccard_score(truth, predicted, labels=range(8), average=None, zero_division=0)
        self.assertAlmostEqual(scores["mean_iou_all"], iou.mean(), 12)
        self.assertAlmostEqual(scores["mean_iou"], iou[:7].mean(), 12)  # class 7 occurs nowhere
        self.assertIsNone(scores["iou"]["class 7"])
        self.assertAlmostEqual(scores["pixel_accuracy"], metrics.accuracy_score(truth, predicted), 12)

    def segment(self, *words):
        ended = subprocess.run([BUILD / "bin" / "tandem", "segment", *map(str, words)], cwd=self.folder, text=True, capture_output=True, timeout=500,
                               env={**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""})
        self.assertEqual(ended.returncode, 0, ended.stderr)
        return ended.stdout

    def test_confusion_matrix_of_an_evaluation_is_that_of_scikit_learn(self):
        """The one that chooses the best model: of a trained one on two ranks, by the masks that it predicts."""
        import numpy
        from PIL import Image
        from sklearn import metrics
        if not (BUILD / "bin" / "tandem-segment").exists():
            self.skipTest("built without torch")
        self.segment("shapes", "voc", "--samples", 12, "--valid-samples", 5)
        masks = {path.stem: numpy.array(Image.open(path)) for path in (self.folder / "voc/SegmentationClassAug").glob("valid_*.png")}
        for name, mask in masks.items():
            mask[self.blobs(5, *mask.shape) == 2] = IGNORED
            self.save(f"voc/SegmentationClassAug/{name}.png", mask)
        self.segment("train", "--data", "voc", *TRAINING)
        self.segment("predict", "--from", "runs/few", "--images", "voc/JPEGImages", "--output", "masks", "--device", "cpu")
        result = json.loads(self.segment("evaluate", "--from", "runs/few", "--whole", "--nproc", 2, "--device", "cpu", "--json").splitlines()[-1])
        truth = numpy.concatenate([masks[name].ravel() for name in sorted(masks)])
        found = numpy.concatenate([numpy.asarray(Image.open(self.folder / f"masks/{name}.png")).ravel() for name in sorted(masks)])
        truth, found = truth[truth != IGNORED], found[truth != IGNORED]
        self.assertEqual((len(masks), len(numpy.unique(truth))), (5, 4))
        self.assertGreater(len(numpy.unique(found)), 1)
        self.assertEqual(result["confusion"], metrics.confusion_matrix(truth, found, labels=range(4)).tolist())
        iou = metrics.jaccard_score(truth, found, labels=range(4), average=None)
        self.assertAlmostEqual(result["mean_iou"], iou.mean(), 12)


if __name__ == "__main__":
    unittest.main()

"""A model that `tandem segment export` has written, loaded by examples/load_segment.py, predicts what ours predicts."""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["TANDEM_SOURCE"])
TANDEM = pathlib.Path(os.environ["TANDEM_BUILD"]) / "bin" / "tandem"
EXAMPLE = SOURCE / "examples" / "load_segment.py"
MISSING = [name for name in ("torch", "safetensors", "numpy", "PIL") if importlib.util.find_spec(name) is None]
SMALL = ("--width", 8, "--crop", 65, "--batch-size", 2, "--max-steps", 20, "--eval-epochs", 0, "--precision", "fp32", "--threads", 1, "--device", "cpu")


def load_example():
    module = importlib.util.spec_from_file_location("load_segment", EXAMPLE)
    example = importlib.util.module_from_spec(module)
    module.loader.exec_module(example)
    return example


@unittest.skipIf(MISSING, f"{sys.executable} has no {' '.join(MISSING)}")
class Exported(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def run_well(self, *command):
        ended = subprocess.run([str(word) for word in command], cwd=self.folder, capture_output=True, text=True, timeout=500,
                               env={**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""})
        self.assertEqual(ended.returncode, 0, ended.stderr)

    def segment(self, *words):
        self.run_well(TANDEM, "segment", *words)

    def check(self, *model):
        """The scores of three images, which ours writes in 16 bits, and the masks."""
        import numpy
        from PIL import Image
        from safetensors.torch import load_file
        self.segment("shapes", "voc", "--samples", 4, "--valid-samples", 2)
        self.segment("train", "--data", "voc", "--numclasses", 4, *SMALL, *model, "--lr", 0.005, "--warmup-epochs", 0, "--name", "few")
        self.segment("export", "--from", "runs/few", "--output", "segmenter")
        images = sorted((self.folder / "voc" / "JPEGImages").glob("*.jpg"))[:3]
        for place, image in enumerate(images):
            image.rename(self.folder / f"{place}.jpg")
        self.segment("predict", "--from", "runs/few", "--images", ".", "--output", "masks", "--scores", "--precision", "fp32", "--device", "cpu")
        example = load_example()
        network = example.load(self.folder / "segmenter")
        for place in range(3):
            found = example.predict(network, Image.open(self.folder / f"{place}.jpg"))
            ours = load_file(self.folder / "masks" / f"{place}.safetensors")["scores"].float()
            self.assertEqual(found.shape, ours.shape)
            self.assertGreater(found.std(dim=(1, 2)).max(), 0.01)  # not the same for every pixel
            self.assertLess((found - ours).abs().max(), 1e-3)
            first, second = found.topk(2, dim=0).values
            is_sure = (first - second > 1e-3).numpy()
            mask = numpy.asarray(Image.open(self.folder / "masks" / f"{place}.png"))
            numpy.testing.assert_array_equal(mask[is_sure], found.argmax(0).numpy()[is_sure])
        return network

    def test_model_of_the_guide_predicts_the_same(self):
        self.check("--layers", 50)
        config = json.loads((self.folder / "segmenter" / "config.json").read_text())
        self.assertEqual((config["head"], config["stride_in"], config["lorm"]), ("aspp", "first", False))

    def test_deeplabv3plus_of_output_stride_16_predicts_the_same(self):
        self.check("--layers", 14, "--model-type", "deeplabv3p", "--output-stride", 16, "--stride-in", "second")

    def test_deeplabv3_of_torchvision_predicts_the_same(self):
        self.check("--layers", 14, "--model-type", "deeplabv3", "--stride-in", "second", "--no-multi-grid")

    def test_sum_of_dilated_convolutions_on_basic_blocks_predicts_the_same(self):
        self.check("--layers", 18, "--model-type", "dilated_sum")

    def test_program_writes_the_mask_that_ours_writes(self):
        import numpy
        from PIL import Image
        self.check("--layers", 14)
        self.run_well(sys.executable, EXAMPLE, "segmenter", "0.jpg", "mask.png")
        ours, theirs = (Image.open(self.folder / path) for path in ("masks/0.png", "mask.png"))
        self.assertGreater((numpy.asarray(ours) == numpy.asarray(theirs)).mean(), 0.999)


if __name__ == "__main__":
    unittest.main()

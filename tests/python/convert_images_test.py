"""A .pth of torchvision or of the guide's repository becomes a file that a segmentation model of ours takes whole."""

import contextlib
import importlib.util
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from torchvision_peer import add_torchvision

TOOL = pathlib.Path(os.environ["TANDEM_SOURCE"]) / "tools" / "convert_ckpt.py"
SEGMENT = pathlib.Path(os.environ["TANDEM_BUILD"]) / "bin" / "tandem-segment"
RUN_DEEPLAB = pathlib.Path(os.environ["TANDEM_BUILD"]) / "tests" / "run_deeplab"
MISSING = [name for name in ("torch", "safetensors") if importlib.util.find_spec(name) is None]

# The names of the guide's repository for those of plain_deeplab.py.
ASPP = {"convs.4.": "global_avg_pool."} | {f"convs.{i}.{j}.": f"aspp{i + 1}.{part}." for i in range(4) for j, part in enumerate(("atrous_conv", "bn"))}
TRUNK = {"backbone.": ""}
LORM = {f"lorm.{name}.": f"layer_lorm.{name}_conv." for name in ("query", "key")} | {"lorm.gamma": "layer_lorm.gamma"}
GUIDE = {
    "aspp": TRUNK | {f"classifier.0.{ours}": f"layer_pred0.{name}" for ours, name in ASPP.items()}
    | {"classifier.0.project.0.": "layer_pred0.conv1.", "classifier.0.project.1.": "layer_pred0.bn1."}
    | {ours: name.replace("layer_lorm", "layer_camatt") for ours, name in LORM.items()},
    "deeplabv3plus": TRUNK | LORM | {f"classifier.0.{ours}": f"layer_pred0.{name}" for ours, name in ASPP.items()}
    | {"classifier.0.project.": "layer_pred0.prject.", "classifier.low.": "reduce.", "classifier.first.": "fuse.",
       "classifier.second.0.": "fuse.3.", "classifier.second.1.": "fuse.4.", "classifier.last.": "classifier."},
}


def renamed(state, names):
    found = {}
    for name, tensor in state.items():
        ours = next(start for start in names if name.startswith(start))
        found[names[ours] + name.removeprefix(ours)] = tensor
    return found


@unittest.skipIf(MISSING, f"{sys.executable} has no {' '.join(MISSING)}")
class ConvertImages(unittest.TestCase):
    def setUp(self):
        import torch
        module = importlib.util.spec_from_file_location("convert_ckpt", TOOL)
        self.tool = importlib.util.module_from_spec(module)
        module.loader.exec_module(self.tool)
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.enterContext(contextlib.chdir(self.folder))
        torch.manual_seed(3)

    def convert(self, *args):
        """Exit code, standard output and standard error."""
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as errors:
            code = self.tool.main(["ckpt.pth", *args])
        return code, out.getvalue(), errors.getvalue()

    def plain_model(self, head, **options):
        import torch
        from plain_deeplab import Deeplab
        model = Deeplab(head, 5, **options)
        with torch.no_grad():
            for tensor in model.state_dict().values():
                if tensor.dim() == 1:
                    tensor.uniform_(0.5, 1.5)
        return model.eval()

    def logits_of_ours(self, head, init, images):
        from safetensors.torch import load_file, save_file
        options = {"classes": 5, "head": head, "lorm": True, "dropout": 0.0, "layers": 14, "width": 8, "stride_in": "first",
                   "output_stride": 8, "multi_grid": True}
        pathlib.Path("options.json").write_text(json.dumps(options))
        save_file({"images": images}, "inputs.safetensors")
        ended = subprocess.run([RUN_DEEPLAB, "--folder=.", f"--init={init}", "--no-train", "--fp32"], check=True, timeout=120,
                               stdout=subprocess.PIPE, text=True)
        self.assertEqual(ended.stdout, "")  # nothing is missing or left out
        return load_file("outputs.safetensors")["logits"]

    def check_guide(self, head, prefix):
        import torch
        model = self.plain_model(head)
        state = {prefix + name: tensor for name, tensor in renamed(model.state_dict(), GUIDE[head]).items()}
        self.assertTrue({prefix + name for name in ("conv1.weight", "layer4.0.bn3.running_var", "layer_pred0.aspp2.atrous_conv.weight",
                                                    "layer_pred0.global_avg_pool.2.running_mean")} <= state.keys())
        torch.save({"epoch": 3, "state_dict": state, "best_pred": 0.5, "optimizer": {"state": {}, "param_groups": [{"lr": 0.1}]}}, "ckpt.pth")
        self.assertEqual(self.convert("model.safetensors")[::2], (0, ""))
        images = torch.randn(1, 3, 33, 33)
        with torch.no_grad():
            expected = model(images)[0]
        torch.testing.assert_close(self.logits_of_ours(head, "model.safetensors", images), expected, rtol=1e-4, atol=1e-4)

    def test_a_checkpoint_of_the_guide_keeps_its_logits(self):
        self.check_guide("aspp", "")

    def test_names_of_a_model_that_was_distributed_are_understood(self):
        self.check_guide("aspp", "module.")

    def test_deeplabv3plus_of_the_guide_keeps_its_logits(self):
        self.check_guide("deeplabv3plus", "")

    def torchvision(self):
        if not add_torchvision():
            self.skipTest("torchvision is not installed")
        import torchvision
        return torchvision

    def run_segment(self, *words):
        """What a run says in its line of the weights."""
        env = {name: value for name, value in os.environ.items() if not name.startswith("CUDA_")} | {"CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
        ended = subprocess.run([SEGMENT, *map(str, words)], env=env, timeout=120, capture_output=True, text=True)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        return "".join(re.findall(r"^weights    (.*)$", ended.stdout, re.M))

    def assert_taken(self, state, *flags, random=""):
        """By `train --init`: all of its tensors; `random` is what the model has besides."""
        from safetensors.torch import load_file
        import torch
        torch.save(state, "ckpt.pth")
        code, _, errors = self.convert("model.safetensors")
        self.assertEqual((code, errors), (0, ""))
        count = len(load_file("model.safetensors"))
        self.run_segment("shapes", "voc", "--samples", 2, "--valid-samples", 1)
        said = self.run_segment("train", "--data", "voc", "--numclasses", 5, "--init", "model.safetensors", "--crop", 33, "--max-steps", 1,
                                "--batch-size", 2, "--precision", "fp32", "--threads", 1, "--device", "cpu", *flags)
        self.assertTrue(said.startswith(f"{count} tensors of model.safetensors"), said)
        self.assertNotIn("left out", said)
        self.assertEqual(set(re.findall(r"initialized at random: (\w+)", said)), {random} - {""}, said)
        return said

    def test_each_model_of_the_guide_is_taken_whole(self):
        small = ("--layers", 14, "--width", 8, "--model_type")
        with_lorm = {"res50_ASPP_lorm": "aspp", "deeplabv3p_lorm": "deeplabv3plus"}
        without = {"deeplabv2": "aspp", "deeplabv3p": "deeplabv3plus"}
        for name, head in (with_lorm | without).items():
            with self.subTest(name):
                state = renamed(self.plain_model(head, lorm=name in with_lorm).state_dict(), GUIDE[head])
                if name == "deeplabv2":
                    state = {key.replace("layer_pred0.", "layer5."): tensor for key, tensor in state.items()}
                    self.assertIn("layer5.aspp1.atrous_conv.weight", state)
                self.assertEqual("layer_lorm.gamma" in state or "layer_camatt.gamma" in state, name in with_lorm)
                said = self.assert_taken({"epoch": 1, "state_dict": state}, *small, name)
                self.assertNotIn("--stride-in", said)
                for path in ("voc", "runs"):
                    shutil.rmtree(path)
                pathlib.Path("model.safetensors").unlink()

    def test_deeplabv3_of_torchvision_is_taken_whole(self):
        state = self.torchvision().models.segmentation.deeplabv3_resnet50(weights=None, weights_backbone=None, num_classes=5, aux_loss=True).state_dict()
        self.assertTrue(any(name.startswith("aux_classifier.") for name in state))
        said = self.assert_taken(state, "--model-type", "deeplabv3", "--stride-in", "second", "--no-multi-grid")
        self.assertNotIn("--stride-in", said)

    def test_a_resnet_of_timm_is_taken_whole_and_the_place_of_its_strides_is_said(self):
        resnet = self.torchvision().models.resnet50(weights=None).state_dict()
        state = {name: tensor for name, tensor in resnet.items() if not name.endswith("num_batches_tracked")}
        said = self.assert_taken({"model": state}, random="classifier")
        self.assertIn("torchvision and timm are for --stride-in second", said)

    def test_a_classifier_of_torchvision_loses_its_last_layer_only(self):
        import torch
        from safetensors.torch import load_file
        state = renamed(self.plain_model("aspp").backbone.state_dict(), {"": ""})
        state["bn1.num_batches_tracked"] = torch.tensor(2**40 + 1)
        torch.save(state | {"fc.weight": torch.zeros(10, 4), "fc.bias": torch.zeros(10)}, "ckpt.pth")
        code, out, errors = self.convert("folder")
        self.assertEqual((code, errors), (0, ""))
        self.assertIn("left out: fc.bias, fc.weight", out)
        found = load_file("folder/model.safetensors")
        self.assertEqual(found.keys(), {f"backbone.{name}" for name in state})
        for name, tensor in state.items():
            self.assertTrue(torch.equal(found[f"backbone.{name}"], tensor), name)
        self.assertEqual([path.name for path in pathlib.Path("folder").iterdir()], ["model.safetensors"])

    def test_what_is_no_model_of_images_is_refused_with_what_it_has(self):
        import torch
        torch.save({"blocks.0.weight": torch.zeros(2), "norm.bias": torch.zeros(2)}, "ckpt.pth")
        code, out, errors = self.convert("model.safetensors")
        self.assertEqual((code, out), (1, ""))
        for fact in ("neither a nanoGPT checkpoint", "nor the weights of a ResNet", "blocks.0.weight, norm.bias", "torch.save(model.state_dict()"):
            self.assertIn(fact, errors)

    def test_a_whole_module_is_converted_if_it_is_trusted(self):
        import torch
        module = torch.nn.Sequential()
        module.add_module("conv1", torch.nn.Conv2d(3, 4, 7, bias=False))
        torch.save(module, "ckpt.pth")
        self.assertIn("--trust", self.convert("model.safetensors")[2])
        self.assertEqual(self.convert("model.safetensors", "--trust")[::2], (0, ""))

    def test_what_is_there_is_not_overwritten(self):
        import torch
        torch.save({"conv1.weight": torch.zeros(1)}, "ckpt.pth")
        pathlib.Path("model.safetensors").write_text("mine")
        code, out, errors = self.convert("model.safetensors")
        self.assertEqual((code, out, errors), (1, "", "error: model.safetensors exists\nhint: name a new file, or a new folder\n"))
        self.assertEqual(pathlib.Path("model.safetensors").read_text(), "mine")


if __name__ == "__main__":
    unittest.main()

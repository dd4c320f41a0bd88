"""A .pth of torchvision or of the guide's repository becomes a file that a segmentation model of ours takes whole."""

import contextlib
import importlib.util
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(os.environ["TANDEM_SOURCE"]) / "tools" / "convert_ckpt.py"
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

    def plain_model(self, head):
        import torch
        from plain_deeplab import Deeplab
        model = Deeplab(head, 5)
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

    def test_what_is_there_is_not_overwritten(self):
        import torch
        torch.save({"conv1.weight": torch.zeros(1)}, "ckpt.pth")
        pathlib.Path("model.safetensors").write_text("mine")
        code, out, errors = self.convert("model.safetensors")
        self.assertEqual((code, out, errors), (1, "", "error: model.safetensors exists\nhint: name a new file, or a new folder\n"))
        self.assertEqual(pathlib.Path("model.safetensors").read_text(), "mine")


if __name__ == "__main__":
    unittest.main()

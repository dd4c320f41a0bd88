"""Our segmentation networks and losses, and those of plain PyTorch and of torchvision, with the same weights through files."""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from torchvision_peer import add_torchvision

RUN_DEEPLAB = pathlib.Path(os.environ["TANDEM_BUILD"]) / "tests" / "run_deeplab"
MISSING = [name for name in ("torch", "safetensors") if importlib.util.find_spec(name) is None]


def options_json(**changed):
    options = {"classes": 5, "head": "aspp", "lorm": True, "dropout": 0.0, "layers": 14, "width": 8, "stride_in": "first",
               "output_stride": 8, "multi_grid": True}
    return json.dumps(options | changed)


def random_inputs(classes, size=33, dtype=None):
    """Images and planes; a scribble here and there, and pseudo labels in rectangles."""
    import torch
    labels = torch.randint(classes, (2, size, size), dtype=torch.uint8).masked_fill_(torch.rand(2, size, size) < 0.8, 255)
    pseudo = torch.zeros(2, size, size, dtype=torch.uint8)
    pseudo[0, 4:20, 3:17], pseudo[1, 10:30, 8:31], pseudo[1, :5, :], pseudo[0, 25:, 25:] = 1, classes - 1, 255, 255
    maps = torch.randint(256, (2, 2, size, size), dtype=torch.uint8).masked_fill_(torch.rand(2, 2, size, size) < 0.3, 0)
    return {"images": torch.randn(2, 3, size, size, dtype=dtype or torch.double), "labels": labels, "pseudo": pseudo,
            "near_scribble": maps[0].contiguous(), "near_contour": maps[1].contiguous()}


def randomize(model):
    """So that every part of it shows in the logits."""
    import torch
    with torch.no_grad():
        for name, tensor in model.state_dict().items():
            if name.endswith(("bn1.weight", "bn2.weight", "bn3.weight", "running_var", "gamma")) or tensor.dim() == 1 and "weight" in name:
                tensor.uniform_(0.5, 1.5)
            elif name.endswith(("bias", "running_mean")):
                tensor.normal_(std=0.2)


def torchvision_models():
    if not add_torchvision():
        raise unittest.SkipTest(f"{sys.executable} has no torchvision")
    import torchvision
    return torchvision.models


@unittest.skipIf(MISSING, f"{sys.executable} has no {' '.join(MISSING)}")
class Deeplab(unittest.TestCase):
    def setUp(self):
        import torch
        torch.manual_seed(11)
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def run_ours(self, state, inputs, options, *flags):
        """What it wrote, and the lines about tensors that did not fit."""
        from safetensors.torch import load_file, save_file
        (self.folder / "options.json").write_text(options)
        save_file({name: tensor.contiguous() for name, tensor in state.items()}, self.folder / "model.safetensors")
        save_file(inputs, self.folder / "inputs.safetensors")
        ended = subprocess.run([RUN_DEEPLAB, f"--folder={self.folder}", *flags], check=True, timeout=120, stdout=subprocess.PIPE, text=True)
        return load_file(self.folder / "outputs.safetensors"), ended.stdout.splitlines()

    def plain_outputs(self, model, inputs, smoothing=0.0, fraction=1.0, with_dice=False):
        import plain_deeplab as plain
        logits, lorm = model(inputs["images"], inputs["pseudo"])
        weights = inputs.get("class_weights")
        terms = {"scribble": plain.cross_entropy(logits, inputs["labels"], weights, 0.0, fraction),
                 "pseudo": plain.cross_entropy(logits, inputs["pseudo"], weights, smoothing, fraction),
                 "entropy_s": plain.entropy(logits, inputs["near_scribble"]),
                 "entropy_c": plain.entropy(logits, inputs["near_contour"]), "lorm": lorm}
        if with_dice:
            terms["dice"] = plain.dice(logits, inputs["labels"])
        sum(total / count for total, count in terms.values()).backward()
        outputs = {"logits": logits} | {f"sum.{name}": term[0] for name, term in terms.items()}
        outputs |= {f"count.{name}": term[1].double() for name, term in terms.items()}
        outputs |= {f"grad.{name}": parameter.grad for name, parameter in model.named_parameters()}
        return outputs | {f"buffer.{name}": buffer for name, buffer in model.named_buffers()}

    def compare(self, ours, theirs, tolerance):
        import torch
        self.assertEqual(ours.keys(), theirs.keys())
        for name, tensor in theirs.items():
            size = max(1.0, tensor.abs().max().item())
            torch.testing.assert_close(ours[name].to(tensor.dtype), tensor.detach(), rtol=tolerance, atol=tolerance * size,
                                       msg=lambda text: f"{name}: {text}")

    def compare_with_plain(self, options, flags=(), tolerance=1e-8, dtype=None, class_weights=None, size=33, **losses):
        import plain_deeplab as plain
        import torch
        model = plain.Deeplab(**options).to(dtype or torch.double)
        randomize(model)
        inputs = random_inputs(options["classes"], size, dtype)
        if class_weights is not None:
            inputs["class_weights"] = torch.tensor(class_weights, dtype=dtype or torch.double)
        ours, messages = self.run_ours(model.state_dict(), inputs, options_json(**options), *flags)
        self.assertEqual(messages, [])
        theirs = self.plain_outputs(model, inputs, **losses)
        self.assertGreater(min(grad.abs().max() for name, grad in theirs.items() if name.startswith("grad.")), 0)
        self.compare(ours, theirs, tolerance)

    def test_the_guides_network_is_that_of_plain_pytorch(self):
        self.compare_with_plain({"head": "aspp", "classes": 5})

    def test_the_guides_network_with_three_blocks_per_stage_too(self):
        self.compare_with_plain({"head": "aspp", "classes": 3, "layers": 50, "width": 4})

    def test_basic_blocks_too(self):
        for layers in (18, 34):
            with self.subTest(layers=layers):
                self.compare_with_plain({"head": "aspp", "classes": 4, "layers": layers, "width": 4})

    def test_deep_networks_too(self):
        for layers in (101, 152):
            with self.subTest(layers=layers):
                self.compare_with_plain({"head": "aspp", "classes": 3, "layers": layers, "width": 2})

    def test_output_stride_16_and_stages_of_one_dilation_too(self):
        for others in ({"output_stride": 16}, {"output_stride": 16, "stride_in": "second"}, {"multi_grid": False},
                       {"output_stride": 16, "multi_grid": False, "stride_in": "second", "layers": 50, "width": 4}):
            with self.subTest(**others):
                self.compare_with_plain({"head": "aspp", "classes": 3, **others})

    def test_deeplabv3_is_that_of_plain_pytorch(self):
        self.compare_with_plain({"head": "deeplabv3", "classes": 4, "layers": 50, "width": 4, "stride_in": "second", "multi_grid": False})

    def test_every_dilation_is_that_of_plain_pytorch(self):
        """On features so large that each kernel has more than its middle on them; V3 has rates up to 36."""
        for head, size in (("aspp", 201), ("deeplabv3plus", 201), ("dilated_sum", 201), ("deeplabv3", 297)):
            with self.subTest(head):
                self.compare_with_plain({"head": head, "classes": 3, "layers": 50, "width": 2}, size=size)

    def test_deeplabv3plus_is_that_of_plain_pytorch(self):
        self.compare_with_plain({"head": "deeplabv3plus", "classes": 4})

    def test_a_sum_of_dilated_convolutions_is_that_of_plain_pytorch(self):
        self.compare_with_plain({"head": "dilated_sum", "classes": 6})

    def test_channels_last_and_fp32_are_too(self):
        import torch
        self.compare_with_plain({"head": "aspp", "classes": 5}, ["--channels-last", "--fp32"], tolerance=1e-4, dtype=torch.float)

    def test_smoothing_class_weights_mining_and_dice_are_too(self):
        self.compare_with_plain({"head": "aspp", "classes": 5}, ["--label-smoothing=0.1", "--mined-fraction=0.5", "--dice"],
                                class_weights=[1.0, 0.5, 2.0, 1.5, 0.25], smoothing=0.1, fraction=0.5, with_dice=True)

    def test_entropy_counts_each_pixel_with_a_weight_though_the_network_is_certain_of_it(self):
        """The guide's code counts the pixels whose term is not 0, here 1 of 3: of the others one class has all the probability, to the bit."""
        import plain_deeplab as plain
        import torch
        model = plain.Deeplab(head="dilated_sum", classes=3).double()
        randomize(model)
        inputs = random_inputs(3)
        inputs["near_scribble"].zero_()[:, 16, 16] = 255
        inputs["near_scribble"][0, 3, 5] = 51
        with torch.no_grad():
            for branch in model.classifier.convs:
                branch.weight.zero_()
            logits = torch.zeros(2, 3, 33, 33, dtype=torch.double)
            logits[0, 0, 16, 16] = logits[1, 1, 16, 16] = 2000
            terms = -(logits.softmax(1) * logits.log_softmax(1)).sum(1) * inputs["near_scribble"]
        total, count = plain.entropy(logits, inputs["near_scribble"])
        self.assertEqual((count.item(), (terms != 0).sum().item()), (3, 1))
        torch.testing.assert_close(total, torch.tensor(3.0, dtype=torch.double).log() / 5)
        with torch.no_grad():
            model.classifier.convs[0].bias[0] = 2000  # of every pixel
        ours, _ = self.run_ours(model.state_dict(), inputs, options_json(head="dilated_sum", classes=3))
        self.assertEqual((ours["sum.entropy_s"].item(), ours["count.entropy_s"].item()), (0, 3))

    def test_a_head_with_other_classes_is_left_out_and_named(self):
        import plain_deeplab as plain
        import torch
        model = plain.Deeplab("aspp", 7).double()
        outputs, messages = self.run_ours(model.state_dict(), random_inputs(5), options_json())
        self.assertEqual(outputs["logits"].shape, torch.Size([2, 5, 33, 33]))
        left_out = sorted(line.removeprefix("left out ") for line in messages if line.startswith("left out "))
        names = sorted(name for name in model.state_dict() if name.startswith("classifier.") and "num_batches" not in name)
        self.assertEqual(left_out, names)
        self.assertEqual(sorted(line.removeprefix("missing ") for line in messages if line.startswith("missing ")), names)

    def test_the_trunk_of_torchvisions_classifier_is_taken(self):
        theirs = torchvision_models().resnet50(weights=None)
        options = options_json(layers=50, width=64, stride_in="second", lorm=False)
        _, messages = self.run_ours(theirs.state_dict(), random_inputs(5), options, "--no-train")
        self.assertEqual([line for line in messages if line.startswith("left out")], ["left out fc.bias", "left out fc.weight"])
        self.assertTrue(all(line.startswith("missing classifier.") for line in messages if line.startswith("missing")))

    def test_logits_and_files_are_those_of_torchvisions_deeplabv3(self):
        import torch
        from safetensors.torch import load_file
        theirs = torchvision_models().segmentation.deeplabv3_resnet50(weights=None, weights_backbone=None, num_classes=5).double().eval()
        randomize(theirs)
        inputs = random_inputs(5, size=48)
        options = options_json(head="deeplabv3", layers=50, width=64, stride_in="second", multi_grid=False, lorm=False)
        ours, messages = self.run_ours(theirs.state_dict(), inputs, options, "--no-train")
        self.assertEqual(messages, [])
        with torch.no_grad():
            self.compare(ours, {"logits": theirs(inputs["images"])["out"]}, 1e-8)
        exported = load_file(self.folder / "exported.safetensors")
        theirs.load_state_dict(exported, strict=True)

    def test_our_plain_trunk_is_torchvisions(self):
        """Stride 32 has no head in torchvision's file; a head of 1x1 convolutions shows the features."""
        import torch
        theirs = torchvision_models().resnet50(weights=None).double().eval()
        randomize(theirs)
        kept = {}
        theirs.layer4.register_forward_hook(lambda module, given, result: kept.update(features=result))
        inputs = random_inputs(5, size=64)
        with torch.no_grad():
            theirs(inputs["images"])
            features = kept["features"]
        weights = [torch.randn(5, 2048, 3, 3, dtype=torch.double) / 100 for _ in range(4)]
        head = {f"classifier.convs.{i}.weight": weight for i, weight in enumerate(weights)}
        head |= {f"classifier.convs.{i}.bias": torch.zeros(5, dtype=torch.double) for i in range(4)}
        options = options_json(head="dilated_sum", layers=50, width=64, stride_in="second", output_stride=32, lorm=False)
        ours, _ = self.run_ours(theirs.state_dict() | head, inputs, options, "--no-train")
        from torch.nn import functional
        logits = sum(functional.conv2d(features, weight, padding=rate, dilation=rate) for weight, rate in zip(weights, (6, 12, 18, 24)))
        expected = functional.interpolate(logits, (64, 64), mode="bilinear", align_corners=True)
        self.compare(ours, {"logits": expected}, 1e-8)


if __name__ == "__main__":
    unittest.main()

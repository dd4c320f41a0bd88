"""Files go between Tandem and the Python package safetensors, in both directions, with equal values and equal bytes."""

import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["TANDEM_SOURCE"])
DOUBLE_TENSORS = pathlib.Path(os.environ["TANDEM_BUILD"]) / "tests" / "double_tensors"
TYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64")


class Safetensors(unittest.TestCase):
    def setUp(self):
        if any(importlib.util.find_spec(name) is None for name in ("torch", "safetensors")):
            self.skipTest(f"{sys.executable} has no torch or no safetensors")
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def double(self, tensors, *checkpoints):
        """What Tandem makes of the file, and the bytes of it."""
        from safetensors.torch import load_file, save_file
        save_file(tensors, self.folder / "from.safetensors")
        command = [DOUBLE_TENSORS, self.folder / "from.safetensors", self.folder / "to.safetensors", *checkpoints]
        subprocess.run(command, check=True, timeout=120)
        return load_file(self.folder / "to.safetensors"), (self.folder / "to.safetensors").read_bytes()

    def test_values_of_every_type_come_back_doubled(self):
        import torch
        tensors = {name: torch.tensor([[0, 1, 2], [3, 40, 50]]).to(getattr(torch, name)) for name in TYPES}
        doubled, _ = self.double(tensors)
        self.assertEqual(set(doubled), set(TYPES))
        for name, tensor in tensors.items():
            self.assertEqual(doubled[name].dtype, tensor.dtype)
            self.assertTrue(torch.equal(doubled[name], tensor + tensor), name)
        self.assertEqual(doubled["int16"].tolist(), [[0, 2, 4], [6, 80, 100]])

    def test_odd_shapes_and_names_come_back(self):
        import torch
        tensors = {"": torch.ones(2), "权重/\"w\"\n": torch.tensor(1.5), "a" * 300: torch.zeros(3, 0, 2),
                   "deep": torch.ones(*[1] * 20), "nan": torch.tensor([float("nan"), float("inf"), -0.0])}
        doubled, _ = self.double(tensors)
        for name, tensor in tensors.items():
            self.assertTrue(torch.equal(doubled[name].view(torch.uint8 if tensor.dim() else torch.float32),
                                        (tensor + tensor).view(torch.uint8 if tensor.dim() else torch.float32)), name)

    def test_files_have_the_bytes_that_the_package_would_write(self):
        import torch
        from safetensors.torch import save
        tensors = {f"{name}.{i}": torch.arange(i).to(getattr(torch, name)) for name in TYPES for i in (3, 1, 2)}
        tensors["\x01\x1f\x7f\u2028é\\/"] = torch.ones(2)
        _, written = self.double(tensors)
        self.assertEqual(written, save({name: tensor + tensor for name, tensor in tensors.items()}, {"format": "pt"}))

    def test_no_tensors_at_all(self):
        self.assertEqual(self.double({})[0], {})

    def test_tied_weights_of_a_python_model_are_known_by_both_names(self):
        import torch
        from safetensors.torch import load_model, save_model
        model = torch.nn.Sequential(torch.nn.Linear(2, 2, bias=False), torch.nn.Linear(2, 2, bias=False))
        model[1].weight = model[0].weight
        save_model(model, str(self.folder / "tied.safetensors"))
        subprocess.run([DOUBLE_TENSORS, self.folder / "tied.safetensors", self.folder / "to.safetensors"], check=True, timeout=120)
        expected = (model[0].weight * 2).tolist()
        load_model(model, str(self.folder / "to.safetensors"))
        self.assertEqual(model[1].weight.tolist(), expected)

    def test_checkpoints_open_as_the_document_says(self):
        import torch
        page = (SOURCE / "docs" / "checkpoints.md").read_text()
        self.double({"w": torch.arange(3.0)}, self.folder / "checkpoints")
        code = re.search(r"```python\n(.*?)```", page, re.S)[1]
        names = {}
        exec(code.replace('"checkpoints"', f'"{self.folder}/checkpoints"'), names)  # the page's own text
        self.assertEqual(names["weights"]["w"].tolist(), [0, 2, 4])
        self.assertEqual(names["step"], 120)
        tree = re.search(r"```text\n(.*?)```", page, re.S)[1]
        shown = {line.split()[0].rstrip("/") for line in tree.splitlines()}
        self.assertEqual(shown, {"checkpoints", *(path.name for path in (self.folder / "checkpoints").rglob("*"))})

    def test_the_document_shows_code_that_is_tested(self):
        page = (SOURCE / "docs" / "checkpoints.md").read_text()
        tested = (SOURCE / "src" / "checkpoint" / "checkpoint_test.cpp").read_text()
        code = re.search(r"```cpp\n(.*?)```", page, re.S)[1]
        self.assertIn(re.sub(r"\s+", " ", code).strip(), re.sub(r"\s+", " ", tested))


if __name__ == "__main__":
    unittest.main()

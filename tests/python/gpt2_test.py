"""Our GPT-2 and that of transformers give the same, with weights that went from one to the other through files."""

import importlib.util
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

RUN_GPT2 = pathlib.Path(os.environ["TANDEM_BUILD"]) / "tests" / "run_gpt2"


def random_model(draw, **fixed):
    """A GPT-2 of transformers with weights wide enough that every part of it shows in the logits."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel
    heads, vocabulary = draw.randint(1, 4), draw.randint(5, 300)
    settings = {"n_layer": draw.randint(1, 4), "n_head": heads, "n_embd": heads * draw.choice((2, 3, 8, 16)),
                "n_positions": draw.randint(8, 64), "vocab_size": vocabulary, "bos_token_id": None, "eos_token_id": None,
                "activation_function": draw.choice(("gelu_new", "gelu"))}
    torch.manual_seed(draw.randrange(1 << 30))
    model = GPT2LMHeadModel(GPT2Config(**(settings | fixed))).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.2)
    return model


def logits_of(model, ids):
    import torch
    with torch.no_grad():
        return model(ids).logits


class Gpt2(unittest.TestCase):
    def setUp(self):
        if any(importlib.util.find_spec(name) is None for name in ("torch", "safetensors", "transformers")):
            self.skipTest(f"{sys.executable} has no torch, no safetensors or no transformers")
        import transformers
        transformers.logging.disable_progress_bar()
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def save(self, name, model, **ids):
        from safetensors.torch import save_file
        model.save_pretrained(self.folder / name)
        save_file(ids, self.folder / name / "ids.safetensors")
        return self.folder / name

    def run_gpt2(self, *args):
        return subprocess.run([RUN_GPT2, *args], check=True, timeout=120, stdout=subprocess.PIPE, text=True).stdout

    def test_logits_are_those_of_transformers_in_both_directions(self):
        import torch
        from safetensors.torch import load_file
        from transformers import GPT2LMHeadModel
        draw = random.Random(7)
        models = [random_model(draw) for _ in range(24)]
        ids = [torch.randint(model.config.vocab_size, (3, draw.randint(1, model.config.n_positions))) for model in models]
        folders = [self.save(str(i), model, ids=ids[i]) for i, model in enumerate(models)]
        self.run_gpt2(*folders)
        for folder, model, input_ids in zip(folders, models, ids):
            theirs = logits_of(model, input_ids)
            ours = load_file(folder / "ours" / "logits.safetensors")["logits"]
            torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4, msg=lambda text: f"{model.config}{text}")
            again = GPT2LMHeadModel.from_pretrained(folder / "ours").eval()
            self.assertTrue(torch.equal(logits_of(again, input_ids), theirs), model.config)


if __name__ == "__main__":
    unittest.main()

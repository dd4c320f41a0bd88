"""Our GPT-2 and that of transformers give the same, with weights that went from one to the other through files."""

import importlib.util
import json
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


def texts_of(model, prompts, stop, **settings):
    """What transformers adds to each prompt alone, without the token that ends it."""
    import torch
    from transformers import NoRepeatNGramLogitsProcessor
    size = settings.pop("no_repeat_ngram", 0)
    texts = []
    for ids in prompts:
        # Ours forbids repetitions in what is new. Theirs would forbid to quote the prompt as well.
        alone = [lambda all_ids, scores: NoRepeatNGramLogitsProcessor(size)(all_ids[:, len(ids):], scores)] if size else []
        new = model.generate(ids[None], attention_mask=torch.ones_like(ids[None]), do_sample=False, eos_token_id=stop, pad_token_id=stop,
                             logits_processor=alone, **settings)[0, len(ids):].tolist()
        texts.append(new[:new.index(stop)] if stop in new else new)
    return texts


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

    def run_gpt2(self, folders, **options):
        """The texts of each folder that holds prompts."""
        flags = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
        command = [RUN_GPT2, *(f"--folder={folder}" for folder in folders), *flags]
        printed = subprocess.run(command, check=True, timeout=120, stdout=subprocess.PIPE, text=True).stdout
        return [json.loads(line) for line in printed.splitlines()]

    def test_logits_are_those_of_transformers_in_both_directions(self):
        import torch
        from safetensors.torch import load_file
        from transformers import GPT2LMHeadModel
        draw = random.Random(7)
        models = [random_model(draw) for _ in range(24)]
        ids = [torch.randint(model.config.vocab_size, (3, draw.randint(1, model.config.n_positions))) for model in models]
        folders = [self.save(str(i), model, ids=ids[i]) for i, model in enumerate(models)]
        self.run_gpt2(folders)
        for folder, model, input_ids in zip(folders, models, ids):
            theirs = logits_of(model, input_ids)
            ours = load_file(folder / "ours" / "logits.safetensors")["logits"]
            torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4, msg=lambda text: f"{model.config}{text}")
            again = GPT2LMHeadModel.from_pretrained(folder / "ours").eval()
            self.assertTrue(torch.equal(logits_of(again, input_ids), theirs), model.config)

    def compare_texts(self, ours, theirs):
        """Of random models, each with a token that often comes first, so that texts end at all lengths."""
        import torch
        draw = random.Random(11)
        models = [random_model(draw, n_positions=64) for _ in range(6)]
        all_prompts, folders = [], []
        for i, model in enumerate(models):
            model.transformer.wte.weight.data[3] += 0.05
            all_prompts.append([torch.randint(model.config.vocab_size, (draw.randint(1, 40),)) for _ in range(4)])
            folders.append(self.save(str(i), model, **{str(k): ids for k, ids in enumerate(all_prompts[-1])}))
        found = self.run_gpt2(folders, max_new_tokens=20, stop_token=3, **ours)
        expected = [texts_of(*pair, 3, max_new_tokens=20, **theirs) for pair in zip(models, all_prompts)]
        self.assertEqual(found, expected)
        self.assertGreater(len({len(text) for texts in found for text in texts}), 1)

    def test_greedy_texts_of_a_padded_batch_are_those_of_each_prompt_alone(self):
        self.compare_texts({}, {})

    def test_least_length_and_repetitions_are_as_in_transformers(self):
        self.compare_texts({"min_new_tokens": 5, "no_repeat_ngram": 2}, {"min_new_tokens": 5, "no_repeat_ngram": 2})

    def test_beam_search_is_that_of_transformers(self):
        self.compare_texts({"beams": 4}, {"num_beams": 4})

    def test_beam_search_with_all_its_options_is_that_of_transformers(self):
        self.compare_texts({"beams": 3, "length_penalty": 0.3, "no_repeat_ngram": 3, "min_new_tokens": 4},
                           {"num_beams": 3, "length_penalty": 0.3, "no_repeat_ngram": 3, "min_new_tokens": 4})


if __name__ == "__main__":
    unittest.main()

"""A checkpoint of nanoGPT becomes a folder that transformers and Tandem load, with the logits of the script that saved it."""

import contextlib
import importlib.util
import io
import json
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import unittest
import zipfile

TOOL = pathlib.Path(os.environ["TANDEM_SOURCE"]) / "tools" / "convert_ckpt.py"
RUN_GPT2 = pathlib.Path(os.environ["TANDEM_BUILD"]) / "tests" / "run_gpt2"
SIZES = {"n_layer": 2, "n_head": 4, "n_embd": 32, "block_size": 16, "vocab_size": 50}


def random_state(bias):
    """Weights by nanoGPT's names, wide enough that every part of the model shows in the logits."""
    import torch
    torch.manual_seed(5)
    width = SIZES["n_embd"]
    layers = {"ln_f": (width,)}
    for i in range(SIZES["n_layer"]):
        layers |= {f"h.{i}.ln_1": (width,), f"h.{i}.attn.c_attn": (3 * width, width), f"h.{i}.attn.c_proj": (width, width),
                   f"h.{i}.ln_2": (width,), f"h.{i}.mlp.c_fc": (4 * width, width), f"h.{i}.mlp.c_proj": (width, 4 * width)}
    state = {"transformer.wte.weight": 0.1 * torch.randn(SIZES["vocab_size"], width),
             "transformer.wpe.weight": 0.1 * torch.randn(SIZES["block_size"], width)}
    for name, shape in layers.items():
        state[f"transformer.{name}.weight"] = 0.3 * torch.randn(shape) + (len(shape) == 1)
        if bias:
            state[f"transformer.{name}.bias"] = 0.3 * torch.randn(shape[0])
    return state | {"lm_head.weight": state["transformer.wte.weight"]}


def nanogpt_logits(state, ids, gelu="none"):
    """The forward pass of nanoGPT's model.py; its GELU is the exact one."""
    import torch
    from torch.nn import functional

    def linear(x, name):
        return functional.linear(x, state[f"transformer.{name}.weight"], state.get(f"transformer.{name}.bias"))

    def norm(x, name):
        return functional.layer_norm(x, (x.size(-1),), state[f"transformer.{name}.weight"], state.get(f"transformer.{name}.bias"), 1e-5)

    length = ids.size(1)
    x = state["transformer.wte.weight"][ids] + state["transformer.wpe.weight"][:length]
    for i in range(SIZES["n_layer"]):
        q, k, v = (part.unflatten(-1, (SIZES["n_head"], -1)).transpose(1, 2)
                   for part in linear(norm(x, f"h.{i}.ln_1"), f"h.{i}.attn.c_attn").chunk(3, -1))
        scores = (q @ k.mT / k.size(-1) ** 0.5).masked_fill(torch.ones(length, length).triu(1).bool(), -torch.inf)
        x = x + linear((scores.softmax(-1) @ v).transpose(1, 2).flatten(2), f"h.{i}.attn.c_proj")
        x = x + linear(functional.gelu(linear(norm(x, f"h.{i}.ln_2"), f"h.{i}.mlp.c_fc"), approximate=gelu), f"h.{i}.mlp.c_proj")
    return norm(x, "ln_f") @ state["lm_head.weight"].T


class ConvertCkpt(unittest.TestCase):
    def setUp(self):
        if any(importlib.util.find_spec(name) is None for name in ("torch", "safetensors", "transformers")):
            self.skipTest(f"{sys.executable} has no torch, no safetensors or no transformers")
        module = importlib.util.spec_from_file_location("convert_ckpt", TOOL)
        self.tool = importlib.util.module_from_spec(module)
        module.loader.exec_module(self.tool)
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.enterContext(contextlib.chdir(self.folder))

    def save(self, state, args=None, **more):
        """As the guides' script saves it."""
        import torch
        args = {"bias": "transformer.ln_f.bias" in state, "dropout": 0.25, **SIZES} if args is None else args
        torch.save({"model": state, "optimizer": {"state": {0: {"step": torch.tensor(3.0)}}}, "model_args": args, "iter_num": 30,
                    "best_val_loss": torch.tensor(2.5), "config": {"device": "cuda"}} | more, "ckpt.pt")

    def convert(self, *flags, source="ckpt.pt", target="out"):
        """Exit code, standard output and standard error."""
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as errors:
            code = self.tool.main([source, target, *flags])
        return code, out.getvalue(), errors.getvalue()

    def assert_refused(self, sentence, hint, *flags, **paths):
        before = sorted(self.folder.rglob("*"))
        self.assertEqual(self.convert(*flags, **paths), (1, "", f"error: {sentence}\nhint: {hint}\n"))
        self.assertEqual(sorted(self.folder.rglob("*")), before)

    def logits(self, ids):
        """Of transformers and of Tandem."""
        import torch
        import transformers
        from safetensors.torch import load_file, save_file
        transformers.logging.disable_progress_bar()
        model, notes = transformers.GPT2LMHeadModel.from_pretrained("out", output_loading_info=True)
        self.assertEqual((set(notes["missing_keys"]) - {"lm_head.weight"}, set(notes["unexpected_keys"])), (set(), set()))
        with torch.no_grad():
            theirs = model.eval()(ids).logits
        save_file({"ids": ids}, "out/ids.safetensors")
        subprocess.run([RUN_GPT2, "--folder=out"], check=True, timeout=120)
        return theirs, load_file("out/ours/logits.safetensors")["logits"]

    def expect_logits(self, expected, ids):
        import torch
        theirs, ours = self.logits(ids)
        torch.testing.assert_close(theirs, expected, rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(ours, expected, rtol=1e-5, atol=1e-5)

    def check_conversion(self, bias, prefix, gelu, *flags):
        import torch
        state = random_state(bias)
        masks = {f"transformer.h.{i}.attn.bias": torch.ones(1, 1, 16, 16).tril() for i in range(2)}
        self.save({prefix + name: weight for name, weight in (state | masks).items()}, {"bias": bias, "dropout": 0.25, **SIZES})
        self.assertEqual(self.convert(*flags)[::2], (0, ""))
        ids = torch.randint(50, (3, 16))
        self.expect_logits(nanogpt_logits(state, ids, gelu), ids)

    def test_logits_are_those_of_nanogpt(self):
        self.check_conversion(True, "", "none")

    def test_a_model_without_biases_keeps_its_logits(self):
        self.check_conversion(False, "_orig_mod.", "none")

    def test_names_of_a_model_that_was_compiled_and_distributed_are_understood(self):
        self.check_conversion(True, "module._orig_mod.", "none")

    def test_a_script_with_the_other_gelu_is_an_option(self):
        self.check_conversion(True, "_orig_mod.module.", "tanh", "--gelu", "tanh")

    def save_pickled(self, change, **options):
        """A folder as transformers saved it once; returns the model."""
        import torch
        import transformers
        torch.manual_seed(3)
        model = transformers.GPT2LMHeadModel(transformers.GPT2Config(n_layer=2, n_head=4, n_embd=32, n_positions=16, vocab_size=50,
                                                                     bos_token_id=None, eos_token_id=None, initializer_range=0.3))
        pathlib.Path("hf").mkdir()
        model.config.save_pretrained("hf")
        torch.save(change(model.state_dict()), "hf/pytorch_model.bin", **options)
        return model.eval()

    def check_pickled(self, change, source="hf", **options):
        import torch
        model = self.save_pickled(change, **options)
        code, printed, errors = self.convert(source=source)
        self.assertEqual((code, errors), (0, ""))
        ids = torch.randint(50, (3, 16))
        with torch.no_grad():
            self.expect_logits(model(ids).logits, ids)

    def test_a_pickled_folder_of_transformers_keeps_its_logits(self):
        self.check_pickled(lambda state: state)

    def test_the_file_in_it_may_be_named_and_be_as_old_as_gpt2s(self):
        import torch
        masks = {f"h.{i}.attn.bias": torch.ones(1, 1, 16, 16).tril() for i in range(2)}
        plain = lambda state: {name.removeprefix("transformer."): weight for name, weight in state.items() if name != "lm_head.weight"}
        self.check_pickled(lambda state: plain(state) | masks, "hf/pytorch_model.bin", _use_new_zipfile_serialization=False)

    def test_a_pickled_folder_in_shards_is_one_file_afterwards(self):
        import torch
        state = self.save_pickled(lambda state: {}).state_dict()
        pathlib.Path("hf/pytorch_model.bin").unlink()
        files = {name: f"pytorch_model-0000{1 + i % 2}-of-00002.bin" for i, name in enumerate(state)}
        for file in set(files.values()):
            torch.save({name: state[name] for name in state if files[name] == file}, f"hf/{file}")
        pathlib.Path("hf/pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": files}))
        self.assertEqual(self.convert(source="hf")[::2], (0, ""))
        from safetensors.torch import load_file
        self.assertEqual(set(load_file("out/model.safetensors")), set(state) - {"lm_head.weight"})

    def test_a_folder_without_weights_or_settings_is_refused(self):
        self.save_pickled(lambda state: {"a": 1})
        self.assert_refused("hf/pytorch_model.bin is not a dictionary of tensors", "name the folder of a model that Hugging Face saved",
                            source="hf")
        pathlib.Path("hf/pytorch_model.bin").unlink()
        self.assertEqual(self.convert(source="hf")[0], 1)
        pathlib.Path("hf/config.json").unlink()
        self.assertIn("config.json", self.convert(source="hf")[2])

    def test_settings_are_those_of_the_script(self):
        self.save(random_state(True))
        code, printed, _ = self.convert()
        self.assertEqual(code, 0)
        self.assertEqual(printed.splitlines()[0], "out: GPT-2, 2 layers, width 32, context 16, vocabulary 50")
        config = json.loads(pathlib.Path("out/config.json").read_text())
        expected = {"n_layer": 2, "n_head": 4, "n_embd": 32, "n_positions": 16, "vocab_size": 50, "activation_function": "gelu",
                    "resid_pdrop": 0.25, "embd_pdrop": 0.25, "attn_pdrop": 0.25, "bos_token_id": None, "eos_token_id": None}
        self.assertEqual({name: config[name] for name in expected}, expected)

    def test_half_precision_is_written_in_fp32_with_the_same_values(self):
        import torch
        from safetensors.torch import load_file
        state = random_state(True)
        self.save({name: weight.bfloat16() for name, weight in state.items()})
        self.convert()
        written = load_file("out/model.safetensors")
        self.assertEqual(len(written), len(state) - 1)
        for name, weight in written.items():
            expected = state[name].bfloat16().float()
            self.assertTrue(torch.equal(weight, expected.T if "c_" in name and weight.dim() == 2 else expected), name)

    def test_the_files_of_the_tokenizer_come_along(self):
        self.save(random_state(True))
        pathlib.Path("other").mkdir()
        for name in ("vocab.json", "merges.txt"):
            pathlib.Path(name).write_text(f"{name} of the script")
            pathlib.Path("other", name).write_text(f"another {name}")
        self.assertEqual(self.convert()[1].count("\n"), 1)
        self.convert("--tokenizer", "other", target="second")
        for name in ("vocab.json", "merges.txt"):
            self.assertEqual(pathlib.Path("out", name).read_text(), f"{name} of the script")
            self.assertEqual(pathlib.Path("second", name).read_text(), f"another {name}")

    def test_a_folder_without_tokenizer_says_what_it_lacks(self):
        self.save(random_state(True))
        pathlib.Path("vocab.json").write_text("{}")
        code, printed, _ = self.convert()
        self.assertEqual(code, 0)
        self.assertRegex(printed.splitlines()[1], "^out .*tokenizer.json, or vocab.json and merges.txt")
        self.assertEqual(sorted(os.listdir("out")), ["config.json", "model.safetensors"])
        self.assert_refused(". has neither tokenizer.json nor vocab.json with merges.txt",
                            "name a folder that holds a tokenizer, as Hugging Face saves it", "--tokenizer", ".", target="second")

    def test_an_empty_folder_is_filled_and_any_other_left_alone(self):
        self.save(random_state(True))
        pathlib.Path("out").mkdir()
        self.assertEqual(self.convert()[0], 0)
        self.assert_refused("out is not empty", "name a new folder, or empty this one")
        self.assert_refused("ckpt.pt is a file", "name a new folder", target="ckpt.pt")
        self.assert_refused("cannot write no/out: No such file or directory", "check the parent folder, its permissions and the free space",
                            target="no/out")

    def test_nothing_is_left_when_writing_fails_half_way(self):
        self.save(random_state(True))
        pathlib.Path("tokenizer.json").write_text("{}")

        def full(*_):
            raise OSError(28, "No space left on device")
        self.tool.shutil = type(sys)("shutil")
        self.tool.shutil.copyfile = full
        self.assert_refused("cannot write out: No space left on device", "check the parent folder, its permissions and the free space")

    def test_what_is_no_checkpoint_is_refused(self):
        self.assert_refused("cannot read ckpt.pt: No such file or directory", "name a file of torch.save, such as ckpt.pt or resnet50.pth")
        self.save(random_state(True))
        whole = pathlib.Path("ckpt.pt").read_bytes()
        with zipfile.ZipFile("other.zip", "w") as archive:
            archive.writestr("readme", "text")
        bad_text, bad_pickle = whole.replace(b"model_args", b"model\xffargs"), whole.replace(b"\x80\x02}q", b"\x80\x02\xffq")
        for content, *flags in ((b"",), (b"some text",), (pickle.dumps({"model": 1}),), (whole[:len(whole) // 2],),
                                (pathlib.Path("other.zip").read_bytes(),), (bad_text,), (bad_pickle, "--trust")):
            pathlib.Path("ckpt.pt").write_bytes(content)
            self.assert_refused("ckpt.pt is not a torch.save file, or is truncated",
                                "give the complete file, such as ckpt.pt or resnet50.pth", *flags)

    def test_code_in_a_checkpoint_runs_only_if_it_is_trusted(self):
        self.save(random_state(True), config=RunsCode())
        self.assert_refused("ckpt.pt contains more than tensors, numbers and strings",
                            "if you trust its author, add --trust: loading can then run arbitrary code")
        self.assertEqual(self.convert("--trust")[0], 0)
        self.assertTrue(pathlib.Path("code-ran").is_dir())

    def test_a_class_of_the_script_is_missed_by_name(self):
        gone = type("GPTConfig", (), {"__module__": "version12"})
        sys.modules["version12"] = type(sys)("version12")
        sys.modules["version12"].GPTConfig = gone
        self.save(random_state(True), config=gone())
        del sys.modules["version12"]
        self.assert_refused("ckpt.pt needs code that cannot be imported: No module named 'version12'",
                            'save it again where that code is: torch.save(model.state_dict(), "weights.pth"), '
                            "or only tensors, numbers and strings", "--trust")

    def test_missing_parts_are_named(self):
        import torch
        hint = "give a nanoGPT checkpoint, with model and model_args"
        self.save(random_state(True), model=None)
        self.assert_refused("ckpt.pt has no dictionary model", hint)
        torch.save({"model": {}, "model_args": "text"}, "ckpt.pt")
        self.assert_refused("ckpt.pt has no dictionary model_args", hint)
        for content, found in (({"model": {}}, "a dictionary with model"), ([1, 2], "of type list"), ({}, "of type dict")):
            torch.save(content, "ckpt.pt")
            self.assert_refused("ckpt.pt is neither a nanoGPT checkpoint (model, model_args) nor the weights of a ResNet (conv1.weight): "
                                f"it is {found}",
                                'save the weights alone, torch.save(model.state_dict(), "weights.pth"), or a nanoGPT checkpoint')

    def test_settings_that_make_no_model_are_refused(self):
        number = "it must be an integer of at least 1"
        for changed, sentence, hint in (
                ({"n_head": 5}, "n_embd of model_args is 32 and n_head 5", "n_embd must be a multiple of n_head"),
                ({"vocab_size": None}, "vocab_size of model_args is None", number),
                ({"n_layer": 0}, "n_layer of model_args is 0", number),
                ({"dropout": 1.5}, "dropout of model_args is 1.5", "it must be at least 0 and less than 1")):
            self.save(random_state(True), SIZES | changed)
            self.assert_refused(f"ckpt.pt: {sentence}", hint)
        self.save(random_state(True), {name: size for name, size in SIZES.items() if name != "block_size"})
        self.assert_refused("ckpt.pt: block_size of model_args is missing", number)

    def test_weights_that_do_not_fit_are_listed(self):
        import torch
        state = random_state(True)
        del state["transformer.h.1.mlp.c_fc.bias"]
        state["transformer.wpe.weight"] = torch.zeros(8, 32)
        state["transformer.ln_f.bias"] = torch.zeros(32, dtype=torch.int64)
        state["transformer.h.2.ln_1.weight"] = torch.zeros(32)
        state["transformer.extra"] = "text"
        state[7] = torch.zeros(1)
        self.save(state)
        self.assert_refused(
            "ckpt.pt: the weights do not match model_args: transformer.h.1.mlp.c_fc.bias [128] is missing; "
            "transformer.wpe.weight is [8, 32] and should be [16, 32]; transformer.ln_f.bias is of type torch.int64; "
            "transformer.h.2.ln_1.weight [32] is unexpected; transformer.extra is of type str; 7 [1] is unexpected",
            "only models with the architecture of nanoGPT can be converted")

    def test_a_head_of_its_own_is_refused(self):
        state = random_state(True)
        state["lm_head.weight"] = state["lm_head.weight"] + 1
        self.save(state)
        self.assert_refused("ckpt.pt: the weights do not match model_args: lm_head.weight is not tied to the token embedding",
                            "only models with the architecture of nanoGPT can be converted")

    def test_it_runs_as_a_command(self):
        self.save(random_state(True))
        command = [sys.executable, TOOL, "ckpt.pt", "out"]
        subprocess.run(command, check=True, timeout=120, stdout=subprocess.DEVNULL)
        self.assertEqual(subprocess.run(command, timeout=120, stderr=subprocess.DEVNULL).returncode, 1)

    def test_a_python_without_torch_is_named(self):
        result = subprocess.run([sys.executable, "-I", "-S", TOOL, "ckpt.pt", "out"], capture_output=True, text=True, timeout=120)
        self.assertEqual((result.returncode, result.stderr), (
            1, f"error: {sys.executable} has no torch\nhint: run this with a Python that has it, such as .venv/bin/python of Tandem\n"))


class RunsCode:
    def __reduce__(self):
        return os.mkdir, ("code-ran",)


if __name__ == "__main__":
    unittest.main()

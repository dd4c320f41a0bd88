#!/usr/bin/env python3
"""Converts checkpoints of torch.save to safetensors, for `--init` and for transformers. Needs torch.

Usage: convert_ckpt.py CKPT FOLDER [--tokenizer FOLDER] [--gelu erf|tanh] [--trust]. On invalid input nothing is written, and the exit
code is 1. CKPT is one of
- the ckpt.pt of a nanoGPT script: FOLDER gets config.json, model.safetensors and the files of the tokenizer;
- a folder, as Hugging Face saves it, whose pytorch_model.bin, or whose shards in pytorch_model.bin.index.json, are converted;
- the .pth of a ResNet or of a segmentation model, of torchvision, timm or the guide's repository (or a dictionary with state_dict or model): FOLDER
  gets model.safetensors, by the names of torchvision. A FOLDER that ends in .safetensors is that file itself.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import pickle
import re
import shutil
import struct
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

try:
    import torch
except ModuleNotFoundError:
    sys.exit(f"error: {sys.executable} has no torch\nhint: run this with a Python that has it, such as .venv/bin/python of Tandem")

PREFIXES = re.compile(r"^(?:_orig_mod\.|module\.)+")  # of torch.compile and of DistributedDataParallel
MASKS = (".attn.bias", ".attn.masked_bias")  # constant buffers saved by older scripts
MATRICES = ("c_attn.weight", "c_proj.weight", "c_fc.weight")
SIZES = ("n_layer", "n_head", "n_embd", "block_size", "vocab_size")
END_OF_TEXT = 50256  # in the vocabulary of GPT-2
OLD_FORMAT = pickle.dumps(0x1950A86A20F9469CFC6C, protocol=2)  # torch before 1.6, such as the published files of GPT-2
PICKLED, PICKLED_INDEX = "pytorch_model.bin", "pytorch_model.bin.index.json"
TOKENIZER_FILES = ("tokenizer.json", "vocab.json", "merges.txt")
SAVE_AGAIN = 'save it again where that code is: torch.save(model.state_dict(), "weights.pth"), or only tensors, numbers and strings'
ACTIVATIONS = {"erf": "gelu", "tanh": "gelu_new"}

# Of the guide's segmentation models (res50_ASPP_lorm, deeplabv2, deeplabv3p, deeplabv3p_lorm), and of ResNets alone: our names, which
# are torchvision's where it has such a part.
IMAGE_NAMES = ((r"(conv1|bn1|layer[1-4])\.", r"backbone.\1."),
               (r"layer(?:_pred0|5)\.aspp(\d)\.atrous_conv\.", lambda match: f"classifier.0.convs.{int(match[1]) - 1}.0."),
               (r"layer(?:_pred0|5)\.aspp(\d)\.bn\.", lambda match: f"classifier.0.convs.{int(match[1]) - 1}.1."),
               (r"layer(?:_pred0|5)\.global_avg_pool\.", "classifier.0.convs.4."),
               (r"layer(?:_pred0|5)\.(?:conv1|prject\.0)\.", "classifier.0.project.0."),
               (r"layer(?:_pred0|5)\.(?:bn1|prject\.1)\.", "classifier.0.project.1."),
               (r"reduce\.", "classifier.low."),
               (r"fuse\.([01])\.", r"classifier.first.\1."),
               (r"fuse\.([34])\.", lambda match: f"classifier.second.{int(match[1]) - 3}."),
               (r"classifier\.(weight|bias)$", r"classifier.last.\1"),
               (r"layer_(?:camatt|lorm)\.(query|key)_conv\.", r"lorm.\1."),
               (r"layer_(?:camatt|lorm)\.gamma$", "lorm.gamma"))
CLASSIFIERS = ("fc.", "aux_classifier.")  # which segmentation does not need

Weights = dict[str, torch.Tensor]


class Refused(Exception):
    def __init__(self, sentence: str, hint: str) -> None:
        super().__init__(f"error: {sentence}\nhint: {hint}")


def load_checkpoint(path: Path, trust: bool) -> object:
    """Memory-mapped, since two thirds of it are optimizer state, but for the old format, which cannot be."""
    try:
        with path.open("rb") as file:
            is_old = file.read(len(OLD_FORMAT)) == OLD_FORMAT
    except OSError as error:
        raise Refused(f"cannot read {path}: {error.strerror}", "name a file of torch.save, such as ckpt.pt or resnet50.pth") from error
    try:
        loaded = torch.load(path, map_location="cpu", weights_only=not trust, mmap=not is_old)
        return loaded.state_dict() if isinstance(loaded, torch.nn.Module) else loaded
    except (AttributeError, ImportError) as error:
        raise Refused(f"{path} needs code that cannot be imported: {error}", SAVE_AGAIN) from error
    except pickle.UnpicklingError as error:
        if not trust:
            raise Refused(f"{path} contains more than tensors, numbers and strings",
                          "if you trust its author, add --trust: loading can then run arbitrary code") from error
    except Exception:  # torch raises errors of any type, even OSError, for an invalid file
        pass
    raise Refused(f"{path} is not a torch.save file, or is truncated", "give the complete file, such as ckpt.pt or resnet50.pth")


def check_known(path: Path, checkpoint: object) -> None:
    """Refuses what is neither of a text script nor an image model."""
    if isinstance(checkpoint, dict) and "model_args" in checkpoint:
        return
    keys = [str(key) for key in checkpoint] if isinstance(checkpoint, dict) else []
    found = f"a dictionary with {', '.join(keys[:5])}{' and more' if len(keys) > 5 else ''}" if keys else f"of type {type(checkpoint).__name__}"
    raise Refused(f"{path} is neither a nanoGPT checkpoint (model, model_args) nor the weights of a ResNet (conv1.weight): it is {found}",
                  'save the weights alone, torch.save(model.state_dict(), "weights.pth"), or a nanoGPT checkpoint')


def part(path: Path, checkpoint: object, name: str) -> dict:
    found = checkpoint.get(name) if isinstance(checkpoint, dict) else None
    if not isinstance(found, dict):
        raise Refused(f"{path} has no dictionary {name}", "give a nanoGPT checkpoint, with model and model_args")
    return found


def check_settings(path: Path, settings: dict) -> None:
    for name in SIZES:
        size = settings.get(name, "missing")
        if type(size) is not int or size < 1:
            raise Refused(f"{path}: {name} of model_args is {size}", "it must be an integer of at least 1")
    width, heads, dropout = settings["n_embd"], settings["n_head"], settings.get("dropout", 0.0)
    if width % heads != 0:
        raise Refused(f"{path}: n_embd of model_args is {width} and n_head {heads}", "n_embd must be a multiple of n_head")
    if not isinstance(dropout, (int, float)) or not 0 <= dropout < 1:
        raise Refused(f"{path}: dropout of model_args is {dropout}", "it must be at least 0 and less than 1")


def expected_shapes(settings: dict) -> dict[str, tuple[int, ...]]:
    width = settings["n_embd"]
    block = {"ln_1": (width,), "attn.c_attn": (3 * width, width), "attn.c_proj": (width, width),
             "ln_2": (width,), "mlp.c_fc": (4 * width, width), "mlp.c_proj": (width, 4 * width)}
    layers = {f"transformer.h.{i}.{name}": shape for i in range(settings["n_layer"]) for name, shape in block.items()}
    layers["transformer.ln_f"] = (width,)
    shapes = {"transformer.wte.weight": (settings["vocab_size"], width), "transformer.wpe.weight": (settings["block_size"], width)}
    for name, shape in layers.items():
        shapes[f"{name}.weight"] = shape
        if settings.get("bias", True):
            shapes[f"{name}.bias"] = shape[:1]
    return shapes


def differences(weights: dict[str, object], shapes: dict[str, tuple[int, ...]]) -> list[str]:
    """The differences between the weights and the expected shapes."""
    found = [f"{name} {list(shape)} is missing" for name, shape in shapes.items() if name not in weights]
    for name, weight in weights.items():
        if not isinstance(weight, torch.Tensor) or not weight.is_floating_point():
            found.append(f"{name} is of type {getattr(weight, 'dtype', type(weight).__name__)}")
        elif name not in shapes:
            found.append(f"{name} {list(weight.shape)} is unexpected")
        elif weight.shape != shapes[name]:
            found.append(f"{name} is {list(weight.shape)} and should be {list(shapes[name])}")
    return found


def read_weights(path: Path, state: dict[str, object], settings: dict) -> Weights:
    """By their plain names, in nanoGPT's shapes."""
    plain = {PREFIXES.sub("", str(name)): weight for name, weight in state.items()}
    weights = {name: weight for name, weight in plain.items() if not name.endswith(MASKS)}
    shapes = expected_shapes(settings)
    if "lm_head.weight" in weights:
        shapes["lm_head.weight"] = shapes["transformer.wte.weight"]
    wrong = differences(weights, shapes)
    head = weights.pop("lm_head.weight", None)
    if not wrong and head is not None and not torch.equal(head, weights["transformer.wte.weight"]):
        wrong.append("lm_head.weight is not tied to the token embedding")
    if wrong:
        raise Refused(f"{path}: the weights do not match model_args: {'; '.join(wrong)}",
                      "only models with the architecture of nanoGPT can be converted")
    return weights


def as_hugging_face(weights: Weights) -> Weights:
    """In the layout of GPT2LMHeadModel: matrices of (inputs, outputs), biases everywhere."""
    converted = {}
    for name, weight in weights.items():
        converted[name] = weight.t() if name.endswith(MATRICES) else weight
        bias = name.replace(".weight", ".bias")
        if bias not in weights and not name.endswith(("wte.weight", "wpe.weight")):
            converted[bias] = torch.zeros(weight.shape[0])
    return converted


def config_json(settings: dict, gelu: str) -> str:
    end = END_OF_TEXT if settings["vocab_size"] > END_OF_TEXT else None
    dropout = settings.get("dropout", 0.0)
    config = {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "n_layer": settings["n_layer"], "n_head": settings["n_head"],
              "n_embd": settings["n_embd"], "n_positions": settings["block_size"], "vocab_size": settings["vocab_size"],
              "activation_function": ACTIVATIONS[gelu], "resid_pdrop": dropout, "embd_pdrop": dropout, "attn_pdrop": dropout,
              "layer_norm_epsilon": 1e-5, "bos_token_id": end, "eos_token_id": end}
    return json.dumps(config, indent=2) + "\n"


def write_safetensors(path: Path, weights: Weights) -> None:
    """In fp32, but for counters, without the package safetensors, which may not be installed."""
    header, end = {"__metadata__": {"format": "pt"}}, 0
    ordered = sorted(weights.items(), key=lambda item: item[1].is_floating_point())  # so that all are aligned
    for name, weight in ordered:
        kind, size = ("F32", 4) if weight.is_floating_point() else ("I64", 8)
        begin, end = end, end + size * weight.numel()
        header[name] = {"dtype": kind, "shape": list(weight.shape), "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, weight in ordered:
            dense = weight.detach().to(torch.float if weight.is_floating_point() else torch.long).contiguous()
            file.write(ctypes.string_at(dense.data_ptr(), dense.element_size() * dense.numel()))


def find_tokenizer(folder: Path) -> list[Path]:
    """The files of the tokenizer; empty if incomplete."""
    files = [folder / name for name in TOKENIZER_FILES if (folder / name).is_file()]
    names = {file.name for file in files}
    return files if "tokenizer.json" in names or {"vocab.json", "merges.txt"} <= names else []


def check_target(folder: Path) -> None:
    if folder.suffix == ".safetensors":
        if folder.exists():
            raise Refused(f"{folder} exists", "name a new file, or a new folder")
    elif folder.exists() and not folder.is_dir():
        raise Refused(f"{folder} is a file", "name a new folder")
    elif folder.is_dir() and any(folder.iterdir()):
        raise Refused(f"{folder} is not empty", "name a new folder, or empty this one")


def write_folder(folder: Path, weights: Weights, config: str = "", tokenizer: Sequence[Path] = ()) -> None:
    """A path that ends in .safetensors is the file of the weights itself."""
    target = folder.resolve()
    try:
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as unfinished:
            model = Path(unfinished) / "model"
            model.mkdir()
            write_safetensors(model / "model.safetensors", weights)
            if target.suffix == ".safetensors":
                (model / "model.safetensors").rename(target)
                return
            if config:
                (model / "config.json").write_text(config)
            for file in tokenizer:
                shutil.copyfile(file, model / file.name)
            model.rename(target)
    except OSError as error:
        raise Refused(f"cannot write {folder}: {error.strerror}", "check the parent folder, its permissions and the free space") from error


def pickled_files(folder: Path) -> list[Path]:
    """pytorch_model.bin, or the shards that its index lists."""
    if (folder / PICKLED).is_file():
        return [folder / PICKLED]
    try:
        shards = json.loads((folder / PICKLED_INDEX).read_text())["weight_map"].values()
    except (OSError, ValueError, KeyError, AttributeError) as error:
        raise Refused(f"{folder} has no {PICKLED}, and no {PICKLED_INDEX} that lists shards", "name a folder with one of them") from error
    return [folder / Path(shard).name for shard in sorted(set(shards))]


def read_pickled(folder: Path, trust: bool) -> Weights:
    """By the names of the file, without the masks; they are checked when the model is loaded."""
    weights = {}
    for path in pickled_files(folder):
        state = load_checkpoint(path, trust)
        if not isinstance(state, dict) or not all(isinstance(weight, torch.Tensor) for weight in state.values()):
            raise Refused(f"{path} is not a dictionary of tensors", "name the folder of a model that Hugging Face saved")
        weights |= {name: weight for name, weight in state.items() if not name.endswith(MASKS)}
    table = weights.get("transformer.wte.weight")
    if table is not None and "lm_head.weight" in weights and torch.equal(weights["lm_head.weight"], table):
        del weights["lm_head.weight"]  # tied
    return weights


def convert_folder(options: argparse.Namespace, source: Path, tokenizer: list[Path]) -> None:
    try:
        config = (source / "config.json").read_text()
        settings = json.loads(config)
    except (OSError, ValueError) as error:
        raise Refused(f"{source} has no config.json that can be read", "name the folder of a model that Hugging Face saved") from error
    weights = read_pickled(source, options.trust)
    write_folder(options.folder, weights, config, tokenizer)
    print(f"{options.folder}: {settings.get('model_type', 'a model')}, {len(weights)} tensors, "
          f"{sum(weight.numel() for weight in weights.values())} numbers")


def image_state(checkpoint: object) -> dict[str, object] | None:
    """The weights, by their plain names, if they are those of a ResNet or of a segmentation model on one."""
    if not isinstance(checkpoint, dict):
        return None
    for state in (checkpoint, checkpoint.get("state_dict"), checkpoint.get("model")):
        plain = {PREFIXES.sub("", str(name)): weight for name, weight in state.items()} if isinstance(state, dict) else {}
        if plain.keys() & {"conv1.weight", "backbone.conv1.weight"}:
            return plain
    return None


def image_name(name: str) -> str:
    for pattern, ours in IMAGE_NAMES:
        renamed, count = re.subn(f"^{pattern}", ours, name)
        if count:
            return renamed
    return name


def convert_image_model(options: argparse.Namespace, state: dict[str, object]) -> None:
    wrong = [name for name, weight in state.items() if not isinstance(weight, torch.Tensor)]
    if wrong:
        raise Refused(f"{options.ckpt}: {', '.join(wrong[:5])} is not a tensor", "give a dictionary of tensors, or one with state_dict or model")
    left_out = sorted(name for name in state if name.startswith(CLASSIFIERS))
    weights = {image_name(name): weight for name, weight in state.items() if name not in left_out}
    write_folder(options.folder, weights)
    print(f"{options.folder}: {len(weights)} tensors, {sum(weight.numel() for weight in weights.values())} numbers"
          + (f"; left out: {', '.join(left_out)}" if left_out else ""))


def convert(options: argparse.Namespace) -> None:
    check_target(options.folder)
    is_folder = options.ckpt.is_dir() or options.ckpt.name == PICKLED
    checkpoint = None if is_folder else load_checkpoint(options.ckpt, options.trust)
    if state := image_state(checkpoint):
        return convert_image_model(options, state)
    if not is_folder:
        check_known(options.ckpt, checkpoint)
    convert_text_model(options, checkpoint)


def convert_text_model(options: argparse.Namespace, checkpoint: object) -> None:
    """`checkpoint` is that of a script, or None for a folder of Hugging Face."""
    if options.folder.suffix == ".safetensors":
        raise Refused(f"{options.folder} is the name of a file", "name a folder: a model of text is more than its weights")
    source = options.ckpt if options.ckpt.is_dir() else options.ckpt.parent
    tokenizer = find_tokenizer(options.tokenizer or source)
    if options.tokenizer and not tokenizer:
        raise Refused(f"{options.tokenizer} has neither tokenizer.json nor vocab.json with merges.txt",
                      "name a folder that holds a tokenizer, as Hugging Face saves it")
    if options.ckpt.is_dir() or options.ckpt.name == PICKLED:
        convert_folder(options, source, tokenizer)
    else:
        convert_script(options, checkpoint, tokenizer)
    if not tokenizer:
        print(f"{options.folder} has no tokenizer: add tokenizer.json, or vocab.json and merges.txt, before "
              "`tandem summarize` uses it")


def convert_script(options: argparse.Namespace, checkpoint: object, tokenizer: list[Path]) -> None:
    settings = part(options.ckpt, checkpoint, "model_args")
    check_settings(options.ckpt, settings)
    weights = read_weights(options.ckpt, part(options.ckpt, checkpoint, "model"), settings)
    write_folder(options.folder, as_hugging_face(weights), config_json(settings, options.gelu), tokenizer)
    print(f"{options.folder}: GPT-2, {settings['n_layer']} layers, width {settings['n_embd']}, context {settings['block_size']}, "
          f"vocabulary {settings['vocab_size']}")


def main(args: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ckpt", type=Path, metavar="CKPT", help="checkpoint saved by torch.save, or a folder with pytorch_model.bin")
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="output folder; must be new or empty. For images, also a new FILE.safetensors")
    parser.add_argument("--tokenizer", type=Path, metavar="FOLDER",
                        help="folder with tokenizer.json, or vocab.json and merges.txt (default: the folder of CKPT)")
    parser.add_argument("--gelu", choices=tuple(ACTIVATIONS), default="erf", help="the GELU variant of the script (default: erf, as in nanoGPT)")
    parser.add_argument("--trust", action="store_true", help="load CKPT even if it contains more than tensors, which can run arbitrary code")
    try:
        convert(parser.parse_args(args))
    except Refused as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

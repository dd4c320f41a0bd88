"""Every command line of guide 002, as it prints them and with `tandem segment train` in place of `train.py`; the weights of --init."""

import re
import shutil
import sys
import unittest

from segment_test import SHORT, SegmentTest
from support import TANDEM

# With these two lines as train.py, the guide's lines, scripts and .vscode/launch.json run as they are: docs/segment.md quotes them.
TRAIN_PY = """import os, sys
os.execvp("tandem-segment", ["tandem-segment", "train", *sys.argv[1:]])
"""
OTHER = ("--layers 14 --numclasses 4 --model_path None --model_type res50_ASPP_lorm --shrink_factor 1 --l_segs 1 --l_pesudo 1 --l_lorm 1 "
         "--label_smooth 0.1 --l_ds 1 --l_dc 1 --dataset_path voc --dataset ScribblePseudoDsDc --train_path pascal_2012_scribble "
         "--pesudo_path bmp_ws_train_aug_dataset --distancemap_s distance_s --distancemap_c distance_c --workers 1 --batchsize 2 --epochs 1 "
         "--chk_interval 5 --val_epoch 0 --lr 1e-3 --warmup_epoch 0 --wdecay 5e-4 --momentum 0.9 --logdir ./log/ "
         "--width 8 --crop 65 --max-steps 1 --precision fp32 --threads 1")
VS_CODE = "RANK=0 WORLD_SIZE=1 LOCAL_RANK=0 MASTER_ADDR=localhost MASTER_PORT=12355"

# A line of the guide, [OTHER] for its [其他参数], and the ranks that it trains on.
LINES = {
    "torchrun --nproc_per_node=2 --standalone train.py --distributed [OTHER]": 2,
    "torchrun --nproc_per_node=4 --standalone train.py --distributed [OTHER]": 4,
    "python -m torch.distributed.launch --nproc_per_node=2 --use_env train.py --distributed [OTHER]": 2,
    "python train.py --layers 50 --model_type res50_ASPP_lorm [OTHER] --layers 50": 1,
    "export NCCL_DEBUG=INFO; export CUDA_LAUNCH_BLOCKING=1; python train.py --distributed --local_rank=0 [OTHER]": 1,
    f"{VS_CODE} python train.py --distributed --local_rank 0 --layers 50 --model_type res50_ASPP_lorm [OTHER]": 1,
    "bash train_torchrun.sh": 2,
    "bash train_ddp.sh": 2,
    # What its sections on flags, on troubles and on older launchers tell to change.
    "NCCL_TIMEOUT=3600 torchrun --nproc_per_node=2 --master_port=29511 train.py --distributed [OTHER]": 2,
    "torchrun --nproc_per_node=2 train.py --distributed --world_size 2 --dist_url env:// [OTHER] --batchsize 1": 2,
    "python -m torch.distributed.launch --nproc_per_node=2 train.py --distributed [OTHER]": 2,
    "python train.py [OTHER] --model_path weights.safetensors --device cpu": 1,
    "python train.py --world_size 2 [OTHER]": 2,
}
# The same with ours, which docs/segment.md and docs/guides.md name.
OURS = {
    "tandem segment train --nproc 2 --distributed [OTHER]": 2,
    "tandem run --nproc_per_node=2 --standalone tandem-segment train --distributed [OTHER]": 2,
    "tandem run --nproc_per_node=2 --use_env tandem-segment train --distributed [OTHER]": 2,
    "tandem launch --nproc_per_node=2 --use_env tandem-segment train --distributed [OTHER]": 2,
    "tandem launch --nproc_per_node=2 tandem-segment train --distributed [OTHER]": 2,
    "tandem segment train --nproc 1 --layers 50 --model_type res50_ASPP_lorm [OTHER]": 1,
    "tandem segment train --distributed --local_rank=0 [OTHER]": 1,
    f"{VS_CODE} tandem segment train --distributed --local_rank 0 [OTHER]": 1,
}


class Guide(SegmentTest):
    def setUp(self):
        super().setUp()
        self.run_well("shapes", "voc", "--samples", 8, "--valid-samples", 1)
        self.run_well("prepare", "--data", "voc")
        self.run_tandem("shims", "links", check=True)
        self.write("train.py", TRAIN_PY)
        for name in ("python", "python3"):
            self.write(f"python/{name}", f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        self.env["PATH"] = f"{self.folder}/links:{self.folder}/python:{TANDEM.parent}:{self.env['PATH']}"
        self.env["PYTHONPATH"] = f"{self.folder}/links/python"

    def type(self, line: str):
        return self.run_tandem("-c", line.replace("[OTHER]", OTHER), program="sh")

    def assert_trains(self, lines: dict[str, int]) -> None:
        for line, ranks in lines.items():
            with self.subTest(line):
                result = self.type(line)
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertEqual(re.findall(r"^batch .* x (\d) ranks?$", result.stdout, re.M), [str(ranks)])
                self.assertRegex(result.stdout, r"(?m)^replicas +equal" if ranks > 1 else r"(?m)^done +1 step")
                self.assertEqual(len(list((self.folder / "log").glob("*/model/config.json"))), 2, "a run and `latest`")
                shutil.rmtree(self.folder / "log")

    def test_its_lines_train_as_they_are(self):
        self.write("train_torchrun.sh", f"torchrun --nproc_per_node=2 --standalone train.py --distributed {OTHER}\n")
        self.write("train_ddp.sh", f"python -m torch.distributed.launch --nproc_per_node=2 --use_env train.py --distributed {OTHER}\n")
        self.run_well("train", "--data", "voc", "--numclasses", 4, *SHORT, "--name", "run")
        self.run_well("export", "--from", "runs/run", "--output", "exported")
        shutil.copy(self.folder / "exported/model.safetensors", self.folder / "weights.safetensors")
        self.assert_trains(LINES)

    def test_its_lines_train_with_our_names(self):
        self.assert_trains(OURS)

    def test_its_device_is_an_error_without_a_gpu(self):
        self.assert_error(self.type("tandem segment train --device cuda [OTHER]"), 10, "--device cuda", "no GPU", "`--device cpu`")

    def test_what_contradicts_is_refused(self):
        for flags, facts in {
                "--distributed --local_rank 0 --nproc 2": ("--local_rank 0", "--nproc 2"),
                "--world_size abc": ("--world_size is 'abc'",), "--logdir": ("--logdir needs a value",), "--batchsize x": ("--batchsize is 'x'",),
                f"--dist_url tcp://localhost:23456 {OTHER}": ("tcp://localhost:23456", "env://")}.items():
            self.assert_error(self.type(f"tandem segment train {flags}"), 2, *facts)
        result = self.type("torchrun --nproc_per_node=2 train.py --world_size 4 [OTHER]")
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("--world_size 4, but the launcher started 2 ranks", result.stderr)

    def test_labels_that_no_term_uses_are_noted(self):
        """D12: the guide's script reads pseudo labels and maps without a word, and learns from the scribbles alone."""
        def note(*flags):
            result = self.type(f"tandem segment train [OTHER] --l_lorm 0 --device cpu {' '.join(flags)}")
            self.assertEqual(result.returncode, 0, result.stderr)
            return re.findall("^note .*$", result.stdout, re.M)
        self.assertEqual(note(), [])
        (said,) = note("--l_pesudo 0", "--l_ds 0", "--l_dc 0")
        for fact in ("pseudo labels (--l-pseudo, --l-lorm)", "(--l-ds)", "(--l-dc)"):
            self.assertIn(fact, said)

    def test_pseudo_labels_alone_are_the_labels(self):
        shutil.rmtree(self.folder / "voc/pascal_2012_scribble")
        result = self.type("tandem segment train [OTHER] --dataset PseudoOnly --l_pesudo 0 --l_lorm 0 --l_ds 0 --l_dc 0 --device cpu")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"step +1/1 .* loss [\d.]+")

    def test_names_of_scalars_are_in_tensorboard(self):
        result = self.type("tandem segment train [OTHER] --device cpu")
        self.assertEqual(result.returncode, 0, result.stderr)
        (events,) = (path for path in (self.folder / "log").glob("*/events.out.tfevents.*") if not path.parent.is_symlink())
        content = events.read_bytes()
        for name in (b"val/val_iou", b"train/l_ds", b"train/l_dc", b"train/l_segs", b"samples"):
            self.assertIn(name, content)


class Init(SegmentTest):
    """Of a file that fits, `weights` says what was left out; one that does not fit is refused with the flag that does."""

    def setUp(self):
        super().setUp()
        self.run_well("shapes", "voc", "--samples", 4, "--valid-samples", 1)
        self.train = ("train", "--data", "voc", "--numclasses", 4, *SHORT, "--batch-size", 2, "--max-steps", 1)
        self.run_well(*self.train, "--name", "run")
        self.run_well("export", "--from", "runs/run", "--output", "exported")

    def said(self, *flags) -> str:
        return "".join(re.findall(r"^weights    (.*)$", self.run_well(*self.train, *flags), re.M))

    def refused(self, *flags) -> str:
        result = self.segment(*self.train, *flags)
        self.assertNotEqual(result.returncode, 0, flags)
        return "".join(re.findall(r"^(?:error|hint): .*\n", result.stderr, re.M))

    def test_of_a_pickled_file_says_how_to_convert_it(self):
        for name, begin in (("new.pth", b"PK\x03\x04"), ("old.pth", b"\x80\x02\x8a\x0a\x6c\xfc")):
            (self.folder / name).write_bytes(begin + bytes(100))
            for flag in ("--init", "--model_path"):
                said = self.refused(flag, name)
                self.assertIn(f"{name} is a pickled file of PyTorch", said)
                self.assertIn(f"python tools/convert_ckpt.py {name} {name[:3]}.safetensors", said)

    def test_of_a_folder_without_a_model_says_so(self):
        self.assertIn("there is no model in voc", self.refused("--init", "voc"))

    def test_of_another_size_names_the_flags(self):
        self.assertIn("hint: give --layers 14, or", self.refused("--init", "exported", "--layers", 18))
        self.assertIn("hint: give --layers 14 --width 8, or", self.refused("--init", "runs/run", "--layers", 50, "--width", 16))

    def test_of_other_strides_is_refused_and_of_other_dilations_said(self):
        for path in ("exported", "exported/model.safetensors", "runs/run"):
            self.assertIn("hint: give --stride-in first", self.refused("--init", path, "--stride-in", "second"))
        said = self.said("--init", "exported", "--output-stride", 16, "--no-multi-grid")
        self.assertIn("trained with --output-stride 8, which is 16 here", said)
        self.assertIn("trained with --multi-grid, which is off here", said)
        self.assertNotIn("trained with", self.said("--init", "exported"))

    def test_of_other_classes_says_both_numbers(self):
        self.assertIn("; the head is left out: it has 4 classes, this model 7; ", self.said("--init", "exported", "--numclasses", 7))
        self.run_well(*self.train, "--model-type", "deeplabv3", "--name", "v3")
        self.assertIn("; the last layer of the head is left out: it has 4 classes, this model 7; left out: classifier.4.bias",
                      self.said("--init", "runs/v3", "--model-type", "deeplabv3", "--numclasses", 7))
        self.assertIn("the head is left out: it is of another kind", self.said("--init", "runs/v3"))

    def test_settings_out_of_range_are_named_as_they_were_given(self):
        self.assertIn("output-stride is 32", self.refused("--output-stride", 32))
        self.assertIn("warmup-epochs is 100, which are 200 steps, and the run has 1", self.refused("--warmup-epochs", 100))
        said = self.refused("--augment.scale-min", 3)
        self.assertIn("scale-min is 3, more than scale-max, which is 2", said)
        self.assertIn("--augment.scale-max 3", said)
        self.assertIn("momentum is 1, and must be below 1", self.refused("--momentum", 1))


if __name__ == "__main__":
    unittest.main()

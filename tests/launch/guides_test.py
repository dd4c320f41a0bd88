"""Every command line of the five guides, as their readers type it, after `tandem run` or through a link."""

import importlib.util
import json
import os
import pathlib
import shlex
import subprocess
import sys
import unittest

from support import LIMIT, TANDEM, LaunchTest

HERE = pathlib.Path(__file__).resolve().parent

# Stands for every script of the guides: leaves what arrived in a file for its rank.
SCRIPT = """
import json, os, sys
told = {"arguments": sys.argv[1:], "environment": dict(os.environ), "path": sys.path}
name = os.environ.get("RANK", "alone")
json.dump(told, open(f"{sys.argv[0]}.{name}.{os.getpid()}.json", "w"))
"""

TRAIN_TORCHRUN_SH = "torchrun --nproc_per_node=2 --standalone train.py --distributed\n"
TRAIN_DDP_SH = "python -m torch.distributed.launch --nproc_per_node=2 --use_env train.py --distributed\n"
# As guide 004 says: counts the GPUs and calls torchrun.
TRAIN_DDP_PY = """
import glob, subprocess, sys
gpus = len(glob.glob("/dev/nvidia[0-9]*"))
sys.exit(subprocess.call(["torchrun", f"--nproc_per_node={gpus}", "--standalone", "version12.py"]))
"""
# Ultralytics' way (guide 000): a script that wants several GPUs starts workers unless it is one.
SELF_STARTING = """
import os, subprocess, sys
if "LOCAL_RANK" not in os.environ:
    sys.exit(subprocess.call(["torchrun", "--nproc_per_node=2", sys.argv[0]]))
""" + SCRIPT
# What `accelerate config` writes for guide 003's answers.
ACCELERATE_CONFIG = """compute_environment: LOCAL_MACHINE
debug: false
distributed_type: MULTI_GPU
downcast_bf16: 'no'
enable_cpu_affinity: false
gpu_ids: all
machine_rank: 0
main_training_function: main
mixed_precision: fp16
num_machines: 1
num_processes: 2
rdzv_backend: static
same_network: true
tpu_env: []
tpu_use_cluster: false
tpu_use_sudo: false
use_cpu: false
"""


class GuideTest(LaunchTest):
    gpus = 2

    def setUp(self):
        super().setUp()
        if subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode != 0:
            self.skipTest("no right to make a mount namespace, where GPUs are pretended")
        del self.env["CUDA_VISIBLE_DEVICES"]
        for name in ("train.py", "version12.py", "dino_yolo.py", "kaggle_dual_gpu_setup.py", "kaggle_training_wrapper.py", "stage3_inference.py"):
            self.write(name, SCRIPT)
        self.write("train_torchrun.sh", TRAIN_TORCHRUN_SH)
        self.write("train_ddp.sh", TRAIN_DDP_SH)
        self.write("train_ddp.py", TRAIN_DDP_PY)
        self.write("accelerate_config.yaml", ACCELERATE_CONFIG)
        self.run_tandem("shims", "links", check=True)
        for name in ("python", "python3"):
            self.write(f"python/{name}", f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        self.env["PATH"] = f"{self.folder}/links:{self.folder}/python:{TANDEM.parent}:{self.env['PATH']}"

    def type(self, line: str, **env: str) -> list[dict]:
        """What each rank received, for a command line that succeeds."""
        for old in self.folder.glob("*.json"):
            old.unlink()
        command = ["unshare", "-rm", "--propagation", "private", "sh", HERE / "fake_gpus.sh", str(self.gpus), "sh", "-c", line]
        self.result = subprocess.run(command, cwd=self.folder, env={**self.env, **env}, capture_output=True, text=True, timeout=4 * LIMIT)
        self.assertEqual(self.result.returncode, 0, f"{line}\n{self.result.stderr}")
        told = [json.loads(path.read_text()) for path in self.folder.glob("*.json")]
        return sorted(told, key=lambda rank: int(rank["environment"].get("RANK", 0)))

    def assert_arrives(self, line: str, ranks: int, arguments: str = "", **env: str) -> list[dict]:
        told = self.type(line, **env)
        self.assertEqual(len(told), ranks, line)
        for number, rank in enumerate(told):
            self.assertEqual(rank["arguments"], shlex.split(arguments), line)
            seen = [rank["environment"].get(name) for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE")]
            self.assertEqual(seen, [str(number), str(number), str(ranks), str(ranks)], line)
        ports = {(rank["environment"]["MASTER_ADDR"], rank["environment"]["MASTER_PORT"]) for rank in told}
        self.assertEqual(len(ports), 1, line)
        return told


class Guides(GuideTest):
    def test_000_devices(self):
        both = self.assert_arrives("tandem run --device 0,1 dino_yolo.py", 2)
        self.assertEqual(both[1]["environment"]["CUDA_VISIBLE_DEVICES"], "0,1")
        one = self.assert_arrives("tandem run --device 0 dino_yolo.py", 1)
        self.assertEqual(one[0]["environment"]["CUDA_VISIBLE_DEVICES"], "0")
        self.assert_arrives("tandem run python dino_yolo.py", 2)  # every visible GPU

    def test_000_a_module_of_the_project_is_found_from_anywhere(self):
        self.write("project/ultralytics/__init__.py", "")
        # A worker that is started in another folder, as DDP's temporary script is.
        self.write("project/dino_yolo.py", "import subprocess, sys\nsys.exit(subprocess.call([sys.executable, '-c', 'import ultralytics'], cwd='/'))\n")
        self.type("tandem run project/dino_yolo.py")
        self.type("cd project && tandem run dino_yolo.py")

    def test_000_a_script_that_starts_its_own_workers_runs_once_a_rank(self):
        self.write("dino_yolo.py", SELF_STARTING)
        self.assert_arrives("tandem run --device 0,1 dino_yolo.py", 2)
        self.assert_arrives("python dino_yolo.py", 2)  # by itself, through the link

    def test_001_kaggle(self):
        kaggle = {"KAGGLE_KERNEL_RUN_TYPE": "Interactive"}
        self.assert_arrives("tandem run -n 1 python kaggle_dual_gpu_setup.py", 1, **kaggle)
        for stage in ("complete", "stage1", "stage2"):
            told = self.assert_arrives(f"tandem run python kaggle_training_wrapper.py {stage}", 2, stage, **kaggle)
            self.assertEqual([told[1]["environment"][name] for name in ("NCCL_P2P_DISABLE", "NCCL_IB_DISABLE")], ["1", "1"])
        self.assertIn("NCCL_P2P_DISABLE=1", self.result.stderr)
        arguments = ("--dit_checkpoint /kaggle/working/trained_models/best_model --vavae_config vavae_config.yaml "
                     "--output_dir /kaggle/working/generated_images --user_ids 1 2 3 4 5 --num_samples_per_user 4 --seed 42")
        self.assert_arrives(f"tandem run --device 0 python stage3_inference.py {arguments}", 1, arguments, **kaggle)

    def test_001_accelerate_launch_works_on_kaggle(self):
        self.assert_arrives("accelerate launch version12.py", 2, KAGGLE_KERNEL_RUN_TYPE="Interactive")

    def test_002_torchrun(self):
        for prefix in ("", "tandem run "):
            self.assert_arrives(f"{prefix}torchrun --nproc_per_node=2 --standalone train.py --distributed --lr 1e-3", 2, "--distributed --lr 1e-3")
        self.assert_arrives("tandem run --nproc_per_node=2 --standalone train.py --distributed", 2, "--distributed")
        self.assert_arrives("bash train_torchrun.sh", 2, "--distributed")

    def test_002_torchrun_with_more_ranks_than_gpus_says_so_and_runs(self):
        self.assert_arrives("torchrun --nproc_per_node=4 --standalone train.py --distributed", 4, "--distributed")
        self.assertIn("4 ranks", self.result.stderr)
        self.assertIn("2 GPUs", self.result.stderr)

    def test_002_torch_distributed_launch(self):
        self.assert_arrives("tandem run python -m torch.distributed.launch --nproc_per_node=2 --use_env train.py --distributed", 2, "--distributed")
        self.assert_arrives("tandem launch --nproc_per_node=2 --use_env train.py --distributed", 2, "--distributed")
        told = self.type("tandem launch --nproc_per_node=2 train.py --distributed")
        self.assertEqual([rank["arguments"] for rank in told], [["--local-rank=0", "--distributed"], ["--local-rank=1", "--distributed"]])
        told = self.type("tandem run -n 2 --pass-local-rank underscore train.py --distributed")
        self.assertEqual([rank["arguments"] for rank in told], [["--local_rank=0", "--distributed"], ["--local_rank=1", "--distributed"]])

    def test_002_a_shell_script_that_calls_torch_distributed_launch(self):
        if importlib.util.find_spec("torch") is None:
            self.skipTest(f"{sys.executable} has no torch, whose launcher the script calls")
        self.assert_arrives("tandem run -n 1 bash train_ddp.sh", 2, "--distributed")

    def test_002_a_script_that_calls_the_module_of_torch_through_the_shims(self):
        shims = {"PYTHONPATH": f"{self.folder}/links/python"}
        self.assert_arrives("bash train_ddp.sh", 2, "--distributed", **shims)
        self.assertIn("tandem: ", self.result.stderr)
        self.assert_arrives("python -u -W ignore -m torch.distributed.run --nproc_per_node=2 --standalone train.py a", 2, "a", **shims)
        self.assertIn("tandem: ", self.result.stderr)
        self.assert_arrives("python3 -m accelerate.commands.launch --num_processes 2 train.py", 2, **shims)

    def test_002_one_process(self):
        arguments = "--layers 50 --model_type res50_ASPP_lorm"
        self.assert_arrives(f"tandem run -n 1 python train.py {arguments}", 1, arguments)
        self.assert_arrives("tandem run -n 1 python train.py --distributed --local_rank=0", 1, "--distributed --local_rank=0")

    def test_002_debug_variables_pass_untouched(self):
        told = self.assert_arrives("export NCCL_DEBUG=INFO; export CUDA_LAUNCH_BLOCKING=1; torchrun --nproc_per_node=2 --standalone train.py", 2)
        self.assertEqual([told[1]["environment"][name] for name in ("NCCL_DEBUG", "CUDA_LAUNCH_BLOCKING")], ["INFO", "1"])

    def test_002_the_debugger_of_vs_code(self):
        variables = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "MASTER_ADDR": "localhost", "MASTER_PORT": "12355"}
        self.assert_arrives("tandem run -n 1 python train.py --distributed --local_rank 0", 1, "--distributed --local_rank 0", **variables)

    def test_003_accelerate(self):
        self.assert_arrives("tandem run python version12.py", 2)
        for prefix in ("", "tandem run "):
            told = self.assert_arrives(f"{prefix}accelerate launch --multi_gpu version12.py", 2)
            self.assertEqual(told[0]["environment"]["ACCELERATE_MIXED_PRECISION"], "no")
            told = self.assert_arrives(f"{prefix}accelerate launch --config_file accelerate_config.yaml version12.py", 2)
            self.assertEqual(told[1]["environment"]["ACCELERATE_MIXED_PRECISION"], "fp16")

    def test_003_other_commands_of_accelerate_go_to_the_real_one(self):
        self.write("real/accelerate", "#!/bin/sh\necho real \"$@\" >called\n")
        self.type(f"PATH={self.folder}/links:{self.folder}/real:$PATH accelerate config default")
        self.assertEqual((self.folder / "called").read_text(), "real config default\n")

    def test_004_torchrun_and_its_cure(self):
        self.assert_arrives("torchrun --nproc_per_node=2 --standalone version12.py", 2)
        told = self.assert_arrives("torchrun --nproc_per_node=2 --master_port=29500 --standalone version12.py", 2)
        self.assertNotEqual(told[0]["environment"]["MASTER_PORT"], "29500")
        self.assertIn("29500", self.result.stderr)
        self.assert_arrives("tandem run --nproc_per_node=2 --master_port=29500 --standalone version12.py", 2)

    def test_004_a_script_that_calls_torchrun(self):
        self.assert_arrives("python train_ddp.py", 2)
        self.assert_arrives("tandem run -n 1 python version12.py", 1)


class OneGpu(GuideTest):
    gpus = 1

    def test_kaggle_with_one_gpu_says_where_the_other_is(self):
        self.assert_arrives("tandem run version12.py", 1, KAGGLE_KERNEL_RUN_TYPE="Interactive")
        self.assertIn('"GPU T4 x2"', self.result.stderr)

    def test_more_ranks_than_gpus_is_an_error_before_anything_starts(self):
        command = ["unshare", "-rm", "--propagation", "private", "sh", HERE / "fake_gpus.sh", "1", TANDEM, "run", "-n", "2", "touch", "started"]
        result = subprocess.run(command, cwd=self.folder, env=self.env, capture_output=True, text=True, timeout=LIMIT)
        self.assertEqual(result.returncode, 10)
        self.assertRegex(result.stderr, r"^error: .*2 ranks.*1 .*GPU.*\nhint: .*--device 0,0.*\n$")
        self.assertFalse((self.folder / "started").exists())


if __name__ == "__main__":
    unittest.main()

"""docs/guides.md is true: each command, check and trouble of the five guides has a row, and what it says to type is understood."""

import importlib.util
import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "launch"))
from doc_links import lost_targets  # noqa: E402
from guides_test import GuideTest  # noqa: E402
from support import SOURCE  # noqa: E402

PAGE = (SOURCE / "docs" / "guides.md").read_text()
NOT_THERE_YET = ["detect", "diffuse", "doctor", "top"]

# What the guides tell their readers to type, to check and to mend, in their words.
GUIDES = {
    "Guide 000: Kaggle DDP 问题修复说明": [
        'device="0,1"', "ModuleNotFoundError: No module named 'ultralytics'", '"device": "0"', '"batch": 4',
        "sys.path.insert(0, str(project_root))", "os.environ['PYTHONPATH']",
        "%cd /kaggle/working/Machine_Learning", "!pip install -e .",
        "from ultralytics.models.yolo.detect.train import DetectionTrainer", "显存占用", "稳定性"],
    "Guide 001: Kaggle T4*2 双GPU训练完整指南": [
        "accelerate launch", "notebook_launcher", "环境变量", "GPU T4 x2", "/kaggle/working/data_split/",
        "!git clone", "!git submodule update --init --recursive", "!python kaggle_dual_gpu_setup.py", "notebook_launcher测试成功",
        "!python kaggle_training_wrapper.py complete", "!python kaggle_training_wrapper.py stage1", "!python kaggle_training_wrapper.py stage2",
        "!python stage3_inference.py --dit_checkpoint", "kaggle_complete_pipeline()", "nvidia-smi --query-gpu=",
        "monitor_kaggle_gpu(duration_minutes=15)", "DistributedType.MULTI_GPU", "GPU使用率监控", "问题1: 只显示1个进程", "问题2: NCCL通信错误",
        "问题3: 内存不足", "batch_size = 8", "混合精度", "问题4: 导入错误", "sys.path.append('/kaggle/working/VA-VAE')", "成功标志", "查看详细错误日志"],
    "Guide 002: PyTorch DDP 多卡训练指南": [
        "bash train_torchrun.sh", "torchrun --nproc_per_node=2 --standalone train.py --distributed [其他参数]",
        "torchrun --nproc_per_node=4 --standalone train.py --distributed [其他参数]", "bash train_ddp.sh",
        "python -m torch.distributed.launch --nproc_per_node=2 --use_env train.py --distributed [其他参数]",
        "python train.py --layers 50 --model_type res50_ASPP_lorm [其他参数]",
        "--distributed", "--world_size", "--local_rank", "--dist_url", "--batchsize", "--workers", "--lr", "预期加速比", "数据集要求",
        "nvidia-smi", "export NCCL_DEBUG=INFO", "export CUDA_LAUNCH_BLOCKING=1",
        "python train.py --distributed --local_rank=0 [其他参数]", "NCCL_TIMEOUT", "--master_port", "OOM错误", ".vscode/launch.json",
        "tensorboard --logdir=./log", "watch -n 1 nvidia-smi", "pip install gpustat", "gpustat -i 1", "iftop -i [网卡名称]",
        "模型保存", "日志输出", "随机种子"],
    "Guide 003: Kaggle 多GPU训练指南 (使用Accelerate)": [
        "GPU T4 x2", "添加数据集输入", "!pip install rouge-score accelerate", "!python version12.py",
        "!accelerate launch --multi_gpu version12.py", "use_accelerate = True", "16 × 16 × 2 = 512", "torch.cuda.device_count()",
        "!ls -lh out-summarization/", "!tail -n 50 out-summarization/train.log", "version12.evaluate()", "use_accelerate = False",
        "version12.predict_test_set_fast()", "FileLink('out-summarization/submission.csv')", "时间/iteration",
        "使用Accelerate多GPU训练: 2 GPUs", "GPU数量: 2", "有效批次大小: 512", "模型初始化方式: gpt2", "!nvidia-smi",
        "Q1: `accelerate库未安装", "!pip install accelerate", "Q2: 只使用了1个GPU", "Q3: 想要单GPU训练", "Q4: 内存不足 (OOM)", "batch_size = 8",
        "gradient_accumulation_steps = 8", "Q5: 训练速度没有提升", "num_workers", "!accelerate config",
        "!accelerate launch --config_file accelerate_config.yaml version12.py", "24 或 32", "混合精度", "梯度检查点", "每周30小时GPU时间"],
    "Guide 004: 多GPU并行训练说明": [
        "python train_ddp.py", "torchrun --nproc_per_node=2 --standalone version12.py", "ddp = False", "python version12.py",
        "GPU T4 x2", "!pip install rouge-score", "有效批次大小 256", "调整学习率", "seed + rank", "checkpoint保存", "checkpoint格式", "评估在主进程上",
        "问题1: `Address already in use", "torchrun --nproc_per_node=2 --master_port=29500 --standalone version12.py",
        "问题2: NCCL错误", "os.environ['NCCL_DEBUG'] = 'INFO'", "os.environ['NCCL_P2P_DISABLE'] = '1'", "问题3: 只检测到1个GPU",
        "DDP训练: 2 GPUs", "有效批次大小: 256", "MFU", "iteration的时间", "nvidia-smi"],
}

NOTEBOOK_LAUNCHER = """
import os, pathlib, socket
from accelerate import notebook_launcher

def worker():
    pathlib.Path(f"worker{os.environ['RANK']}of{os.environ['WORLD_SIZE']}").touch()

with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
notebook_launcher(worker, num_processes=2, use_port=str(port))
"""


def section(title: str) -> str:
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def rows(title: str) -> list[list[str]]:
    lines = re.findall(r"^\| (.*?) ?\|$", section(title), re.M)
    return [[cell.strip() for cell in line.split("|")] for line in lines[1:]]


def commands() -> list[str]:
    """Each command with `tandem`, in a form that prints what it would do; a name alone stands for its help."""
    typed = dict.fromkeys(re.findall(r"`(tandem [a-z][^`\n]*)`", PAGE))
    return [checked(line) for line in typed if line.split()[1] not in NOT_THERE_YET]


def checked(line: str) -> str:
    words = line.split()
    if words[1] == "shims":
        return line
    if len(words) == 2:
        return f"{line} --help"
    dry = re.sub(r"^tandem (run|launch) ", r"tandem \1 --dry-run ", line)
    return dry if dry != line else f"{line} --dump-config"


class Page(unittest.TestCase):
    def test_has_a_row_for_each_command_check_and_trouble(self):
        self.assertEqual(re.findall(r"^## (Guide .*)$", PAGE, re.M), list(GUIDES))
        for title, quotes in GUIDES.items():
            told = [row[0] for row in rows(title)]
            self.assertEqual([quote for quote in quotes if not any(quote in cell for cell in told)], [], title)

    def test_has_rows_of_three_cells_that_say_what_to_do(self):
        for title in GUIDES:
            for row in rows(title):
                self.assertEqual(len(row), 3, row)
                self.assertTrue(row[0] and (row[1] or "is not there yet" in row[2]), row)

    def test_lists_what_is_not_there_yet(self):
        self.assertEqual([row[0] for row in rows("Not there yet")], [f"`tandem {name}`" for name in NOT_THERE_YET])

    def test_points_to_what_exists(self):
        self.assertEqual(lost_targets(PAGE, SOURCE), [])
        for readme in ("README.md", "README.zh-CN.md"):
            self.assertTrue("(docs/guides.md)" in (SOURCE / readme).read_text(), readme)


class Typed(GuideTest):
    def setUp(self):
        super().setUp()
        self.write("Machine_Learning/dino_yolo.py", "")
        self.write("run.yaml", "preset: guide\n")
        self.env["HOME"] = str(self.folder)

    def test_each_command_is_understood(self):
        self.assertGreater(len(commands()), 40)
        for line in commands():
            self.type(line)

    def test_names_flags_that_exist(self):
        helps = [f"tandem {name} --help" for name in ("run", "summarize train", "summarize evaluate", "summarize predict")]
        self.type(" && ".join(helps))
        known = set(re.findall(r"--[a-z][\w-]*", self.result.stdout))
        ours = " ".join(cell for title in GUIDES for row in rows(title) for cell in row[1:])
        self.assertEqual(set(re.findall(r"`(--[a-z][\w-]*)", ours)) - known, set())

    def test_what_is_not_there_yet_is_not_there(self):
        for name in NOT_THERE_YET:
            self.assert_error(self.run_tandem(name), 2, f"there is no command '{name}'")

    def test_notebook_launcher_in_one_rank_starts_its_two_workers(self):
        if importlib.util.find_spec("accelerate") is None:
            self.skipTest("accelerate is not installed")
        self.write("kaggle_training_wrapper.py", NOTEBOOK_LAUNCHER)
        self.type("tandem run -n 1 python kaggle_training_wrapper.py stage2", KAGGLE_KERNEL_RUN_TYPE="Interactive")
        self.assertEqual(sorted(path.name for path in self.folder.glob("worker*")), ["worker0of2", "worker1of2"])


class Said(GuideTest):
    """Lines of the launcher that the page quotes."""

    def assert_says(self, line: str, command: str) -> None:
        self.assertTrue(f"`{line}`" in PAGE, line)
        self.type(command, KAGGLE_KERNEL_RUN_TYPE="Interactive")
        self.assertIn(f"{line}\n", self.result.stderr)

    def test_of_kaggle(self):
        self.assert_says("tandem: NCCL_P2P_DISABLE=1 and NCCL_IB_DISABLE=1: Kaggle's GPUs have no direct link", "tandem run train.py")
        self.assertTrue("2 ranks on cuda:0, cuda:1" in PAGE)
        self.assertIn("2 ranks on cuda:0, cuda:1", self.result.stderr)

    def test_of_one_gpu(self):
        self.gpus = 1
        self.assert_says('tandem: one GPU is visible: for two, choose "GPU T4 x2" under Settings > Accelerator', "tandem run train.py")

    def test_of_a_port_that_was_asked_for(self):
        self.assert_says("tandem: port 29500 is not used: a standalone run takes a free port",
                         "tandem run torchrun --nproc_per_node=2 --master_port=29500 --standalone version12.py")


if __name__ == "__main__":
    unittest.main()

"""docs/segment.md is true: its command lines run, its flags exist, its links lead somewhere, and its errors are said."""

import pathlib
import re
import shlex
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "launch"))
from doc_links import lost_targets  # noqa: E402
from support import SOURCE, LaunchTest  # noqa: E402

PAGE = (SOURCE / "docs" / "segment.md").read_text()
COMMANDS = ("prepare", "train", "evaluate", "predict", "score", "export", "shapes")
OF_LAUNCHERS = {"--nproc_per_node", "--standalone", "--use_env"}
# The sections of guide 002, in its words.
SECTIONS = ("训练脚本修改", "数据加载器修改", "方法一", "方法二", "方法三", "新增的分布式参数", "重要配置建议", "单卡 vs 多卡", "预期加速比", "环境要求", "数据集要求", "内存和显存",
            "调试技巧", "NCCL timeout", "端口占用", "OOM错误", "VS Code 调试配置", "TensorBoard", "GPU监控", "网络监控", "批大小选择", "学习率调整", "同步频率",
            "模型保存", "日志输出", "随机种子")
SHELL = [line for block in re.findall(r"^```sh\n(.*?)^```$", PAGE, re.M | re.S) for line in block.splitlines()]
OF_THE_GUIDE = "tandem segment train --preset guide"  # on VOC, with pretrained weights, on two GPUs

REFUSED = {
    "train --preset demo --l-pseudo 1 --dataset ScribbleOnly": "l-pseudo is 1, but there are no pseudo labels",
    "train --preset demo --sync-bn on --shards 2": "sync-bn is on in exact mode",
    "train --preset demo --dist_url tcp://localhost:23456": "--dist_url is tcp://localhost:23456, and only env:// is supported",
}


class Page(LaunchTest):
    def help_of(self, command: str) -> str:
        return self.run_tandem("segment", command, "--help").stdout

    def test_links_lead_somewhere(self):
        self.assertEqual(lost_targets(PAGE, SOURCE), [])

    def test_commands_are_those_of_the_program(self):
        said = self.run_tandem("segment", "--help").stdout
        for command in COMMANDS:
            self.assertRegex(said, rf"(?m)^\s+{command}\b")
            self.assertIn(f"`tandem segment {command}`", PAGE)

    def test_flags_are_known(self):
        known = set()
        for command in COMMANDS:
            known |= set(re.findall(r"--[a-z][\w.-]*", self.help_of(command)))
        for flag in set(re.findall(r"(?<![\w-])--[a-z][\w.-]*[a-z]", PAGE)) - OF_LAUNCHERS:
            self.assertIn(flag.replace("_", "-"), known, flag)

    def test_command_lines_run_in_their_order(self):
        """A training only for a step, which needs the device that is there."""
        lines = [line for line in SHELL if line.startswith("tandem ") and not line.startswith(OF_THE_GUIDE)]
        self.assertEqual({line.split()[2] for line in lines}, set(COMMANDS))
        self.env["OMP_NUM_THREADS"] = "1"
        for line in lines:
            words = shlex.split(line)[1:]
            result = self.run_tandem(*words, *(("--max-steps", 1, "--eval-epochs", 0) if words[1] == "train" else ()))
            self.assertEqual(result.returncode, 0, (line, result.stderr))
        self.assertEqual(len(list((self.folder / "masks").glob("*.png"))), 600)

    def test_the_command_line_of_the_guide_is_understood(self):
        (line,) = (line for line in SHELL if line.startswith(OF_THE_GUIDE))
        result = self.run_tandem(*shlex.split(line)[1:], "--device", "cpu", "--dump-config")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("stride-in: second", result.stdout)

    def test_scripts_are_there(self):
        scripts = [line.split()[1] for line in SHELL if line.startswith("python ")]
        self.assertIn("tools/convert_ckpt.py", scripts)
        self.assertEqual([script for script in scripts if not (SOURCE / script).is_file()], [])

    def test_each_section_of_the_guide_has_a_row(self):
        rows = " ".join(line.split("|")[1] for line in PAGE.splitlines() if line.startswith("| "))
        self.assertEqual([title for title in SECTIONS if title not in rows], [])

    def test_the_script_that_stands_for_the_guides_is_the_one_that_is_tested(self):
        test = (SOURCE / "tests/recipes/segment_guide_test.py").read_text()
        (script,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S)
        self.assertIn(f'TRAIN_PY = """{script}"""', test)

    def test_errors_are_said(self):
        for words, message in REFUSED.items():
            result = self.run_tandem("segment", *words.split(), "--device", "cpu")
            self.assertNotEqual(result.returncode, 0, words)
            self.assertIn(f"error: {message}", result.stderr)
            self.assertIn("hint: ", result.stderr)
            self.assertIn(message.replace("tcp://localhost:23456", "tcp://..."), PAGE)


if __name__ == "__main__":
    unittest.main()

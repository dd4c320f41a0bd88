"""A program that launches itself: its ranks, its run folder, its logs, and errors before the start."""

import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import unittest

from support import BUILD, LIMIT, SOURCE, LaunchTest

PROGRAM = BUILD / "tests" / "self_launched"


class SelfLaunchTest(LaunchTest):
    def setUp(self):
        super().setUp()
        self.runs = self.folder / "runs"

    def run_program(self, *arguments, program=PROGRAM, **options) -> subprocess.CompletedProcess:
        return self.run_tandem(*arguments, program=program, **options)

    def run_well(self, *arguments, **options) -> str:
        result = self.run_program(*arguments, **options)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def run_names(self) -> list[str]:
        return sorted(path.name for path in self.runs.iterdir() if not path.is_symlink()) if self.runs.exists() else []


class Ranks(SelfLaunchTest):
    def test_that_end_before_they_join_are_named_and_not_waited_for(self):
        for end, code in (("exit 0", 5), ("kill -9 $$", 137)):
            with self.subTest(end):
                script = f'[ "$RANK" = 1 ] && {{ {end}; }}; exec "{PROGRAM}" --join-timeout 10m'
                result = self.run_ranks("-n", 3, "--no-python", "sh", "-c", script, timeout=LIMIT)
                self.assertEqual(result.returncode, code, result.stderr)
                self.assertIn("rank 1", result.stderr)
                self.assert_nothing_left()

    def test_meet_in_one_folder_with_their_logs(self):
        said = self.run_well("--nproc", "2", "--lr", "0.5")
        (name,) = self.run_names()
        self.assertRegex(name, r"^self-launched-\d{8}-\d{6}$")
        folder = self.runs / name
        self.assertEqual(said, f"rank 0 of 2: sum 3, lr 0.5, {folder}\n")
        self.assertEqual((folder / "logs" / "rank0.log").read_text(), said)
        self.assertEqual((folder / "logs" / "rank1.log").read_text(), f"rank 1 of 2: sum 3, lr 0.5, {folder}\n")
        self.assertEqual(os.readlink(self.runs / "latest"), name)
        self.assertEqual(sorted(path.name for path in folder.iterdir()),
                         ["command.txt", "config.yaml", "environment.json", "logs"])
        environment = json.loads((folder / "environment.json").read_text())
        self.assertEqual((environment["world_size"], environment["devices"]), (2, ["cpu", "cpu"]))
        self.assertNotIn("PATH", environment["variables"])

    def test_may_run_several_programs_one_after_the_other(self):
        result = self.run_ranks("-n", "2", "bash", "-c", f"{PROGRAM} --name one && {PROGRAM} --name two && {PROGRAM} --name three")
        self.assertEqual(result.returncode, 0, result.stderr)
        for name in ("one", "two", "three"):
            self.assertIn(f"rank 0 of 2: sum 3, lr 0.1, {self.runs / name}\n", result.stdout)

    def test_are_one_without_a_launcher_and_logs_where_nothing_is_asked(self):
        result = self.run_program()
        (name,) = self.run_names()
        self.assertEqual((result.stdout, result.stderr), (f"rank 0 of 1: sum 1, lr 0.1, {self.runs / name}\n", ""))
        self.assertFalse((self.runs / name / "logs").exists())

    def run_with_gpus(self, count: int, *arguments) -> subprocess.CompletedProcess:
        if subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode != 0:
            self.skipTest("this machine has no user namespaces")
        script = [SOURCE / "tests/launch/fake_gpus.sh", count, PROGRAM, *arguments]
        return self.run_program("-rm", "sh", *script, program="unshare", env={"CUDA_VISIBLE_DEVICES": "0,2"})

    def torch_has_cuda(self) -> bool:
        return "(CUDA)" in self.run_tandem("version").stdout

    def test_are_as_many_as_there_are_gpus(self):
        if not self.torch_has_cuda():
            self.skipTest("this torch has no CUDA")
        self.assertRegex(self.run_with_gpus(3).stderr, r"tandem: self_launched-\w+: 2 ranks on cuda:0, cuda:1, port ")

    def test_do_not_count_gpus_that_torch_cannot_use_and_say_so(self):
        if self.torch_has_cuda():
            self.skipTest("this torch has CUDA")
        for ranks, arguments in ((1, ()), (2, ("--nproc", "2"))):
            result = self.run_with_gpus(3, *arguments)
            self.assertRegex(result.stdout, f"^rank 0 of {ranks}: sum {ranks * (ranks + 1) // 2}, ")
            self.assertRegex(result.stderr, r"note: running on the CPU: 2 GPUs .* no CUDA\nhint: .*TORCH_DIR.*--device cpu")
            self.assertEqual(result.stderr.count("note: running"), 1)
        self.assertNotIn("GPU", self.run_with_gpus(3, "--device", "cpu").stderr)

    def test_on_kaggle_say_where_to_choose_two_gpus(self):
        kaggle = {"KAGGLE_KERNEL_RUN_TYPE": "Interactive", "CUDA_VISIBLE_DEVICES": ""}
        self.assertRegex(self.run_program(env=kaggle).stderr, '^note: no GPU is visible: .*"GPU T4 x2"')
        self.assertNotIn("T4", self.run_program("--device", "cpu", env=kaggle).stderr)
        self.assertEqual(self.run_program().stderr, "")

    def test_do_not_start_on_gpus_that_torch_cannot_use(self):
        if self.torch_has_cuda():
            self.skipTest("this torch has CUDA")
        result = self.run_with_gpus(3, "--device", "0,1")
        self.assertEqual(result.returncode, 10)
        self.assertRegex(result.stderr, r"^error: --device 0,1: 2 GPUs .* no CUDA\nhint: .*TORCH_DIR.*--device cpu")
        self.assertEqual(self.run_names(), [])

    def test_take_the_device_that_is_asked_for(self):
        result = self.run_program("--device", "cpu")
        self.assertRegex(result.stderr, r"tandem: self_launched-\w+: 1 rank on cpu, ")
        self.assertEqual(result.returncode, 0)

    def test_go_on_in_the_same_folder_when_one_was_killed(self):
        result = self.run_program("--nproc", "2", "--die-once", env={"PET_MAX_RESTARTS": "1"})
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stderr, r"rank 1 failed: signal 9 \(Killed\).* 1 of 1\n")
        (name,) = self.run_names()
        self.assertEqual(result.stdout, f"rank 0 of 2: sum 3, lr 0.1, {self.runs / name}\n" * 2)
        (began,) = (self.runs / name / "command.txt").read_text().splitlines()  # the first attempt was killed before
        self.assertRegex(began, rf"^{re.escape(str(PROGRAM))} --nproc 2 --die-once  # [-0-9T:.]+Z, restart 1$")

    def test_end_with_the_code_of_the_launcher(self):
        self.assertEqual(self.run_program("--nproc", "2", "--die-once").returncode, 128 + signal.SIGKILL)

    def test_use_one_folder_under_a_launcher_too(self):
        result = self.run_ranks("-n", "2", "--max-restarts", "1", PROGRAM, "--nproc", "2", "--die-once")
        (name,) = self.run_names()
        self.assertRegex(name, r"^self_launched-[0-9a-f]{6}$")
        self.assertEqual(result.stdout, f"rank 0 of 2: sum 3, lr 0.1, {self.runs / name}\n" * 2)
        self.assertRegex((self.runs / name / "command.txt").read_text(), rf"^tandem run -n 2 --device cpu {re.escape(str(PROGRAM))} --nproc 2 ")

    def test_are_not_those_of_a_run_inside_a_run(self):
        inner = self.write("inner.sh", f"exec {BUILD}/bin/tandem run -q {PROGRAM}\n")
        self.run_ranks("sh", inner, env={"TANDEM_RUN_FOLDER": str(self.runs / "outer")})
        (name,) = self.run_names()
        self.assertRegex(name, r"^self_launched-[0-9a-f]{6}$")


class Folder(SelfLaunchTest):
    def test_of_a_run_that_goes_on_is_not_touched_by_another(self):
        self.run_well("--nproc", "2", "--name", "busy")
        before = (self.runs / "busy/logs/launch.jsonl").read_text()
        folder = os.open(self.runs / "busy", os.O_RDONLY | os.O_DIRECTORY)
        self.addCleanup(os.close, folder)
        fcntl.flock(folder, fcntl.LOCK_EX)  # as a run holds it
        result = self.run_program("--nproc", "2", "--name", "busy")
        self.assertRegex(result.stderr, rf"(?m)^error: .*{re.escape(str(self.runs / 'busy'))}.*\nhint: .*--name")
        self.assertEqual((self.runs / "busy/logs/launch.jsonl").read_text(), before)

    def test_is_another_one_for_each_of_two_that_start_at_once(self):
        runs = [subprocess.Popen([PROGRAM, "--nproc", "2"], env=self.env, cwd=self.folder, stdout=subprocess.PIPE,
                                 stderr=subprocess.DEVNULL, text=True) for _ in range(2)]
        said = [run.communicate(timeout=240)[0] for run in runs]
        self.assertEqual(len(self.run_names()), 2)
        self.assertEqual(sorted(said), [f"rank 0 of 2: sum 3, lr 0.1, {self.runs / name}\n" for name in self.run_names()])

    def test_is_the_latest_one_when_that_goes_on(self):
        self.run_well("--nproc", "2", "--name", "first")
        self.run_well("--nproc", "2", "--resume", "latest", "--lr", "0.25")
        self.assertEqual(self.run_names(), ["first"])
        self.assertEqual(len((self.runs / "first" / "command.txt").read_text().splitlines()), 2)
        self.assertEqual(len((self.runs / "first" / "logs" / "rank1.log").read_text().splitlines()), 2)
        self.assertIn("lr: 0.25  # --lr\n", (self.runs / "first" / "config.yaml").read_text())

    def test_holds_settings_that_give_the_same_run_again_elsewhere(self):
        self.run_well("--nproc", "2", "--name", "first", "--lr", "0.3333333333333333")
        again = self.run_well("--config", self.runs / "first" / "config.yaml")
        self.assertRegex(again, r"^rank 0 of 2: sum 3, lr 0\.333333, .*/runs/self-launched-[-0-9]+\n$")
        self.assertEqual(len(self.run_names()), 2)

    def test_holds_a_command_that_can_be_pasted(self):
        self.run_well("--name", "it's one", "--nproc", "2")
        line = (self.runs / "it's one" / "command.txt").read_text()
        result = subprocess.run(["sh", "-c", line], env=self.env, cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(result.stdout, f"rank 0 of 2: sum 3, lr 0.1, {self.runs}/it's one\n")


class Nothing(SelfLaunchTest):
    """is created or started on an error."""

    def assert_nothing_made(self):
        self.assertFalse(self.runs.exists())
        self.assertFalse((self.folder / "jobs").exists())

    def test_for_a_wrong_flag(self):
        self.assert_error(self.run_program("--nproc", "2", "--lt", "1"), 2, "--lt", "did you mean --lr?")
        result = self.run_program("--nproc", "0")
        self.assert_error(result, 2, "nproc is 0 (--nproc)", "1")
        self.assert_nothing_made()

    def test_for_a_device_that_is_not_there(self):
        self.assert_error(self.run_program("--device", "7"), 10, "device 7", "no GPU", "`--device cpu`")
        self.assert_nothing_made()

    def test_for_help_and_settings(self):
        self.assertIn("--run-dir", self.run_well("--nproc", "2", "--help"))
        self.assertIn("nproc: 2  # --nproc\n", self.run_well("--nproc", "2", "--dump-config"))
        self.assert_nothing_made()

    def test_without_a_launcher(self):
        alone = self.folder / "self_launched"
        shutil.copy(PROGRAM, alone)
        result = self.run_program("--nproc", "2", program=alone, env={"PATH": "/nowhere"})
        self.assertEqual(result.returncode, 4)
        self.assertRegex(result.stderr, rf"^error: .*{re.escape(str(alone.parent))}/tandem .*PATH")
        self.assertIn(f"`tandem run -n 2 {alone} ...`", result.stderr)
        self.assert_nothing_made()

    def test_for_a_run_that_is_not_there(self):
        result = self.run_program("--nproc", "2", "--resume", "latest")
        self.assertEqual(result.returncode, 9)
        self.assert_nothing_made()

    def test_by_flags_that_contradict_the_launcher(self):
        result = self.run_ranks("-n", "2", PROGRAM, "--nproc", "3")
        self.assertEqual(result.returncode, 2)
        self.assertRegex(result.stderr, r"--nproc 3\b.* 2 ranks .*\[rank [01] of 2\]")  # both find it; one is first
        self.assertFalse(self.runs.exists())


if __name__ == "__main__":
    unittest.main()

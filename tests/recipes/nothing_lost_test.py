"""Nothing is lost in silence: unreadable checkpoints, a full disk, a run folder that has gone, another processor."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "launch"))
from support import BUILD, LaunchTest, wait_until  # noqa: E402

POINTS = BUILD / "tests" / "tandem-points"
NOBODY = 65534
TRAIN = ("train", "--name", "fit", "--no-progress")
SHORT = ("--max-steps", "6", "--save-every", "2", "--schedule", "constant")


class NothingLostTest(LaunchTest):
    def setUp(self):
        super().setUp()
        self.env["OMP_NUM_THREADS"] = "1"

    def points(self, *words, **options) -> subprocess.CompletedProcess:
        return self.run_tandem(*words, program=POINTS, **options)

    def run_well(self, *words, **options) -> str:
        done = self.points(*words, **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def weights(self, run: str, step: int) -> bytes:
        return (self.folder / f"runs/{run}/checkpoints/step-{step:08d}/model.safetensors").read_bytes()


class Unreadable(NothingLostTest):
    def setUp(self):
        super().setUp()
        self.user = {}
        if os.geteuid() == 0:  # whom permissions do not stop
            self.user = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
            os.chown(self.folder, NOBODY, NOBODY)
            can_read = subprocess.run(["test", "-x", POINTS], **self.user).returncode == 0
            if not can_read or self.points("--help", **self.user).returncode != 0:
                self.skipTest("another user may not start the programs of this build")

    def test_checkpoints_stop_a_run_that_would_begin_over_them(self):
        self.run_well(*TRAIN, *SHORT, **self.user)
        self.run_well(*TRAIN, "--name", "whole", *SHORT, "--max-steps", 10, **self.user)
        checkpoints = self.folder / "runs/fit/checkpoints"
        kept = sorted(path.name for path in checkpoints.iterdir())
        newest = checkpoints / "step-00000006"
        for ranks, places in ((1, [*checkpoints.glob("step-*")]), (2, [newest / "DONE"]), (1, [newest / "model.safetensors"]),
                              (1, [checkpoints])):
            modes = [place.stat().st_mode for place in places]
            for place in places:
                place.chmod(0)
            stopped = self.points(*TRAIN, *SHORT, "--max-steps", 10, "--nproc", ranks, **self.user)
            for place, mode in zip(places, modes):
                place.chmod(mode)
            self.assertEqual(stopped.returncode, 9, stopped.stderr)
            self.assertTrue(any(str(place) in stopped.stderr for place in places), stopped.stderr)
            self.assertIn("Permission denied", stopped.stderr)
            self.assertEqual(sorted(path.name for path in checkpoints.iterdir()), kept)
        self.run_well(*TRAIN, *SHORT, "--max-steps", 10, **self.user)
        self.assertEqual(self.weights("fit", 10), self.weights("whole", 10))


class FullDisk(NothingLostTest):
    def to_full(self, *words, **options) -> subprocess.CompletedProcess:
        with open("/dev/full", "w") as full:
            return subprocess.run([str(word) for word in (POINTS, *words)], env=self.env, cwd=self.folder, text=True, stdout=full,
                                  **{"stderr": subprocess.PIPE, "timeout": 120, **options})

    def test_under_standard_output_is_told_after_all_is_saved(self):
        for number, words in enumerate(((), ("--json",), ("--nproc", 2), ("--nproc", 2, "--json"))):
            with self.subTest(words):
                done = self.to_full(*TRAIN, "--name", number, *SHORT, *words)
                self.assertEqual(done.returncode, 8, done.stderr)
                self.assertIn("standard output", done.stderr)
                self.assertIn("No space left on device", done.stderr)
                self.assertTrue(self.weights(str(number), 6))

    def test_under_the_commands_is_told(self):
        self.run_well(*TRAIN, *SHORT)
        for words in (("evaluate", "--from", "runs/fit"), ("predict", "--from", "runs/fit", "--output", "out.txt"), ("--help",),
                      ("train", "--help"), ("evaluate", "--from", "runs/fit", "--nproc", 2)):
            with self.subTest(words):
                done = self.to_full(*words)
                self.assertEqual(done.returncode, 8, done.stderr)
                self.assertIn("standard output", done.stderr)

    def test_under_the_text_is_a_field_of_the_result(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([POINTS, *TRAIN, *SHORT, "--json"], env=self.env, cwd=self.folder, text=True,
                                  stdout=subprocess.PIPE, stderr=full, timeout=120)
        self.assertEqual(json.loads(done.stdout)["output_lost"], "No space left on device")
        self.assertNotIn("output_lost", json.loads(self.run_well(*TRAIN, "--name", "other", *SHORT, "--json")))

    def test_is_none_where_the_reader_has_closed(self):
        piped = subprocess.run(f"{POINTS} {' '.join((*TRAIN, *SHORT))} | true; exit ${{PIPESTATUS[0]}}", shell=True, env=self.env,
                               cwd=self.folder, executable="/bin/bash", capture_output=True, text=True, timeout=120)
        self.assertEqual(piped.returncode, 0, piped.stderr)


class RunFolder(NothingLostTest):
    def is_stopped_between_saves(self, process: subprocess.Popen, run: pathlib.Path) -> bool:
        process.send_signal(signal.SIGSTOP)
        wait_until(lambda: pathlib.Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T", "it is stopped")
        if not list(run.glob("checkpoints/.tmp-*")):
            return True
        process.send_signal(signal.SIGCONT)
        return False

    def test_that_was_renamed_is_an_error_at_the_next_save(self):
        run = self.folder / "runs/fit"
        words = (*TRAIN, "--epochs", "1000000", "--save-every", "2", "--keep-last", "2")
        process = subprocess.Popen([POINTS, *words], env=self.env, cwd=self.folder, text=True, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE)
        self.addCleanup(self.close, process)
        wait_until(lambda: list(run.glob("checkpoints/step-*/DONE")), "it has saved")
        wait_until(lambda: self.is_stopped_between_saves(process, run), "it is between two saves")
        run.rename(self.folder / "runs/other")
        process.send_signal(signal.SIGCONT)
        _, said = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 9, said)
        self.assertIn(f"{run}/checkpoints", said)
        self.assertFalse(run.exists())
        self.assertTrue(list(self.folder.glob("runs/other/checkpoints/step-*/DONE")))


class Exact(NothingLostTest):
    def processor(self, run: str) -> str:
        """As the checkpoint has it."""
        return json.loads((self.folder / f"runs/{run}/checkpoints/step-00000006/state.json").read_text())["facts"]["processor"]

    def test_runs_do_not_resume_with_other_instructions(self):
        exact = (*TRAIN, "--shards", 2, *SHORT)
        self.run_well(*exact, env={"ATEN_CPU_CAPABILITY": "default"})
        self.run_well(*exact, "--name", "vector")
        plain, vector = self.processor("fit"), self.processor("vector")
        self.assertTrue(plain.startswith("DEFAULT on "), plain)
        if vector == plain:
            self.skipTest("this processor has no vector instructions that torch knows")
        refused = self.points(*exact, "--max-steps", 8)
        self.assertEqual(refused.returncode, 9, refused.stderr)
        self.assertIn(plain, refused.stderr)
        self.assertIn(vector, refused.stderr)
        self.assertIn("--shards", refused.stderr)
        self.run_well(*exact, "--max-steps", 8, env={"ATEN_CPU_CAPABILITY": "default"})


if __name__ == "__main__":
    unittest.main()

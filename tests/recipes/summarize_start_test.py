"""How a training starts: presets yield to flags, a run is resumed in one line, a refused start leaves nothing, --detach."""

import json
import re
import subprocess
import unittest

from summarize_support import SHAPE, SHORT, SummarizeTest, files_in, wait_until

# A preset with a model that is quick to train. Flags override single settings of the preset only.
DEMO = ("train", "--preset", "demo", *SHAPE, "--eval-samples", 4, "--max-new-tokens", 4)


class StartTest(SummarizeTest):
    def result(self, *words, **options) -> dict:
        return json.loads(self.run_well(*words, "--json", **options).stdout.splitlines()[-1])

    def config(self, name: str) -> dict:
        """The settings of a run, as texts, without the comments."""
        lines = (self.folder / "runs" / name / "config.yaml").read_text().splitlines()
        return dict(re.sub(r"  #.*", "", line).split(": ", 1) for line in lines)

    def learning_rates(self, name: str) -> dict[int, float]:
        events = map(json.loads, (self.folder / "runs" / name / "events.jsonl").read_text().splitlines())
        return {event["step"]: event["lr"] for event in events if event["event"] == "step"}


class Preset(StartTest):
    def test_gives_up_its_global_batch_for_shards(self):
        said = self.run_well(*DEMO, "--max-steps", 2, "--shards", 4, "--name", "a").stdout
        self.assertRegex(said, r"(?m)^batch +64 samples a step = 16 a micro-batch x 4 micro-batches x 1 rank, exact$")
        self.assertRegex(said, r"(?m)^ +global-batch +none +gives way to --shards +\(default 32\)$")
        self.assertEqual((self.config("a")["global-batch"], self.config("a")["shards"]), ("null", "4"))

    def test_gives_up_its_global_batch_for_an_accumulation(self):
        said = self.run_well(*DEMO, "--max-steps", 1, "--accumulate", 3).stdout
        self.assertRegex(said, r"(?m)^batch +48 samples a step = 16 a micro-batch x 3 ")

    def test_takes_the_nearest_global_batch_that_the_ranks_can_have(self):
        for flags, batch, unit in ((("--batch-size", 24), 24, "24 x 1"), (("--nproc", 3), 48, "16 x 3")):
            said = self.run_well(*DEMO, "--max-steps", 1, *flags).stdout
            self.assertRegex(said, rf"(?m)^batch +{batch} samples a step = ")
            self.assertRegex(said, rf"(?m)^global-batch {batch} instead of 32, .*{unit}\b")
        refused = self.summarize(*DEMO, "--max-steps", 1, "--batch-size", 24, "--global-batch", 32)  # as given
        self.assertEqual(refused.returncode, 3, refused.stderr)
        self.assertRegex(refused.stderr, r"^error: .*\b32\b.*24 x 1.*\nhint: .*--global-batch 24 or 48")

    def test_is_not_taken_for_what_a_file_gives(self):
        self.write("run.yaml", "preset: demo\nglobal-batch: 32\nnproc: 3\n")
        refused = self.summarize("train", "--config", "run.yaml", *SHAPE, "--max-steps", 1)
        self.assertEqual(refused.returncode, 3, refused.stderr)
        self.assertRegex(refused.stderr, r"error: .*\b32\b.*16 x 3")

    def test_shortens_its_warm_up_for_a_short_run(self):
        said = self.run_well(*DEMO, "--max-steps", 3, "--name", "a").stdout
        self.assertRegex(said, r"(?m)^warm-up +0 steps, .*\b50\b")
        self.assertEqual(self.learning_rates("a")[1], 3e-3)
        said = self.run_well(*DEMO, "--max-steps", 12, "--name", "b").stdout
        self.assertRegex(said, r"(?m)^warm-up +2 steps, .*\b50\b")
        self.assertEqual([self.learning_rates("b")[step] for step in (1, 2, 3)], [0, 1.5e-3, 3e-3])
        refused = self.summarize(*DEMO, "--max-steps", 12, "--warmup-steps", 50)  # as given
        self.assertEqual(refused.returncode, 3)
        self.assertIn("warmup-steps is 50", refused.stderr)

    def test_gives_up_its_data_and_its_weights_for_those_that_are_given(self):
        said = self.run_well("train", "--preset", "demo", "--train", "train.csv", "--init", self.hf, *SHORT, "--name", "a").stdout
        self.assertRegex(said, r"(?m)^data +23 samples$")
        for name, flag in (("data", "--train"), ("layers", "--init"), ("width", "--init"), ("lr", "--init")):
            self.assertRegex(said, rf"(?m)^[a-z]* +{name} .*gives way to {flag} ")
        self.assertRegex(said, r"(?m)^[a-z]* +layers +of --init +gives way to --init +\(default 2\)$")
        self.assertEqual(self.config("a")["data"], '""')

    def test_of_the_guide_counts_the_epochs_it_has_and_does_not_advise_what_is_set(self):
        guide = ("train", "--preset", "guide", "--train", "train.csv", *SHAPE, *SHORT[2:], "--max-steps", 3)
        said = self.run_well(*guide, "--global-batch", 8).stdout  # 23 rows: 2 steps an epoch
        self.assertRegex(said, r"(?m)^step 1/3 \| epoch 1/2 ")
        self.assertIn("--global-batch 512", said)
        self.assertRegex(said, r"(?m)^[a-z]* +init .*gives way to --layers +\(default gpt2\)$")
        said = self.run_well(*guide, "--global-batch", 512).stdout
        self.assertNotIn("--global-batch 512\n", said.replace("  --global-batch", ""))
        self.assertRegex(said, r"(?m)^guide +3 steps, .*guide 003$")

    def test_gives_up_its_steps_for_epochs(self):
        settings = self.run_well("train", "--preset", "guide", "--epochs", 2, "--dump-config").stdout
        self.assertRegex(settings, r"(?m)^max-steps: null  # gives way to --epochs$")


class Resume(StartTest):
    def setUp(self):
        super().setUp()
        self.words = ("train", "--train", "train.csv", *SHAPE, "--batch-size", 4, "--eval-samples", 4, "--max-new-tokens", 4,
                      "--epochs", 2, "--dropout", 0.25, "--precision", "fp32", "--seed", 7)  # 2 x 5 steps

    def weights(self, name: str) -> bytes:
        *_, last = sorted((self.folder / "runs" / name / "checkpoints").glob("step-*"))
        return (last / "model.safetensors").read_bytes()

    def stop_early(self, name: str, *more) -> subprocess.CompletedProcess:
        """A run that is stopped in its first step."""
        return self.run_well(*self.words, "--name", name, "--stop-at", 0.001, *more)

    def test_latest_needs_no_other_word(self):
        self.run_well(*self.words, "--name", "whole")
        said = self.stop_early("parts").stdout
        self.assertRegex(said, r"(?m)^done +1 step .*--stop-at")
        self.assertEqual(self.summarize("train", "--resume", "latest").returncode, 0)  # again for a moment: --stop-at is a setting
        went_on = self.result("train", "--resume", "latest", "--stop-at", "none")
        self.assertEqual((went_on["steps"], went_on["folder"]), (10, str(self.folder / "runs" / "parts")))
        self.assertEqual(self.weights("parts"), self.weights("whole"))
        self.assertEqual({name: self.config("parts")[name] for name in ("train", "seed", "dropout", "epochs")},
                         {"train": json.dumps(str(self.train_csv)), "seed": "7", "dropout": "0.25", "epochs": "2"})
        self.assertNotIn("resume", self.config("parts"))

    def test_keeps_what_was_given_though_a_preset_or_other_weights_propose_more(self):
        tuned = ("train", "--train", "train.csv", "--init", self.hf, *SHORT, "--name", "tuned", "--lr", 1e-3)
        self.run_well(*tuned)
        self.run_well("train", "--resume", "latest", "--max-steps", 4)
        self.assertEqual(self.config("tuned")["lr"], "0.001")
        self.run_well(*DEMO, "--global-batch", 32, "--warmup-steps", 2, "--max-steps", 4, "--stop-at", 0.001, "--name", "batch")
        refused = self.summarize("train", "--resume", "latest", "--nproc", 3)
        self.assertEqual(refused.returncode, 3, refused.stderr)
        self.assertRegex(refused.stderr, r"error: .*\b32\b.*16 x 3")
        refused = self.summarize("train", "--resume", "latest", "--max-steps", 1)
        self.assertIn("warmup-steps is 2", refused.stderr)
        self.assertEqual(self.config("batch")["global-batch"], "32")

    def test_works_from_another_folder(self):
        self.run_well("train", "--train", "train.csv", "--init", self.copy_of_hf("weights").name, *SHORT, "--name", "a")
        (self.folder / "elsewhere").mkdir()
        went_on = self.result("train", "--run-dir", "../runs", "--resume", "latest", "--max-steps", 3, cwd=self.folder / "elsewhere")
        self.assertEqual(went_on["steps"], 3)

    def test_is_what_the_next_line_says_and_that_can_be_read(self):
        (line,) = re.findall(r"(?m)^next +(.*)$", self.stop_early("parts").stdout)
        *_, program, command = line.partition(" train ")[0].split()
        self.assertEqual((program.rpartition("/")[2], command), ("tandem", "summarize"))
        self.assertEqual(line.partition(" train ")[2], "--name parts --resume latest")
        pasted = subprocess.run(["sh", "-c", f"{line} --stop-at none"], cwd=self.folder, env=self.env, text=True, capture_output=True)
        self.assertEqual(pasted.returncode, 0, pasted.stderr)
        self.assertRegex(pasted.stdout, r"(?m)^done +10 steps, of which 9 in ")

    def test_on_two_ranks_has_their_number_from_the_run(self):
        self.stop_early("two", "--nproc", 2)
        said = self.run_well("train", "--resume", "latest", "--stop-at", "none").stdout
        self.assertRegex(said, r"(?m)^batch +8 samples a step = 4 a micro-batch x 1 micro-batch x 2 ranks$")
        self.assertRegex(said, r"(?m)^settings? .*\n(.*\n)* +nproc +2 +.*/config\.yaml:\d+ ")
        alone = self.run_tandem("run", "-n", 1, "-q", self.program(), "train", "--resume", "latest", "--max-steps", 7)
        self.assertEqual(alone.returncode, 0, alone.stderr)  # the ranks are those of the launcher

    def program(self) -> str:
        from support import BUILD
        return str(BUILD / "bin" / "tandem-summarize")

    def test_that_changes_the_schedule_says_so(self):
        self.run_well(*self.words, "--name", "a", "--max-steps", 4)
        said = self.run_well("train", "--resume", "latest", "--max-steps", 6).stdout
        self.assertRegex(said, r"(?m)^schedule .*\bstep 4\b.*\bstep 6\b.*learning rate.*\bstep 5\b")
        self.assertEqual(self.config("a")["max-steps"], "6")
        self.assertNotIn("\nschedule ", self.run_well("train", "--resume", "latest").stdout)
        shorter = self.run_well("train", "--resume", "latest", "--max-steps", 3).stdout
        self.assertRegex(shorter, r"(?m)^nothing is left .*\bstep 6\b.*\bstep 3\b.*--max-steps")
        more = self.run_well("train", "--resume", "latest", "--max-steps", 8, "--schedule", "constant").stdout
        self.assertNotIn("\nschedule ", more)  # no rate changes

    def test_takes_a_folder_of_runs_and_uses_the_latest(self):
        self.run_well(*self.words, "--name", "first", "--max-steps", 2)
        self.run_well(*self.words, "--name", "second", "--max-steps", 3)
        result = self.result("train", "--resume", "runs", "--max-steps", 5)  # a new run, from a copy of the latest
        self.assertEqual((result["steps"], result["steps_since_start"]), (5, 2))
        self.assertNotIn(result["folder"].rpartition("/")[2], ("first", "second"))
        (self.folder / "runs" / "latest").unlink()
        (self.folder / "runs" / "latest").symlink_to("second")
        self.assertIn("second/checkpoints/step-00000003", self.resolved(self.run_well("evaluate", "--from", "runs").stdout))
        self.run_well("predict", "--from", "runs", "--output", "out.csv")

    def resolved(self, said: str) -> str:
        return said.replace("/latest/", "/second/")

    def test_says_one_loss_and_the_same_numbers_as_the_screen(self):
        stopped = self.stop_early("a", "--json")
        result = json.loads(stopped.stdout)
        self.assertIsNone(result["loss"])  # that of the validation data, which was not evaluated
        self.assertGreater(result["train_loss"], 0)
        (train_loss,) = re.findall(r"(?m)^result +train_loss (\S+)$", stopped.stderr)
        self.assertAlmostEqual(result["train_loss"], float(train_loss), delta=1e-3)
        ended = self.run_well("train", "--resume", "latest", "--stop-at", "none", "--json")
        result = json.loads(ended.stdout)
        (steps, since, seconds) = re.findall(r"(?m)^done +(\d+) steps, of which (\d+) in (\d+)s ", ended.stderr)[0]
        self.assertEqual((result["steps"], result["steps_since_start"]), (int(steps), int(since)))
        self.assertAlmostEqual(result["seconds"], int(seconds), delta=1)
        (loss,) = re.findall(r"(?m)^result +loss ([0-9.]+),", ended.stderr)
        self.assertAlmostEqual(result["loss"], float(loss), delta=1e-3)
        self.assertNotEqual(result["loss"], result["train_loss"])


class Refused(StartTest):
    def test_leaves_no_empty_folder(self):
        for words, code in ((("--train", "missing.csv"), 8), (("--train", "train.csv", "--batch-size", 16, "--global-batch", 24), 3),
                            (("--train", "train.csv", "--name", "a", "--warmup-steps", 9), 3), ((), 3)):
            with self.subTest(words):
                before = files_in(self.folder)
                refused = self.summarize("train", *words, *SHAPE, "--max-steps", 2)
                self.assertEqual(refused.returncode, code, refused.stderr)
                left = files_in(self.folder).keys() - before.keys()
                self.assertEqual({name for name in left if ".tokens" not in name}, {"runs"} if left else set())

    def test_is_a_run_to_resume_that_is_not_there(self):
        for words, facts, hint in ((("--resume", "latst"), ("latst",), ("--resume latest",)),
                                   (("--resume", "runs/nothere"), ("runs/nothere",), ("--resume takes",))):
            self.assert_refused(("train", *words), 9, facts, hint)
        (self.folder / "runs" / "empty").mkdir(parents=True)
        self.assert_refused(("train", "--name", "empty", "--resume", "latest"), 9, ("runs/empty", "config.yaml"), ("--resume takes",))

    def test_is_a_vocabulary_beside_a_tokenizer(self):
        self.assert_refused(("train", "--train", "train.csv", "--tokenizer", self.hf, "--vocabulary", 50257), 2,
                            ("--vocabulary", "--tokenizer"), ("--vocabulary",))


class Chinese(StartTest):
    ROWS = "id,dialogue,summary\n" + "".join(f"{i},甲：你好，我有{i}个苹果。,甲有{i}个苹果。\n" for i in range(24))

    def test_table_in_gb18030_is_named_and_can_be_read(self):
        (self.folder / "gbk.csv").write_bytes(self.ROWS.encode("gb18030"))
        words = ("train", "--train", "gbk.csv", *SHAPE, *SHORT)
        self.assert_train_refused(words[1:-len(SHORT)], 8, ("gbk.csv", "GB18030"), ("iconv -f gb18030 -t utf-8 gbk.csv", ))
        said = self.run_well(*words, "--encoding", "gb18030", "--name", "a").stdout
        self.assertIn("个苹果", (self.folder / "runs/a/validation.csv").read_text())
        self.assertRegex(said, r"(?m)^ROUGE drops \d\d % .*--rouge-tokens characters")
        self.assertEqual(said.count("--rouge-tokens"), 1)
        shown = self.run_well("evaluate", "--from", "runs/a", "--valid", "gbk.csv", "--encoding", "gbk").stdout
        self.assertEqual(shown.count("--rouge-tokens characters"), 1)
        self.run_well("predict", "--from", "runs/a", "--test", "gbk.csv", "--encoding", "gb18030", "--output", "out.csv")

    def test_rouge_counts_characters_if_told(self):
        self.write("pairs.csv", "reference,prediction\n今天去爬山,今天去游泳\n")
        by_words = self.result("score", "pairs.csv")
        self.assertEqual(by_words["rouge1"], 0)
        self.assertIn("--rouge-tokens characters", by_words["note"])
        by_characters = self.result("score", "pairs.csv", "--rouge-tokens", "characters")
        self.assertAlmostEqual(by_characters["rouge1"], 0.6)
        self.assertNotIn("note", by_characters)
        self.write("train.csv", self.ROWS)
        trained = self.result("train", "--train", "train.csv", *SHAPE, *SHORT, "--rouge-tokens", "characters")
        self.assertGreater(trained["baselines"]["constant"]["rouge1"], 0.5)
        self.assertNotIn("note", self.result("evaluate", "--rouge-tokens", "characters"))


class Small(StartTest):
    def test_preset_learns_from_a_table_of_ones_own(self):
        names, things = ("Ann", "Ben", "Cleo", "Dan", "Eve", "Finn"), ("bread", "soup", "tea", "cake", "rice", "fish", "milk", "corn")
        rows = [f"{a}: Shall I bring {thing}?\\n{b}: Yes please.,{a} brings {thing} to {b}.\n"
                for a in names for b in names for thing in things if a != b]
        self.write("own.csv", "dialogue,summary\n" + "".join(rows))
        result = self.result("train", "--preset", "small", "--train", "own.csv", "--epochs", 15, "--eval-every", 0, "--patience", 0,
                             "--threads", 1)
        self.assertGreater(result["rouge2"], result["baselines"]["constant"]["rouge2"] + 0.3)


class Detached(StartTest):
    def test_run_goes_on_in_the_background(self):
        started = self.run_well("train", "--train", "train.csv", *SHAPE, *SHORT, "--name", "later", "--detach")
        job = started.stdout.strip()
        self.assertRegex(job, r"^tandem-summarize-[0-9a-f]{6}$")
        self.assertIn(f"tandem logs -f {job}", started.stderr)
        log = self.folder / "runs" / "later" / "logs" / "rank0.log"
        wait_until(lambda: log.exists() and re.search(r"(?m)^done +2 steps", log.read_text()), "the run has ended")
        self.assertNotIn("detach", self.config("later"))
        wait_until(lambda: "running" not in self.run_tandem("ps").stdout, "the job has ended")
        self.assert_nothing_left()

    def test_evaluation_goes_on_in_the_background(self):
        started = self.run_well("evaluate", "--from", self.tiny, "--max-new-tokens", 2, "--output", "pairs.csv", "--detach")
        self.assertIn("tandem logs -f", started.stderr)
        wait_until((self.folder / "pairs.csv").exists, "the pairs are written")
        wait_until(lambda: "running" not in self.run_tandem("ps").stdout, "the job has ended")


if __name__ == "__main__":
    unittest.main()

"""`tandem summarize` as a user runs it, from data to submission, against the Python packages whose work it does."""

import csv
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

TANDEM = pathlib.Path(os.environ["TANDEM_BUILD"]) / "bin" / "tandem"
SHORT = ["--data", "builtin:dialogues", "--dropout", "0", "--batch-size", "4", "--lr", "0.01", "--eval-samples", "4", "--precision", "fp32"]
TINY = [*SHORT, "--layers", "1", "--heads", "2", "--width", "16", "--context", "192", "--vocabulary", "300"]


class SummarizeTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name).resolve()

    def run_summarize(self, *words, text: str = "") -> subprocess.CompletedProcess:
        env = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}  # more threads would wait for each other
        return subprocess.run([TANDEM, "summarize", *map(str, words)], cwd=self.folder, env=env, input=text, text=True,
                              capture_output=True, timeout=500)

    def run_well(self, *words, text: str = "") -> str:
        result = self.run_summarize(*words, text=text)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def result(self, *words) -> dict:
        return json.loads(self.run_well(*words, "--json").splitlines()[-1])

    def train(self, name: str, *words) -> dict:
        return self.result("train", "--name", name, *words)

    def read_csv(self, name: str) -> list[dict]:
        with open(self.folder / name, newline="") as file:
            return list(csv.DictReader(file))

    def weights(self, run: str) -> bytes:
        (checkpoint,) = (self.folder / "runs" / run / "checkpoints").glob("step-*")
        return (checkpoint / "model.safetensors").read_bytes()


class Demo(SummarizeTest):
    def test_reaches_its_score_on_one_rank_and_on_two(self):
        two = self.train("two", "--preset", "demo", "--nproc", "2")
        one = self.train("one", "--preset", "demo", "--nproc", "1")
        self.assertGreaterEqual(two["rouge2"], 0.80)
        self.assertLess(two["baselines"]["constant"]["rouge2"], 0.20)
        self.assertAlmostEqual(one["rouge2"], two["rouge2"], delta=0.05)
        log = (self.folder / "runs/two/logs/rank0.log").read_text()
        self.assertIn("samples   no sample went to two ranks; compared in 8 of 750 steps\n", log)
        self.assertIn("batch      32 samples a step = 16 a micro-batch x 1 micro-batch x 2 ranks\n", log)

        # What the run says is what the command says, on any number of ranks.
        names = ("loss", "rouge1", "rouge2", "rougeL", "samples", "baselines")
        for ranks in (1, 2, 3):
            again = self.result("evaluate", "--from", "runs/two", "--nproc", ranks)
            self.assertEqual(list(again), list(names))
            for name in names[1:]:
                self.assertEqual(again[name], two[name], (ranks, name))
            self.assertAlmostEqual(again["loss"], two["loss"], delta=1e-5)

        shown = self.run_well("evaluate", "--from", "runs/two")
        self.assertEqual(len(re.findall("^dialogue  ", shown, re.M)), 3)
        true, written = re.findall("^reference (.*)$", shown, re.M), re.findall("^predicted (.*)$", shown, re.M)
        self.assertEqual(true, written)
        rows = self.read_csv("runs/two/validation.csv")
        self.run_well("predict", "--from", "runs/two", "--nproc", "2")
        submission = self.read_csv("submission.csv")
        self.assertEqual([row["id"] for row in submission], [row["id"] for row in rows])
        right = sum(row["summary"] == known["summary"] for row, known in zip(submission, rows))
        self.assertGreater(right, 0.8 * len(rows))


class Exact(SummarizeTest):
    def test_mode_gives_the_same_bits_on_one_rank_and_on_two(self):
        for ranks in ("1", "2"):
            self.train(ranks, *TINY, "--dropout", "0.1", "--shards", "2", "--max-steps", "5", "--nproc", ranks)
        self.assertEqual(self.weights("1"), self.weights("2"))
        self.train("other", *TINY, "--dropout", "0.1", "--shards", "2", "--max-steps", "5", "--seed", "2")
        self.assertNotEqual(self.weights("1"), self.weights("other"))


class Train(SummarizeTest):
    def test_takes_tables_with_any_columns_and_keeps_what_it_held_out(self):
        rows = [[i, f"A: hi {i}\nB: \"bye\", {i}", f"A greets {i}."] for i in range(40)]
        with open(self.folder / "train.csv", "w", newline="") as file:
            csv.writer(file).writerows([["who", "said", "short"], *rows])
        columns = ["--id-column", "who", "--dialogue-column", "said", "--summary-column", "short"]
        self.train("mine", *TINY, "--train", "train.csv", *columns, "--max-steps", "3")
        kept = self.read_csv("runs/mine/validation.csv")
        self.assertEqual(len(kept), 2)
        for row in kept:
            self.assertEqual([row["dialogue"], row["summary"]], rows[int(row["id"])][1:])
        self.run_well("predict", "--from", "runs/mine", "--test", "train.csv", *columns, "--output", "out.csv")
        self.assertEqual([row["who"] for row in self.read_csv("out.csv")], [str(i) for i in range(40)])

    def test_evaluates_as_often_as_asked_and_keeps_the_best(self):
        self.train("often", *TINY, "--max-steps", "5", "--eval-every", "2", "--keep-last", "1")
        log = [json.loads(line) for line in (self.folder / "runs/often/events.jsonl").read_text().splitlines()]
        evaluations = {event["step"]: event["loss"] for event in log if "rouge2" in event and event["event"] != "end"}
        self.assertEqual(list(evaluations), [2, 4, 5])  # the last model too, or the best might be another
        best = min(evaluations, key=evaluations.get)
        self.assertIn(f"step-{best:08d}", self.run_well("evaluate", "--from", "runs/often"))

    def test_stops_when_the_patience_is_exhausted(self):
        stopped = self.train("patient", *TINY, "--lr", "0", "--max-steps", "50", "--eval-every", "2", "--patience", "3")
        self.assertEqual(stopped["steps"], 8)  # the best is the first of the evaluations at steps 2, 4, 6 and 8
        self.assertIn("--patience 3", stopped["why_stopped"])
        self.assertEqual(stopped["samples"], 4)
        self.assertIn("step-00000002", self.run_well("evaluate", "--from", "runs/patient"))

    def test_that_is_stopped_does_not_evaluate_first(self):
        stopped = self.train("stopped", *TINY, "--max-steps", "100000", "--epochs", "1000", "--stop-at", "3s")
        self.assertEqual(stopped["why_stopped"], "--stop-at")
        self.assertNotIn("rouge2", stopped)
        self.assertLess(stopped["steps"], 100000)

    def test_goes_on_where_it_was(self):
        self.train("whole", *TINY, "--max-steps", "6", "--schedule", "constant")
        self.train("parts", *TINY, "--max-steps", "3", "--schedule", "constant")
        self.train("parts", *TINY, "--max-steps", "6", "--schedule", "constant", "--keep-last", "1")
        self.assertEqual(self.weights("whole"), self.weights("parts"))

    def test_says_what_the_guides_preset_is_on_any_number_of_ranks(self):
        for ranks, factors in ((1, "16 micro-batches x 1 rank"), (2, "8 micro-batches x 2 ranks")):
            self.train(f"g{ranks}", "--preset", "guide", "--init", "", *TINY, "--batch-size", "16", "--max-steps", "1",
                       "--nproc", ranks, "--warmup-steps", "0", "--transport", "auto")
            log = self.folder / f"runs/g{ranks}/logs/rank0.log"
            shown = log.read_text() if ranks == 2 else self.run_summarize(
                "train", "--name", "again", "--preset", "guide", "--init", "", *TINY, "--batch-size", "16", "--max-steps", "1",
                "--warmup-steps", "0").stdout
            self.assertIn(f"batch      256 samples a step = 16 a micro-batch x {factors}\n", shown)
            self.assertIn("for the 512 samples a step of guide 003: --global-batch 512\n", shown)
            self.assertRegex(shown, f"guide      1 step, one update = {16 // ranks} micro-batches on each rank; ")

    def test_takes_a_preset_from_a_file_and_from_the_settings_of_a_run(self):
        (self.folder / "mine.yaml").write_text("preset: demo\nseed: 7\n")
        shown = self.run_well("train", "--config", "mine.yaml", "--dump-config")
        self.assertRegex(shown, "(?m)^width: 64  # default$")
        self.assertRegex(shown, "(?m)^seed: 7 ")
        (self.folder / "all.yaml").write_text(shown)
        again = self.run_well("train", "--config", "all.yaml", "--dump-config")
        self.assertEqual(re.sub("  #.*", "", again), re.sub("  #.*", "", shown))


class Weights(SummarizeTest):
    def setUp(self):
        super().setUp()
        self.trained = self.train("tiny", *TINY, "--max-steps", "30")
        self.run_well("export", "--from", "runs/tiny", "--output", "out")

    def test_exported_are_the_same_model_in_transformers(self):
        import torch
        from transformers import AutoTokenizer, GPT2LMHeadModel
        model, tokenizer = GPT2LMHeadModel.from_pretrained(self.folder / "out").eval(), AutoTokenizer.from_pretrained(self.folder / "out")
        row = self.read_csv("runs/tiny/validation.csv")[0]
        written = self.run_well("sample", "--from", "out", "--dialogue", row["dialogue"], "--max-new-tokens", "12").rstrip("\n")
        prefix = "Please summarize the following dialogue:\n\nDialogue:\n"
        ids = [id for part in (prefix, row["dialogue"], "summary:") for id in tokenizer(part)["input_ids"]]
        with torch.no_grad():
            new = model.generate(torch.tensor([ids]), attention_mask=torch.ones(1, len(ids)), do_sample=False, max_new_tokens=12,
                                 pad_token_id=tokenizer.eos_token_id)[0, len(ids):]
        self.assertEqual(written, tokenizer.decode(new, skip_special_tokens=True).strip())

    def test_of_transformers_in_several_files_come_in(self):
        from transformers import GPT2LMHeadModel
        GPT2LMHeadModel.from_pretrained(self.folder / "out").save_pretrained(self.folder / "parts", max_shard_size="10KB")
        self.assertGreater(len(list((self.folder / "parts").glob("*.safetensors"))), 1)
        for name in ("vocab.json", "merges.txt"):
            (self.folder / "parts" / name).write_bytes((self.folder / "out" / name).read_bytes())
        again = self.train("again", *SHORT, "--init", "parts", "--lr", "0", "--max-steps", "1")
        self.assertAlmostEqual(again["loss"], self.trained["loss"], delta=1e-5)
        refused = self.run_summarize("train", *TINY, "--init", "parts")
        self.assertRegex(refused.stderr, r"^error: init is parts.* \(--init\)\nhint: .*--layers, --heads, --width, --context, "
                                         "--vocabulary, --bias and --gelu.*--init\n$")

    def test_are_evaluated_alike_wherever_they_lie(self):
        rows = ["--valid", "runs/tiny/validation.csv", "--eval-samples", "4"]
        (checkpoint,) = (self.folder / "runs/tiny/checkpoints").glob("step-*")
        for place in ("runs/tiny", "runs/latest", "out", checkpoint):
            self.assertEqual(self.result("evaluate", "--from", place, *rows)["loss"], self.trained["loss"], place)

    def test_are_evaluated_with_a_word_on_how_far_it_is(self):
        words = ["evaluate", "--from", "runs/tiny", "--eval-samples", "4", "--decode-batch", "2"]
        self.assertEqual(self.run_summarize(*words).stderr, "predicted 2/4\npredicted 4/4\n")
        self.assertEqual(self.run_summarize(*words, "--no-progress").stderr, "")

    def test_in_sixteen_bits_give_nearly_the_same(self):
        loss = self.result("evaluate", "--from", "runs/tiny", "--precision", "bf16")["loss"]
        self.assertAlmostEqual(loss, self.trained["loss"], delta=0.02 * self.trained["loss"])
        self.assertNotEqual(loss, self.trained["loss"])


class Predict(SummarizeTest):
    def test_gives_the_same_on_any_number_of_ranks_however_it_draws(self):
        self.train("tiny", *TINY, "--max-steps", "5")
        for how in (["--temperature", "0.9", "--top-k", "20", "--top-p", "0.9"], ["--beams", "3", "--no-repeat-ngram", "3"]):
            files = []
            for ranks in ("1", "3"):
                self.run_well("predict", "--from", "runs/tiny", "--max-new-tokens", "8", "--nproc", ranks, *how)
                files.append((self.folder / "submission.csv").read_bytes())
            self.assertEqual(files[0], files[1], how)
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["runs", "submission.csv"])


class Score(SummarizeTest):
    def test_is_that_of_the_rouge_score_package(self):
        from rouge_score import rouge_scorer
        self.train("tiny", *TINY, "--max-steps", "40")
        result = self.result("evaluate", "--from", "runs/tiny", "--eval-samples", "30", "--output", "pairs.csv")
        pairs = self.read_csv("pairs.csv")
        self.assertEqual(len(pairs), 30)
        for stem, flags in ((True, []), (False, ["--no-stem"])):
            scorer = rouge_scorer.RougeScorer(["rouge1", "rouge2", "rougeL", "rougeLsum"], use_stemmer=stem)
            theirs = [scorer.score(pair["reference"], pair["prediction"]) for pair in pairs]
            ours = self.result("score", "pairs.csv", *flags)
            self.assertEqual(ours.pop("samples"), 30)
            for name, f1 in ours.items():
                self.assertAlmostEqual(f1, sum(score[name].fmeasure for score in theirs) / 30, delta=1e-9)
                if stem and name in result:
                    self.assertAlmostEqual(f1, result[name], delta=1e-12)
        shown = self.run_well("score", "pairs.csv", "--bootstrap")
        self.assertRegex(shown, r"^30 pairs    precision  recall  f1      95 % interval of f1\nrouge1       0\.\d{4}     0\.\d{4}  "
                                r"0\.\d{4}  0\.\d{4} to 0\.\d{4}\n")


class Tokens(SummarizeTest):
    def test_are_those_of_the_tokenizers_package(self):
        from tokenizers import Tokenizer
        lines = ["Ann: shall we?", "", "  two  spaces ", "漢字 emoji 🙂 é", "<|endoftext|>"]
        (self.folder / "text.txt").write_text("\n".join(lines) * 5)
        self.run_well("tokenizer", "train", "--size", "300", "--output", "tok", "text.txt")
        theirs = Tokenizer.from_file(str(self.folder / "tok/tokenizer.json"))
        encoded = self.run_well("tokenizer", "encode", "--tokenizer", "tok", text="\n".join(lines) + "\n")
        self.assertEqual(encoded, "".join(" ".join(map(str, theirs.encode(line).ids)) + "\n" for line in lines))
        self.assertEqual(self.run_well("tokenizer", "decode", "--tokenizer", "tok", text=encoded), "\n".join(lines) + "\n")


if __name__ == "__main__":
    unittest.main(argv=sys.argv)

"""`tandem summarize` meets numbers and files without measure: refused in one sentence before any work, never a crash or a hang."""

import concurrent.futures
import json
import os
import pty
import re
import resource
import unittest

from summarize_support import HEADER, SHAPE, SHORT, SummarizeTest
from support import BUILD, read_terminal

MOST = str(2**63 - 1)
PROGRAM = BUILD / "bin" / "tandem-summarize"

# Which of 0, -1 and 2^63 - 1 each number takes; nan and inf no real one does. What is not taken is refused by its name.
REAL = {"dropout", "lr", "clip", "beta1", "beta2", "eps", "weight-decay", "min-factor", "power", "temperature", "top-p",
        "length-penalty", "peak-tflops"}
NONE, ZERO = set(), {"0"}
NUMBERS = {
    "workers": {"0", "-1"}, "prefetch": ZERO, "skip-bad": ZERO,
    "layers": NONE, "heads": NONE, "width": NONE, "context": NONE, "vocabulary": NONE, "dropout": ZERO,
    "lr": {"0", MOST}, "clip": {"0", MOST}, "beta1": ZERO, "beta2": ZERO, "eps": {"0", MOST}, "weight-decay": {"0", MOST},
    "warmup-steps": ZERO, "min-factor": ZERO, "power": {MOST}, "reference-batch": ZERO, "eval-every": ZERO, "patience": ZERO,
    "eval-samples": ZERO, "eval-batch": NONE, "max-new-tokens": NONE, "min-new-tokens": ZERO, "temperature": ZERO, "top-k": ZERO,
    "top-p": NONE, "beams": NONE, "length-penalty": {"0", "-1"}, "no-repeat-ngram": ZERO, "decode-batch": NONE,
    "nproc": NONE, "batch-size": NONE, "accumulate": NONE, "global-batch": NONE, "shards": NONE, "epochs": NONE, "max-steps": NONE,
    "seed": {"0", MOST}, "threads": NONE, "save-every": ZERO, "stop-at": ZERO, "keep-last": ZERO,
    "first-bucket": {"0", MOST}, "bucket": {"0", MOST}, "timeout": NONE, "join-timeout": NONE, "peak-tflops": {MOST},
}
OTHER_NUMBERS = {("evaluate",): {"show": ZERO}, ("sample",): {"count": NONE},
                 ("tokenizer", "train", "--output", "new"): {"size": NONE, "min-count": NONE}}


class Numbers(SummarizeTest):
    def refusal_of(self, command: tuple, flag: str, value: str) -> tuple[str, str, int, str]:
        """With --dump-config a command ends after it has checked its settings."""
        result = self.run_tandem(*command, f"--{flag}={value}", "--dump-config", program=PROGRAM)
        return flag, value, result.returncode, result.stderr

    def assert_taken(self, command: tuple, numbers: dict[str, set]) -> None:
        cases = [(flag, value) for flag in numbers for value in ("0", "-1", MOST, *(("nan", "inf") if flag in REAL else ()))]
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            ends = list(pool.map(lambda case: self.refusal_of(command, *case), cases))
        for flag, value, code, said in ends:
            with self.subTest(flag, value=value):
                if value in numbers[flag]:
                    self.assertEqual((code, said), (0, ""))
                else:
                    self.assertIn(code, (2, 3), said)
                    self.assertRegex(said, rf"^error: .*\b{flag}\b.*\nhint: .+\n$")

    def test_of_a_training_are_all_here(self):
        settings = dict(line.removesuffix("  # default").split(": ", 1) for line in self.run_well("train", "--dump-config").stdout.splitlines())
        numeric = {name for name, value in settings.items() if re.match(r"null$|-?\d", value)}
        self.assertEqual(numeric, set(NUMBERS))

    def test_of_a_training_are_taken_or_refused_by_name(self):
        self.assert_taken(("train",), NUMBERS)

    def test_of_other_commands_are_taken_or_refused_by_name(self):
        for command, numbers in OTHER_NUMBERS.items():
            self.assert_taken(command, numbers)

    def test_that_are_taken_can_be_trained_with(self):
        for value in ("0", "-1", MOST):
            alone = {"stop-at", "first-bucket", "bucket"}  # no step would be left; the others are sizes of the same thing
            flags = [f"--{flag}={value}" for flag, taken in NUMBERS.items() if value in taken and flag not in alone]
            with self.subTest(value):
                result = self.summarize("train", "--train", "train.csv", *SHAPE, "--schedule", "constant", *SHORT, *flags)
                self.assertIn(result.returncode, (0, 8), result.stderr)  # 8: with 2^63 - 1 the loss is not finite

    def test_of_buckets_make_no_difference(self):
        for value in ("0", MOST):
            self.run_well("train", "--train", "train.csv", *SHAPE, *SHORT, "--nproc", 2, f"--first-bucket={value}", f"--bucket={value}")

    def test_that_are_times_end_within_a_year(self):
        for flag in ("timeout", "join-timeout", "stop-at"):
            self.assert_refused(("train", f"--{flag}", "2562047h"), 2, (f"{flag} is 2562047h (--{flag})",), ("8760h",))

    def test_whose_product_is_too_large_are_refused(self):
        for flag in ("accumulate", "shards"):
            self.assert_refused(("train", "--batch-size", 10**6, f"--{flag}", 10**6), 2, ("batch-size is 1000000", f"{flag} 1000000"), ())


class Memory(SummarizeTest):
    def test_that_a_model_would_need_is_compared_with_that_of_the_machine(self):
        for flag, value in (("--layers", 100_000), ("--width", 100_000), ("--vocabulary", 1_000_000)):
            words = ("--train", "train.csv", "--layers", 1000, "--heads", 2, "--width", 10_000, flag, value)
            self.assert_train_refused(words, 10, (str(value), "iB a rank", "memory for 1 rank"), (flag,))

    def test_of_threads_is_a_limit_of_the_workers(self):
        limit = resource.getrlimit(resource.RLIMIT_STACK)[1]
        if limit != resource.RLIM_INFINITY:
            self.skipTest("the stack of a thread cannot be made large here")
        huge = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_STACK, (2**46, limit))}
        result = self.summarize("train", "--train", "train.csv", *SHAPE, *SHORT, "--workers", 3, **huge)
        self.assertRegex(result.stderr, r"^error: workers is 3\b.*\b0 threads.* \[rank 0 of 1\]\nhint: .*--workers.*ulimit -u.*\n$")
        self.assertEqual(result.returncode, 3)


class Configs(SummarizeTest):
    def assert_config_refused(self, name: str, value: int, code: int, *facts: str) -> None:
        for folder in (self.copy_of_hf("hf"), self.copy_of_run()):
            config = next(folder.glob("**/config.json"))
            settings = {**json.loads(config.read_text()), name: value}
            config.write_text(json.dumps(settings))
            with self.subTest(folder, name=name, value=value):
                self.assert_refused(("evaluate", "--from", folder, "--valid", "train.csv"), code, (str(config), *facts), ())
                self.assert_train_refused(("--train", "train.csv", "--init", folder), code, (str(config), *facts), ())

    def test_with_more_than_their_weights_hold_are_refused_before_the_model_is_made(self):
        self.assert_config_refused("n_layer", 100_000, 9, "100000 layers", "weights")

    def test_with_a_table_that_their_weights_do_not_hold_are_refused(self):
        self.assert_config_refused("vocab_size", 1_000_000, 9, "vocabulary 1000000", "weights")

    def test_with_a_number_beyond_its_range_are_refused(self):
        self.assert_config_refused("n_layer", 10**9, 8, "layers is 1000000000")

    def test_with_another_number_beyond_its_range_are_refused(self):
        self.assert_config_refused("n_head", 10**5 + 1, 8, "heads is 100001")

    def test_of_a_run_without_an_end_are_refused(self):
        self.assert_refused(("train", "--config", "/dev/zero"), 3, ("/dev/zero", "1GiB"), ("file",))


class Caches(SummarizeTest):
    def test_that_are_damaged_are_made_again_with_one_line(self):
        train = ("train", "--train", "train.csv", *SHAPE, *SHORT)
        self.run_well(*train)
        (cache,) = (self.folder / "runs" / ".tokens").iterdir()
        good = cache.read_bytes()
        for damage in (lambda: cache.write_bytes(good[:-1]), lambda: cache.write_bytes(good[:-1] + bytes([good[-1] ^ 1])),
                       lambda: (cache.unlink(), os.mkfifo(cache)), lambda: (cache.unlink(), cache.mkdir())):
            damage()
            said = self.run_well(*train, "--nproc", 2).stdout
            self.assertEqual(len(re.findall(rf"(?m)^cache +.*{cache.name}.*", said)), 1, said)
            self.assertEqual(cache.read_bytes(), good)
        self.assertNotIn("\ncache", self.run_well(*train).stdout)


class EscapeCodes(SummarizeTest):
    def test_of_a_table_are_not_in_its_errors(self):
        self.write("odd.csv", "id,\x1b[2Jdialog,\x1b]0;summary\a\n")
        result = self.summarize("evaluate", "--from", self.tiny, "--valid", "odd.csv")
        self.assert_error(result, 8, ("odd.csv", "'dialogue'", "id, dialog"), ("--dialogue-column",))
        self.assertNotIn("\x1b", result.stderr)

    def test_of_rows_are_not_shown_and_are_written_as_they_are(self):
        self.write("odd.csv", HEADER + "1,Ann: \x1b[31mtea?,\x1b[2JAnn drinks.\n")
        result = self.run_well("evaluate", "--from", self.tiny, "--valid", "odd.csv", "--max-new-tokens", 2, "--output", "pairs.csv")
        self.assertIn("Ann: tea?", result.stdout)
        self.assertNotIn("\x1b", result.stdout)
        self.assertIn("\x1b[2JAnn drinks.", (self.folder / "pairs.csv").read_text())

    def test_of_a_text_reach_a_file_but_no_terminal(self):
        text = "a\x1b[31mb\n"
        ids = self.run_well("tokenizer", "encode", "--tokenizer", self.hf, input=text).stdout
        decode = ("tokenizer", "decode", "--tokenizer", self.hf)
        self.assertEqual(self.run_well(*decode, input=ids).stdout, text)
        terminal, stdout = pty.openpty()
        self.run_tandem("summarize", *decode, input=ids, capture_output=False, stdout=stdout)
        os.close(stdout)
        self.assertEqual(read_terminal(terminal).split(), [b"ab"])


if __name__ == "__main__":
    unittest.main()

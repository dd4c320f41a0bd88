"""docs/summarize.md is true: the program takes its commands and flags, prints its lines and names, and says its errors."""

import itertools
import json
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "launch"))
from doc_links import lost_targets  # noqa: E402
from support import SOURCE, LaunchTest  # noqa: E402

PAGE = (SOURCE / "docs" / "summarize.md").read_text()
COMMANDS = ("train", "evaluate", "predict", "sample", "score", "export", "tokenizer train", "tokenizer encode", "tokenizer decode")
NOT_OURS = {"--multi_gpu", "--config_file", "--nproc_per_node", "--standalone", "--master_port",  # of accelerate and torchrun
            "--compile", "--logdir"}  # of bench/gpt2 and tensorboard
WORDS = " ".join(map("".join, itertools.product("bdfg", "aeio", "klmn", "aeiu", "rst")))  # enough for a thousand tokens
ROWS = "dialogue,summary\n" + f"{WORDS},it is short\n" * 4
TRAIN = ["train", "--preset", "demo", "--train", "rows.csv", "--valid", "rows.csv", "--max-steps", "4", "--warmup-steps", "0",
         "--batch-size", "1", "--global-batch", "2", "--max-new-tokens", "1", "--layers", "1"]

# What train.csv holds, and what is then said of it.
TABLES = {
    "text,summary\na,b\n": "train.csv has no column 'dialogue', only text, summary",
    "": "train.csv is empty",
    "id,dialogue,summary\n": "train.csv has a header and no rows",
    ",".join(map(str, range(20_000))): "train.csv, row 1 (line 1): there are more than 16384 columns",
    "PK\x03\x04": "train.csv is compressed with zip, not a CSV text",
    "id,dialogue,summary\n1,hello,\n": "train.csv, row 2 (line 2): the field 'summary' is empty",
    "id,dialogue,summary\n1,a,b\n1,c,d\n": "train.csv, row 3 (line 3): the id '1' is that of train.csv, row 2 (line 2) too",
    f"dialogue,summary\n{'a' * (2 << 20)},b\n": "train.csv, row 2 (line 2): the field 'dialogue' has 2097152 bytes",
    'id,dialogue,summary\n1,"a,b\n':
        "train.csv, row 2 (line 2), column 'dialogue': the quote that opens on line 2 is never closed",
    "id,dialogue,summary\n1,a\n": "train.csv, row 2 (line 2): 2 fields for 3 columns, none for column 'summary'",
    "dialogue,summary\na,b\nc,d\n": "train.csv has 2 rows, too few to hold some out",
    "dialogue,summary\n甲：你好，乙。,问好\n".encode("gb18030"): "train.csv is Chinese text in GBK or GB18030, not UTF-8",
    "dialogue,summary\na,b\n".encode("utf-16"): "train.csv is UTF-16, not UTF-8",
}

# The same of commands, which find the files of make_files().
REFUSED = {
    "train --preset demo --train missing.csv": "cannot read missing.csv: No such file or directory",
    "train --preset demo --train /dev/zero": "cannot read /dev/zero: it has more than 1GiB, perhaps without an end",
    "train --preset demo --max-steps 0": "max-steps is 0 (--max-steps)",
    "train": "there is no training data",
    "train --preset guide --train rows.csv --valid rows.csv":
        "there is no folder 'gpt2', and no such model in the cache of Hugging Face or /kaggle/input",
    "train --preset demo --init gpt2-dialogues --tokenizer other":
        "the tokenizer in other has 1000 tokens, and the model in gpt2-dialogues knows 512",
    "train --preset demo --init pickled":
        "pickled has pytorch_model.bin and no model.safetensors: pickled weights can run any code, and are not read",
    "train --preset demo --init several": "there are 2 models in several: several/a, several/b",
    "train --preset demo --tokenizer other --vocabulary 300": "both --vocabulary and --tokenizer are given",
    "train --preset demo --train rows.csv --encoding klingon": "encoding is 'klingon', which iconv does not know (--encoding)",
    "train --preset demo --train bytes.csv --encoding gb18030": "bytes.csv is not in the encoding gb18030: see byte 21, on line 2",
    "tokenizer encode --tokenizer nowhere": "tokenizer: nowhere has neither tokenizer.json nor vocab.json with merges.txt",
    "export --from nowhere --output new": "there is no model in nowhere",
    "evaluate --from runs/stopped": "there is no complete checkpoint in FOLDER/checkpoints",
    "evaluate --from gpt2-dialogues": "gpt2-dialogues has no validation.csv with rows to use",
    "export --from runs/whole --output gpt2-dialogues": "output is gpt2-dialogues, which exists already (--output)",
    "train --train rows.csv --valid rows.csv --vocabulary 257 --context 30 --marker = --prefix 'Summarize this, if you please:'":
        "prefix and marker are 31 tokens, and the context is 30",
    "train --preset guide --train rows.csv --valid rows.csv --init gpt2-dialogues --max-steps 31 --warmup-steps 100":
        "warmup-steps is 100, but the run has only 31 steps",
    "train --preset guide --train rows.csv --valid rows.csv --init gpt2-dialogues --nproc 3 --global-batch 256":
        "a global batch of 256 is no multiple of 16 x 3 (batch size x ranks)",
}


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.M | re.S)


def commands() -> list[list[str]]:
    """The words after `tandem summarize`, in blocks and in text, without what only the shell is told."""
    lines = [line.lstrip("!") for block in blocks("sh") for line in block.splitlines()] + re.findall(r"`([^`\n]+)`", PAGE)
    whole = [line.partition(" < ")[0] for line in lines if re.match(r"tandem summarize [a-z]", line)]
    return [shlex.split(line)[2:] for line in dict.fromkeys(whole)]


def labels(screen: str) -> list[str]:
    return re.findall(r"^([a-z]+) {2,}", screen, re.M)


def names(value: object) -> object:
    return {key: names(inner) for key, inner in value.items()} if isinstance(value, dict) else None


class SummarizeDoc(LaunchTest):
    def summarize(self, *words: str) -> subprocess.CompletedProcess:
        env = {"HF_HOME": str(self.folder / "no-cache"), "OMP_NUM_THREADS": "1"}
        return self.run_tandem("summarize", *words, env=env, stdin=subprocess.DEVNULL)

    def result(self, *words: str) -> dict:
        done = self.summarize(*words, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.screen = done.stderr
        return json.loads(done.stdout)

    def settings(self, words: list[str]) -> dict[str, str]:
        """What the program makes of a command line, which it does not run."""
        dumped = self.summarize(*words, "--dump-config")
        self.assertEqual((dumped.returncode, dumped.stderr), (0, ""), words)
        return dict(re.findall(r"^([\w-]+): \"?(.*?)\"?(?:  # .*)?$", dumped.stdout, re.M))

    def test_its_commands_are_understood(self):
        self.write("run.yaml", "".join(blocks("yaml")))
        self.assertGreater(len(commands()), 20)
        for words in commands():
            settings = self.settings(words)
            for flag, value in itertools.pairwise([*words, "--end"]):
                if flag.startswith("--") and flag not in ("--config", "--dump-config"):
                    self.assertIn(settings[flag[2:]], ("true", value), words)

    def test_its_settings_file_is_understood(self):
        self.write("run.yaml", "".join(blocks("yaml")))
        settings = self.settings(["train", "--config", "run.yaml"])
        self.assertEqual([settings[name] for name in ("preset", "init", "precision", "global-batch")], ["guide", "gpt2", "fp16", "512"])

    def test_it_names_flags_that_exist(self):
        helps = "".join(self.summarize(*command.split(), "--help").stdout for command in COMMANDS)
        known = set(re.findall(r"--[a-z][\w-]*", helps)) | NOT_OURS
        self.assertEqual(set(re.findall(r"(?<![\w-])--[a-z][\w-]*", PAGE)) - known, set())

    def test_it_shows_the_lines_and_names_of_a_run(self):
        self.write("rows.csv", ROWS)
        trained = self.result(*TRAIN, "--nproc", "2")
        [screen] = [block for block in blocks("text") if "\ndone " in block]
        self.assertEqual(labels(self.screen), [label for label in labels(screen) if label != "step"])
        [shown] = [json.loads(block) for block in blocks("text") if block.startswith("{")]
        self.assertEqual(names(self.result("evaluate")), names(shown))
        [told] = re.findall(r"^\| `--json` \| (`steps`.*), then what `evaluate --json` has", PAGE, re.M)
        self.assertEqual(names(trained), names(shown) | dict.fromkeys(re.findall(r"`(\w+)`", told)))

    def make_files(self):
        self.write("rows.csv", ROWS)
        self.write("words.txt", WORDS)
        (self.folder / "bytes.csv").write_bytes(b"dialogue,summary\nabc,\xff\xff\n")
        for name in ("pickled/config.json", "pickled/pytorch_model.bin", "several/a/config.json", "several/b/config.json"):
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            self.write(name, "{}")
        self.result(*TRAIN, "--name", "whole")
        for words in (["export", "--from", "runs/whole", "--output", "gpt2-dialogues"],
                      ["tokenizer", "train", "--size", "1000", "--min-count", "1", "--output", "other", "words.txt"]):
            done = self.summarize(*words)
            self.assertEqual(done.returncode, 0, done.stderr)
        (self.folder / "runs" / "whole").rename(self.folder / "runs" / "stopped")
        shutil.rmtree(self.folder / "runs" / "stopped" / "checkpoints")

    def assert_says(self, words: list[str], message: str) -> None:
        refused = self.summarize(*words)
        said = message.replace("FOLDER", str(self.folder / "runs" / "stopped"))
        self.assertRegex(refused.stderr, rf"(?m)^error: {re.escape(said)}( \[rank \d of \d\])?\nhint: .")
        self.assertNotEqual(refused.returncode, 0)

    def test_it_lists_the_errors_of_the_tests_below(self):
        told = re.findall(r"^\| `(.*?)` \|", PAGE.partition("\n## Errors\n")[2], re.M)
        self.assertEqual(sorted(told), sorted([*TABLES.values(), *REFUSED.values()]))

    def test_its_errors_are_said_of_bad_tables(self):
        for table, message in TABLES.items():
            (self.folder / "train.csv").write_bytes(table if isinstance(table, bytes) else table.encode())
            self.assert_says(["train", "--preset", "demo", "--train", "train.csv"], message)

    def test_its_errors_are_said_of_bad_commands(self):
        self.make_files()
        for command, message in REFUSED.items():
            self.assert_says(shlex.split(command), message)

    def test_it_points_to_what_exists(self):
        self.assertEqual(lost_targets(PAGE, SOURCE), [])


if __name__ == "__main__":
    unittest.main()

"""Ids and files go between Tandem and the Python packages tokenizers and transformers, in both directions."""

import array
import importlib.util
import os
import pathlib
import random
import subprocess
import sys
import sysconfig
import tempfile
import unicodedata
import unittest

SOURCE = pathlib.Path(os.environ["TANDEM_SOURCE"])
TOKENIZE = pathlib.Path(os.environ["TANDEM_BUILD"]) / "tests" / "tokenize"
END = "<|endoftext|>"
# Letters, marks, numbers, symbols, spaces and controls; what Unicode 3.2 had has its class for ever.
BLOCKS = [(0x00, 0x250), (0x2B0, 0x590), (0x590, 0x700), (0x900, 0xE00), (0xE00, 0x1100), (0x1200, 0x1380), (0x16A0, 0x1810),
          (0x2000, 0x2070), (0x2070, 0x2C00), (0x3000, 0x3100), (0x4E00, 0x4F00), (0xAC00, 0xAD00), (0xF900, 0xFA00),
          (0xFE00, 0x10000), (0x1D400, 0x1D800), (0x20000, 0x20100)]
EMOJI = "😀👍🏽👩‍👩‍👧🇩🇪❤️🎉🤖"
SPACES = [" ", " ", " ", " ", "  ", "\n", "\r\n", "\t", "   ", "\u00a0", "\u3000", "\u2028", "\x00", "'s", "'ll", "'", "’"]


def real_text():
    stdlib = pathlib.Path(sysconfig.get_path("stdlib"))
    return "".join(path.read_text() for path in sorted((stdlib / "asyncio").glob("*.py")))


def script_text(num_characters, seed):
    """Words of one script each, at random, with spaces, controls and emoji between."""
    chance = random.Random(seed)
    scripts = [[chr(point) for point in range(*block) if unicodedata.ucd_3_2_0.category(chr(point)) not in ("Cn", "Cs", "Co")]
               for block in BLOCKS]
    parts, size = [], 0
    while size < num_characters:
        script = chance.choice(scripts)
        part = "".join(chance.choices(script, k=chance.randint(1, 8))) + chance.choice(SPACES)
        parts.append(part + chance.choice(EMOJI) if chance.random() < 0.05 else part)
        size += len(parts[-1])
    return "".join(parts)


def tokenize(command, *args, given=b""):
    return subprocess.run([TOKENIZE, command, *args], input=given, stdout=subprocess.PIPE, check=True, timeout=120).stdout


def encode(folder, text, command="encode"):
    given = text if isinstance(text, bytes) else text.encode()
    return array.array("i", tokenize(command, folder, given=given)).tolist()


class Tokenizer(unittest.TestCase):
    def setUp(self):
        if any(importlib.util.find_spec(name) is None for name in ("tokenizers", "transformers")):
            self.skipTest(f"{sys.executable} has no tokenizers or no transformers")
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def train_theirs(self, text, size):
        """Written as tokenizer.json into one folder, and as vocab.json with merges.txt into another."""
        import tokenizers
        from tokenizers import decoders, models, pre_tokenizers, trainers
        theirs = tokenizers.Tokenizer(models.BPE())
        theirs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        theirs.decoder = decoders.ByteLevel()
        theirs.train_from_iterator([text], trainers.BpeTrainer(
            vocab_size=size, special_tokens=[END], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
        for name in ("one", "two"):
            (self.folder / name).mkdir()
        theirs.save(str(self.folder / "one" / "tokenizer.json"))
        theirs.model.save(str(self.folder / "two"))
        return theirs

    def train_ours(self, text, size):
        tokenize("train", str(size), self.folder / "ours", given=text.encode())
        return self.folder / "ours"

    def test_ids_of_a_million_characters_are_those_of_tokenizers(self):
        text = script_text(1_000_000, seed=1) + real_text()
        theirs = self.train_theirs(script_text(100_000, seed=2) + real_text(), 3000)
        expected = theirs.encode(text).ids
        self.assertEqual(encode(self.folder / "one", text), expected)
        self.assertEqual(encode(self.folder / "two", text), expected)
        self.assertEqual(tokenize("decode", self.folder / "one", given=array.array("i", expected).tobytes()).decode(), text)

    def test_special_tokens_are_those_of_tokenizers(self):
        theirs = self.train_theirs(real_text(), 500)
        text = f"{END}if x:{END} {END}\n  return{END}"
        self.assertEqual(encode(self.folder / "one", text), theirs.encode(text).ids)
        self.assertEqual(encode(self.folder / "two", text), theirs.encode(text).ids)
        self.assertNotIn(theirs.token_to_id(END), encode(self.folder / "one", text, "encode-as-text"))

    def test_broken_bytes_have_the_ids_of_what_python_decodes(self):
        theirs = self.train_theirs(real_text(), 500)
        chance = random.Random(3)
        for _ in range(10):
            broken = bytearray(script_text(2000, chance.random()).encode())
            for _ in range(300):
                broken[chance.randrange(len(broken))] = chance.randrange(256)
            self.assertEqual(encode(self.folder / "one", bytes(broken)), theirs.encode(broken.decode(errors="replace")).ids)

    def test_our_files_give_the_same_ids_in_tokenizers_and_transformers(self):
        import tokenizers
        import transformers
        ours = self.train_ours(real_text(), 2000)
        text = script_text(20_000, seed=4) + real_text() + END
        expected = encode(ours, text)
        self.assertEqual(tokenizers.Tokenizer.from_file(str(ours / "tokenizer.json")).encode(text).ids, expected)
        for files in ("all three", "vocab.json and merges.txt"):
            theirs = transformers.GPT2TokenizerFast.from_pretrained(str(ours))
            self.assertEqual(theirs(text)["input_ids"], expected, files)
            theirs.save_pretrained(self.folder / files)
            self.assertEqual(encode(self.folder / files, text), expected, files)
            (ours / "tokenizer.json").unlink(missing_ok=True)

    def test_files_of_others_are_written_again_with_the_same_ids(self):
        import tokenizers
        theirs = self.train_theirs(real_text(), 1000)
        tokenize("save", self.folder / "one", self.folder / "again")
        again = tokenizers.Tokenizer.from_file(str(self.folder / "again" / "tokenizer.json"))
        self.assertEqual(again.get_vocab(), theirs.get_vocab())
        self.assertEqual((self.folder / "again" / "merges.txt").read_text(), (self.folder / "two" / "merges.txt").read_text())

    def test_training_learns_the_merges_that_tokenizers_learns(self):
        text = real_text() + script_text(50_000, seed=5)
        self.train_theirs(text, 5000)
        ours = self.train_ours(text, 5000)
        self.assertEqual((ours / "merges.txt").read_text(), (self.folder / "two" / "merges.txt").read_text())


class UnicodeTables(unittest.TestCase):
    def test_are_what_the_script_writes(self):
        with tempfile.TemporaryDirectory() as folder:
            written = pathlib.Path(folder) / "unicode_tables.cpp"
            made = subprocess.run([sys.executable, "-B", SOURCE / "tools" / "make_unicode_tables.py", written],
                                  stderr=subprocess.PIPE, text=True, timeout=120)
            if made.returncode == 3:
                self.skipTest(made.stderr)
            self.assertEqual(made.returncode, 0, made.stderr)
            self.assertEqual(written.read_text(), (SOURCE / "src" / "text" / "unicode_tables.cpp").read_text())


if __name__ == "__main__":
    unittest.main()

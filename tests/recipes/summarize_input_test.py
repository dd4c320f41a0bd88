"""`tandem summarize` meets bad input: one sentence, a hint, an exit code, and nothing half-written."""

import gzip
import json
import shutil
import unittest

from summarize_support import GOOD, HEADER, ROWS, SHAPE, SHORT, SummarizeTest, files_in, limit_files

MIB_10 = "tea " * 2_500_000
MANY_COLUMNS = ",".join(map(str, range(10**6)))

# What no command takes: the table, facts that the error states, and facts of its hint.
BAD_TABLES = [
    ("", ("bad.csv", "empty"), ("columns",)),
    (HEADER, ("bad.csv", "no rows"), ()),
    (MANY_COLUMNS, ("bad.csv, row 1 (line 1)", "16384 columns"), ("CSV",)),
    (GOOD.replace("dialogue", "dialog"), ("bad.csv", "'dialogue'", "id, dialog, summary"), ("--dialogue-column",)),
    ("id,dialogue,dialogue\n1,a,b\n", ("bad.csv, row 1 (line 1)", "two", "'dialogue'"), ()),
    (HEADER + '1,"a\nb",c\n2, ,d\n', ("bad.csv, row 3 (line 4)", "'dialogue'", "empty"), ()),
    (HEADER + f"1,a,b\n2,{MIB_10},c\n", ("bad.csv, row 3 (line 3)", "'dialogue'", "10000000 bytes"), ("1 MiB",)),
    (HEADER + "1,a,b\n2,c\n", ("bad.csv, row 3 (line 3)", "2 fields", "3 columns", "'summary'"), ("quotes",)),
    (HEADER + "1,a,b,c\n", ("bad.csv, row 2 (line 2)", "4 fields", "3 columns", "'summary'"), ("quotes",)),
    (HEADER + '1,a,b\n2,"c,d\n3,e,f\n', ("bad.csv, row 3 (line 3)", "'dialogue'", "quote", "line 3", "never closed"), ()),
    (HEADER + "1,a\0b,c\n", ("bad.csv, row 2 (line 2)", "'dialogue'", "zero byte"), ("UTF-8",)),
    (HEADER + '1,"a\nb",c\n2,d,e\n1,f,g\n', ("bad.csv, row 4 (line 5)", "'1'", "bad.csv, row 2 (line 2)"), ("--id-column",)),
]
BAD_SUMMARIES = [
    (GOOD.replace("summary", "text"), ("bad.csv", "'summary'", "id, dialogue, text"), ("--summary-column",)),
    (HEADER + "1,a,b\n2,c,\n", ("bad.csv, row 3 (line 3)", "'summary'", "empty"), ()),
    (HEADER + f"1,a,{MIB_10}\n", ("bad.csv, row 2 (line 2)", "'summary'", "10000000 bytes"), ("1 MiB",)),
]
BAD_IDS = [
    (GOOD.replace("id,", "name,"), ("bad.csv", "'id'", "name, dialogue, summary"), ("--id-column",)),
    (HEADER + "1,a,b\n,c,d\n", ("bad.csv, row 3 (line 3)", "'id'", "empty"), ()),
]
NO_MODEL = ("config.json", "model.safetensors")


class Tables(SummarizeTest):
    def assert_each_refused(self, tables: list, words: tuple) -> None:
        refuse = self.assert_train_refused if words[0] == "--train" else self.assert_refused
        for text, facts, hint in tables:
            with self.subTest(facts):
                self.write("bad.csv", text)
                refuse(words, 8, facts, hint)

    def assert_each_command_refuses(self, name: str, facts: tuple, hint: tuple, **options) -> None:
        self.assert_train_refused(("--train", name, *SHAPE), 8, facts, hint, **options)
        self.assert_refused(("evaluate", "--from", self.tiny, "--valid", name), 8, facts, hint, **options)
        self.assert_refused(("predict", "--from", self.tiny, "--test", name), 8, facts, hint, **options)

    def test_are_not_learned_from(self):
        self.assert_each_refused(BAD_TABLES + BAD_SUMMARIES, ("--train", "bad.csv", *SHAPE))

    def test_are_not_held_out(self):
        self.assert_each_refused(BAD_TABLES[:1] + BAD_SUMMARIES[:2], ("--train", "train.csv", "--valid", "bad.csv", *SHAPE))

    def test_are_not_evaluated(self):
        self.assert_each_refused(BAD_TABLES + BAD_SUMMARIES,
                                 ("evaluate", "--from", self.tiny, "--valid", "bad.csv", "--output", "pairs.csv"))

    def test_are_not_summarized(self):
        self.assert_each_refused(BAD_TABLES + BAD_IDS, ("predict", "--from", self.tiny, "--test", "bad.csv"))

    def test_that_are_missing_or_folders(self):
        (self.folder / "folder").mkdir()
        for name, reason in (("missing.csv", "No such file or directory"), ("folder", "Is a directory"),
                             ("train.csv/x.csv", "Not a directory")):
            self.assert_each_command_refuses(name, (name, reason), ())

    def test_that_are_compressed_name_the_command_that_unpacks_them(self):
        (self.folder / "packed.csv").write_bytes(gzip.compress(GOOD.encode()))
        self.assert_each_command_refuses("packed.csv", ("packed.csv", "gzip"), ("`gzip -dc packed.csv > unpacked.csv`",))

    def test_that_are_streams_without_an_end_or_a_row(self):
        self.assert_each_command_refuses("/dev/zero", ("/dev/zero", "1GiB"), ("save",))
        self.assert_each_command_refuses("/dev/stdin", ("/dev/stdin", "empty"), (), input="")

    def test_come_from_a_pipe_too(self):
        said = self.run_well("predict", "--from", self.tiny, "--test", "/dev/stdin", "--max-new-tokens", 2, "--json", input=GOOD)
        self.assertEqual(json.loads(said.stdout)["samples"], 24)

    def test_are_refused_by_several_ranks_with_the_same_sentence(self):
        self.write("bad.csv", HEADER)
        result = self.summarize("train", "--train", "bad.csv", *SHAPE, *SHORT, "--name", "refused", "--nproc", 2)
        self.assertRegex(result.stderr, r"\nerror: bad\.csv .*no rows \[rank \d of 2\]\nhint: ")
        self.assertEqual(result.returncode, 8)
        self.assertEqual({path.name for path in (self.folder / "runs" / "refused").iterdir()}, {"logs"})
        self.assert_nothing_left()


class Sources(SummarizeTest):
    def test_must_be_named(self):
        self.assert_train_refused(SHAPE, 3, (), ("--train train.csv", "--data builtin:dialogues"))
        self.assert_refused(("train", "--valid", "train.csv", *SHAPE), 2, ("valid is train.csv", "--train", "(--valid)"),
                            ("--train train.csv",))

    def test_that_are_built_in_are_two(self):
        known = ("builtin:dialogues", "builtin:packages")
        self.assert_refused(("train", "--data", "other", *SHAPE), 2, ("'other'", "(--data)"), (*known, "--train"))
        self.assert_refused(("evaluate", "--from", self.tiny, "--data", "other"), 2, ("'other'", "(--data)"), (*known, "--valid"))

    def test_of_fewer_than_twenty_rows_need_others_to_hold_out(self):
        self.write("few.csv", HEADER + "".join(ROWS[:19]))
        self.assert_train_refused(("--train", "few.csv", *SHAPE), 8, ("few.csv", "19 rows"), ("--valid",))
        self.run_well("train", "--train", "few.csv", "--valid", "train.csv", *SHAPE, *SHORT)

    def test_whose_summaries_are_all_too_long_teach_nothing(self):
        self.write("long.csv", HEADER + "1,a," + "words " * 300 + "\n2,b," + "words " * 300 + "\n")
        self.assert_train_refused(("--train", "long.csv", "--valid", "train.csv", *SHAPE), 8, ("2 rows", "context"), ("--context",))

    def test_whose_summaries_are_all_too_long_have_no_loss(self):
        self.write("long.csv", HEADER + "1,a," + "words " * 300 + "\n")
        result = self.run_well("evaluate", "--from", self.tiny, "--valid", "long.csv", "--max-new-tokens", 2, "--json")
        self.assertIsNone(json.loads(result.stdout)["loss"])


class OddText(SummarizeTest):
    def assert_data_line(self, rows: bytes, line: str) -> None:
        (self.folder / "odd.csv").write_bytes(GOOD.encode() + rows)
        said = self.run_well("train", "--train", "odd.csv", "--valid", "train.csv", *SHAPE, *SHORT).stdout
        self.assertRegex(said.partition("data       ")[2].partition("\n")[0], f"^{line}$")

    def test_that_is_no_utf8_is_learned_from_and_counted(self):
        # A lone 0xFF, each byte of two, and a cut-off sequence of three bytes, which counts once.
        self.assert_data_line(b"b1,Ann: a\xffb.,c\nb2,Ann: \xfe\xfe.,d\nb3,Ann: e,\xe2\x82f\n",
                              "27 samples; 4 [^;]*UTF-8[^;]*U\\+FFFD")

    def test_that_is_no_utf8_is_summarized(self):
        (self.folder / "odd.csv").write_bytes(HEADER.encode() + b"b1,Ann: a\xffb.,\nb2,Ann: \xc3,\n")
        self.run_well("predict", "--from", self.tiny, "--test", "odd.csv", "--max-new-tokens", 4)
        lines = (self.folder / "submission.csv").read_text().splitlines()
        self.assertEqual(lines[0], "id,summary")
        self.assertEqual([path.name for path in self.folder.glob("submission*")], ["submission.csv"])

    def test_that_is_too_long_is_cut_or_left_out_and_counted(self):
        dialogues = "".join(f"b{i},{'words ' * 300},c\n" for i in range(2))
        summaries = "".join(f"c{i},d,{'words ' * 300}\n" for i in range(3))
        self.assert_data_line((dialogues + summaries).encode(), "26 samples; 2 dialogues [^;]*; 3 rows [^;]*their[^;]*context")

    def test_counts_one_as_one(self):
        rows = f"b1,{'words ' * 300},c\nc1,d,{'words ' * 300}\n".encode() + b"d1,e\xff,f\n"
        self.assert_data_line(rows, "26 samples; 1 dialogue was [^;]*; 1 row was [^;]*its[^;]*; 1 [^;]*was [^;]*UTF-8[^;]*")


class Tokenizers(SummarizeTest):
    def test_with_more_tokens_than_the_model_are_refused(self):
        self.run_well("tokenizer", "train", "--output", "other", "--size", 310, "--min-count", 1, "train.csv")
        self.assert_train_refused(("--train", "train.csv", "--init", self.hf, "--tokenizer", "other"), 8,
                                  ("other", "310", str(self.hf), "300"), ("tokenizer",))

    def test_that_are_not_there_are_refused(self):
        (self.folder / "empty").mkdir()
        for name in ("empty", "missing"):
            facts = (name, "tokenizer.json", "vocab.json", "merges.txt")
            self.assert_train_refused(("--train", "train.csv", "--tokenizer", name, *SHAPE[:-2]), 8, facts, ())
            self.assert_refused(("tokenizer", "encode", "--tokenizer", name), 8, facts, (), input="a\n")

    def test_without_an_end_of_text_are_refused(self):
        path = self.copy_of_hf("hf") / "tokenizer.json"
        whole = json.loads(path.read_text())
        self.assertEqual(whole["model"]["vocab"].pop("<|endoftext|>"), 299)
        path.write_text(json.dumps({**whole, "added_tokens": []}))
        facts, hint = ("<|endoftext|>",), ("`tandem summarize tokenizer train`",)
        self.assert_train_refused(("--train", "train.csv", "--init", "hf"), 8, facts, hint)
        self.assert_train_refused(("--train", "train.csv", "--tokenizer", "hf", *SHAPE[:-2]), 8, facts, hint)
        self.assert_refused(("predict", "--from", "hf", "--test", "train.csv"), 8, facts, hint)

    def test_are_written_whole_or_not_at_all(self):
        self.assert_refused(("tokenizer", "train", "--output", "new", "train.csv"), 8,
                            ("new/tokenizer.json", "File too large"), ("ulimit -f", "bytes"), **limit_files(4000))

    def test_of_a_run_stay_when_it_goes_on_with_other_data(self):
        run = self.copy_of_run()
        before = (run / "model" / "tokenizer.json").read_text()
        self.write("other.csv", GOOD.replace("cakes", "pies").replace("bake", "fry"))
        self.summarize("train", "--train", "other.csv", *SHAPE, *SHORT, "--max-steps", 4, "--name", "tiny")
        self.assertEqual((run / "model" / "tokenizer.json").read_text(), before)


class Weights(SummarizeTest):
    def change(self, change) -> None:
        """Of the tensors in hf/model.safetensors, each with its type, its shape and its bytes."""
        path = self.copy_of_hf("hf") / "model.safetensors"
        whole = path.read_bytes()
        begin = 8 + int.from_bytes(whole[:8], "little")
        header = json.loads(whole[8:begin])
        header.pop("__metadata__", None)
        tensors = {name: (entry["dtype"], entry["shape"], whole[begin:][slice(*entry["data_offsets"])])
                   for name, entry in header.items()}
        change(tensors)
        entries, data = {}, b""
        for name, (dtype, shape, values) in tensors.items():
            entries[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
            data += values
        text = json.dumps(entries).encode()
        path.write_bytes(len(text).to_bytes(8, "little") + text + data)

    def assert_init_refused(self, folder: str, code: int, *facts: str, hint: tuple = ()) -> None:
        self.assert_train_refused(("--train", "train.csv", "--init", folder), code, facts, hint)
        self.assert_refused(("evaluate", "--from", folder, "--valid", "train.csv"), code, facts, hint)
        self.assert_refused(("export", "--from", folder, "--output", "new"), code, facts, hint)

    def test_that_are_missing_or_too_many_are_listed(self):
        def change(tensors):
            del tensors["transformer.ln_f.bias"], tensors["transformer.h.0.mlp.c_fc.weight"]
            tensors["score.weight"] = ("F32", [2, 16], bytes(2 * 16 * 4))

        self.change(change)
        self.assert_init_refused("hf", 9, "h.0.mlp.c_fc.weight [64, 16] is missing", "ln_f.bias [16] is missing",
                                 "score.weight [2, 16] is unexpected", hint=NO_MODEL)

    def test_of_other_shapes_are_listed(self):
        self.change(lambda tensors: tensors.update({"transformer.wpe.weight": ("F32", [100, 16], bytes(100 * 16 * 4))}))
        self.assert_init_refused("hf", 9, "wpe.weight", "[100, 16]", "[192, 16]", hint=NO_MODEL)

    def test_that_are_cut_off_or_not_there_are_refused(self):
        weights = self.copy_of_hf("hf") / "model.safetensors"
        whole = weights.read_bytes()
        begin = 8 + int.from_bytes(whole[:8], "little")
        weights.write_bytes(whole[:begin + 1000])
        self.assert_init_refused("hf", 9, "hf/model.safetensors", f"{len(whole) - begin} bytes", "1000")
        weights.unlink()
        self.assert_init_refused("hf", 9, "hf/model.safetensors", "No such file or directory")

    def test_beside_odd_settings_are_refused_by_the_name_of_the_file(self):
        config = self.copy_of_hf("hf") / "config.json"
        config.write_text(config.read_text().replace('"n_embd": 16', '"n_embd": "wide"'))
        self.assert_init_refused("hf", 8, "hf/config.json", "integer", "string")
        shutil.copy(self.hf / "config.json", config)
        (self.folder / "hf" / "summarize.json").write_text("{}")
        self.assert_init_refused("hf", 8, "hf/summarize.json", "'prefix'")

    def test_of_a_name_that_is_not_there_come_with_the_line_that_downloads_them(self):
        nowhere = {"HOME": str(self.folder), "HF_HOME": str(self.folder)}
        self.assert_train_refused(
            ("--train", "train.csv", "--init", "gpt2"), 8, ("'gpt2'", "Hugging Face", "/kaggle/input"),
            ("python3 -c \"from huggingface_hub import snapshot_download as get; get('gpt2')\"",), env=nowhere)

    def test_of_a_name_are_found_in_the_cache_by_the_short_and_the_whole_name(self):
        shutil.copytree(self.hf, self.folder / "hub/models--openai-community--gpt2/snapshots/0a1b")
        for name in ("gpt2", "openai-community/gpt2"):
            self.run_well("train", "--train", "train.csv", "--init", name, *SHORT, env={"HF_HOME": str(self.folder)})

    def test_of_another_width_do_not_go_on_and_leave_the_run_as_it_was(self):
        run = self.copy_of_run()
        before = files_in(run)
        for resume in ("auto", "latest"):
            result = self.summarize("train", "--train", "train.csv", *SHAPE, *SHORT, "--width", 32, "--name", "tiny",
                                    "--resume", resume)
            self.assertRegex(result.stderr, r"^error: checkpoint: 16 of 16 tensors .*h\.0\.attn\.c_attn\.bias [^;]*\[48\][^;]*\[96\].*"
                                            r"mlp\.c_fc\.weight [^;]*\[64, 16\][^;]*\[128, 32\].* 6 more \[rank 0 of 1\]\nhint: .+\n$")
            self.assertEqual(result.returncode, 9)
            self.assertEqual(files_in(run), before)

    def test_beside_the_settings_of_another_width_are_listed(self):
        config = self.copy_of_run() / "model" / "config.json"
        config.write_text(config.read_text().replace('"n_positions": 192', '"n_positions": 200'))
        for words in (("evaluate",), ("predict", "--test", "train.csv"), ("export", "--output", "new")):
            self.assert_refused((*words, "--from", "runs/tiny"), 9, ("1 of 16 tensors", "wpe.weight", "[200, 16]", "[192, 16]"), ())


class Models(SummarizeTest):
    def test_that_are_not_there_are_refused_by_every_command(self):
        (self.folder / "empty").mkdir()
        for place in ("missing", "empty"):
            for words in (("evaluate",), ("evaluate", "--valid", "train.csv"), ("predict",), ("predict", "--test", "train.csv"),
                          ("export", "--output", "new"), ("sample", "--dialogue", "Ann: Tea?")):
                with self.subTest(place=place, words=words):
                    self.assert_refused((*words, "--from", place), 8, ("no model", place), NO_MODEL)

    def test_are_found_with_a_slash_after_the_checkpoint(self):
        checkpoint = f"{self.tiny}/checkpoints/step-00000002"
        said = [self.run_well("evaluate", "--from", path, "--max-new-tokens", 2, "--eval-samples", 2).stdout
                for path in (checkpoint, f"{checkpoint}/")]
        self.assertEqual(said[0], said[1])

    def test_are_found_where_an_export_lies_below_a_run(self):
        self.copy_of_run()
        self.run_well("export", "--from", "runs/tiny", "--output", "runs/tiny/exports/hf")
        self.run_well("export", "--from", "runs/tiny/exports/hf", "--output", "again")

    def test_are_not_exported_over_something(self):
        (self.folder / "there").mkdir()
        for name in ("there", "train.csv"):
            self.assert_refused(("export", "--from", self.tiny, "--output", name), 2, (name, "(--output)"), ())
        self.assert_refused(("export", "--from", self.tiny), 3, ("output is empty",), ("--output my-model",))
        self.assert_refused(("export", "--from", self.tiny, "--output", "train.csv/new"), 8, ("train.csv/new", "Not a directory"), ())

    def test_are_exported_to_a_folder_with_a_slash_at_its_end(self):
        self.run_well("export", "--from", self.tiny, "--output", "new/")
        self.assertEqual([path.name for path in self.folder.glob("*new*")], ["new"])
        self.assertEqual(files_in(self.folder / "new"), files_in(self.hf))

    def test_have_a_name(self):
        self.assert_refused(("sample", "--from", ""), 2, ("from is empty (--from)",), ("runs/latest",))
        name = "x" * 300
        self.assert_refused(("sample", "--from", name), 8, (f"{self.folder}/{name}/model/config.json", "File name too long"), ())

    def test_are_exported_whole_or_not_at_all(self):
        for size in (1000, 30000):
            result = self.summarize("export", "--from", self.tiny, "--output", "new", **limit_files(size))
            self.assertIn("File too large\nhint: ", result.stderr)
            self.assertEqual([path.name for path in self.folder.glob("*new*")], [])


class Outputs(SummarizeTest):
    def commands(self, output: str) -> list[tuple]:
        return [("predict", "--from", self.tiny, "--test", "train.csv", "--max-new-tokens", 2, "--output", output),
                ("evaluate", "--from", self.tiny, "--max-new-tokens", 2, "--output", output)]

    def test_that_cannot_be_written_are_refused_before_the_work(self):
        (self.folder / "folder").mkdir()
        for output, reason in (("no/such.csv", "No such file or directory"), ("train.csv/x.csv", "Not a directory"),
                               ("folder", "Is a directory")):
            for words in self.commands(output):
                with self.subTest(words[0], output=output):
                    self.assert_refused(words, 8, (output, reason), ())

    def test_do_not_take_the_place_of_notes(self):
        self.write("notes.csv.part", "to do: buy tea\n")
        self.assert_refused(self.commands("notes.csv")[0], 8, ("notes.csv.part", "no draft"), ("--output",))

    def test_on_a_full_disk_fail_and_what_is_summarized_is_kept(self):
        full = self.folder / "full"
        full.symlink_to("/dev/full")
        predict, evaluate = self.commands("full")
        for words in ((*evaluate, "--no-progress"), (*predict, "--no-progress")):
            self.assert_error(self.summarize(*words), 8, ("full", "No space left on device"), ())
        full.unlink()
        result = self.run_well(*predict, "--no-progress")
        self.assertRegex(result.stderr, r"^[^\n]*24 of 24[^\n]*\n$")
        self.assertEqual([path.name for path in self.folder.glob("full*")], ["full"])
        self.assertEqual(len(full.read_text().splitlines()), 25)

    def test_that_are_not_finished_have_a_hint_that_helps(self):
        result = self.summarize(*self.commands("new.csv")[0], "--decode-batch", 4, "--no-progress", **limit_files(120))
        self.assert_error(result, 8, ("new.csv.part", "File too large"), ("space",))
        self.assertFalse((self.folder / "new.csv").exists())

    def test_of_a_training_on_a_full_disk_hold_no_half_of_anything(self):
        (self.folder / "runs" / "full" / "checkpoints").mkdir(parents=True)
        (self.folder / "runs" / ".tokens").mkdir()
        before = files_in(self.folder)
        words = ("train", "--train", "train.csv", *SHAPE, *SHORT, "--name", "full")
        result = self.summarize(*words, **limit_files(1000))
        self.assertRegex(result.stderr, r"^error: .*File too large \[rank 0 of 1\]\nhint: .*ulimit -f.* \d+ bytes\n$")
        self.assertEqual(result.returncode, 9)
        self.assertEqual(files_in(self.folder), before)
        self.assertEqual(self.summarize(*words, **limit_files(30000)).returncode, 9)
        self.assertEqual(list((self.folder / "runs" / "full" / "checkpoints").iterdir()), [])
        self.assert_error(self.summarize("evaluate", "--from", "runs/full"), 9,
                          ("no complete checkpoint", f"{self.folder}/runs/full/checkpoints"), ("train",))


class Words(SummarizeTest):
    def test_of_score_name_one_file_with_two_columns_and_rows(self):
        for files in ((), ("train.csv", "train.csv")):
            self.assert_refused(("score", *files), 2, (f"score: {len(files)} files",), ("tandem summarize score FILE.csv",))
        self.assert_refused(("score", "train.csv"), 8, ("train.csv", "'reference'", "id, dialogue, summary"), ("--reference-column",))
        self.assert_refused(("score", "--reference-column", "summary", "train.csv"), 8,
                            ("train.csv", "'prediction'", "id, dialogue, summary"), ("--prediction-column",))
        self.write("header.csv", "reference,prediction\n")
        self.assert_refused(("score", "header.csv"), 8, ("header.csv", "no rows"), ())
        self.assert_refused(("score", "missing.csv"), 8, ("missing.csv", "No such file or directory"), ())

    def test_that_are_no_preset_get_the_nearest_one(self):
        self.assert_refused(("train", "--preset", "dmeo"), 2, ("--preset", "'dmeo'", "demo, small, guide"), ("did you mean demo?",))
        self.write("run.yaml", "lr: 1\npreset: guid\n")
        self.assert_refused(("train", "--config", "run.yaml"), 3, ("run.yaml:2", "'guid'"), ("did you mean guide?",))

    def test_of_score_may_have_flags_after_the_file(self):
        self.write("pairs.csv", "reference,prediction\na b,a b\n")
        self.assertEqual(json.loads(self.run_well("score", "pairs.csv", "--json").stdout)["rouge2"], 1)
        self.assertRegex(self.run_well("score", "pairs.csv").stdout, r"^1 pair +precision  recall  f1\nrouge1 +1\.0000 ")

    def test_of_tokenizer_need_a_tokenizer_and_tokens(self):
        for command in ("encode", "decode"):
            self.assert_refused(("tokenizer", command), 3, ("tokenizer is empty",), ("--tokenizer FOLDER",), input="1\n")
        for word in ("x", "300", "-1", "99999999999999999999"):
            self.assert_refused(("tokenizer", "decode", "--tokenizer", self.hf), 8, (f"'{word}'",), ("0 to 299",),
                                input=f"1 2\n3 {word}\n")
        self.assert_refused(("tokenizer", "train", "--output", "new"), 2, ("tokenizer train", "no file"), ())
        self.assert_refused(("tokenizer", "train", "--output", "new", "missing.txt"), 8,
                            ("missing.txt", "No such file or directory"), ())
        self.assert_refused(("tokenizer", "train", "--output", "new", "--size", 256, "train.csv"), 2, ("size is 256 (--size)",), ("257",))

    def test_that_are_no_command_get_the_nearest_one(self):
        for words, hint in ((("predikt",), "did you mean `tandem summarize predict`?"),
                            (("xyzzy",), "`tandem summarize --help`"),
                            (("tokenizer", "encod"), "did you mean `tandem summarize tokenizer encode`?")):
            self.assert_refused(words, 2, ("tandem summarize", f"'{words[-1]}'"), (hint,))


if __name__ == "__main__":
    unittest.main()

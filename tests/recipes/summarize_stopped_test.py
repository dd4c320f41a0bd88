"""`tandem summarize predict`, stopped and started again: it continues its own draft, and leaves that of another prediction alone."""

import signal
import unittest

from summarize_support import HEADER, SummarizeTest, limit_files, wait_until


class Stopped(SummarizeTest):
    """A prediction that ended before it was done. Summaries are drawn, so that no two rows have the same."""

    def setUp(self):
        super().setUp()
        self.part = self.folder / "submission.csv.part"
        self.use_rows(40)

    def use_rows(self, count: int) -> None:
        self.write("test.csv", HEADER + "".join(f"t{i},Ann: I bake {i} cakes.,\n" for i in range(count)))

    def words(self, *more) -> tuple:
        return ("predict", "--from", self.tiny, "--test", "test.csv", "--max-new-tokens", 10, "--decode-batch", 4,
                "--temperature", 1, "--no-progress", *more)

    def predict(self, *more) -> tuple[str, bytes]:
        """What it said, and what it wrote."""
        said = self.run_well(*self.words(*more)).stderr
        self.assertEqual([path.name for path in self.folder.glob("submission*")], ["submission.csv"])
        path = self.folder / "submission.csv"
        written = path.read_bytes()
        path.unlink()
        return said, written

    def stop_in_a_line(self) -> None:
        result = self.summarize(*self.words(), **limit_files(900) | {"restore_signals": True})
        self.assertEqual(-result.returncode, signal.SIGXFSZ, result.stderr)
        self.assertFalse(self.part.read_bytes().endswith(b"\n"))

    def num_kept(self) -> int:
        return self.part.read_bytes().count(b"\n") - 1

    def test_continues_and_writes_the_same(self):
        _, whole = self.predict()
        self.stop_in_a_line()
        kept = self.num_kept()
        self.assertGreater(kept, 4)
        said, written = self.predict()
        self.assertRegex(said, rf"^[^\n]*{kept} of 40[^\n]*\n$")
        self.assertEqual(written, whole)

    def test_by_any_signal_on_two_ranks_continues_and_writes_the_same(self):
        self.use_rows(600)
        _, whole = self.predict("--decode-batch", 2)
        kept = 0
        for stop in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            process = self.start("summarize", *self.words("--decode-batch", 2, "--nproc", 2))
            wait_until(lambda: self.part.exists() and self.num_kept() > kept, "some more summaries are kept")
            if stop == signal.SIGKILL:
                self.kill_what_is_left()
            else:
                process.send_signal(stop)
            process.communicate(timeout=60)
            self.assertFalse((self.folder / "submission.csv").exists())
            self.assert_nothing_left()
            kept = self.num_kept()
        said, written = self.predict("--decode-batch", 2)
        self.assertRegex(said, rf"^[^\n]*{kept} of 600[^\n]*\n$")
        self.assertEqual(written, whole)

    def assert_left_alone(self, *more) -> None:
        """A prediction with other rows does not take the draft, and says how to proceed."""
        kept = self.num_kept()
        self.assert_refused(self.words(*more), 8, (self.part.name, f"{kept} rows"), (f"rm {self.part.name}", "--output"))

    def test_is_left_alone_by_another_command(self):
        _, whole = self.predict()
        self.stop_in_a_line()
        for more in (("--seed", 2), ("--beams", 2, "--temperature", 0), ("--temperature", 0.5), ("--precision", "bf16")):
            with self.subTest(more):
                self.assert_left_alone(*more)
        self.assertEqual(self.predict()[1], whole)

    def test_is_left_alone_by_other_dialogues(self):
        self.stop_in_a_line()
        self.write("test.csv", (self.folder / "test.csv").read_text().replace("t30,Ann", "t30,Eve"))
        self.assert_left_alone()
        self.part.unlink()
        self.predict()

    def test_starts_anew_if_the_draft_is_damaged(self):
        _, whole = self.predict()
        self.stop_in_a_line()
        kept = self.part.read_bytes().rpartition(b"\n")[0] + b"\n"
        for line in (b'[40,"x"]', b'[-1,"x"]', b"[1]", b"{}", b'["a","b"]', b"nonsense", b""):
            with self.subTest(line):
                self.part.write_bytes(kept + line + b"\n")
                self.assertEqual(self.predict()[1], whole)


if __name__ == "__main__":
    unittest.main()

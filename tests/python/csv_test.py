"""Tables go between Tandem and Python's csv module, in both directions, with equal fields."""

import csv
import json
import os
import pathlib
import random
import subprocess
import tempfile
import unittest

CSV_JSON = pathlib.Path(os.environ["TANDEM_BUILD"]) / "tests" / "csv_json"
PIECES = [",", '"', '""', "\n", "\r", "\r\n", " ", "\t", "a", "word", "摘要", "🙂", "é", "'", ";", "\ufeff", "\u2028", ""]

# What csv thinks needs quotes depends on the end of a line: with "\n" a lone "\r" gets none, and is not read back.
WAYS = [(csv.QUOTE_MINIMAL, "\r\n"), (csv.QUOTE_ALL, "\r\n"), (csv.QUOTE_ALL, "\n"), (csv.QUOTE_ALL, "\r")]


def random_table(draw):
    fields = lambda: ["".join(draw.choices(PIECES, k=draw.randrange(6))) for _ in range(num_columns)]
    num_columns = draw.randint(1, 4)
    return [[f"c{i}{name}" for i, name in enumerate(fields())], *(fields() for _ in range(draw.randrange(300)))]


class Csv(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def test_tables_are_those_of_python_both_ways(self):
        draw = random.Random(5)
        for round in range(60):
            table = random_table(draw)
            quoting, end = draw.choice(WAYS)
            encoding = draw.choice(["utf-8", "utf-8-sig"])
            with open(self.folder / "from.csv", "w", newline="", encoding=encoding) as file:
                csv.writer(file, quoting=quoting, lineterminator=end).writerows(table)
            printed = subprocess.run([CSV_JSON, self.folder / "from.csv", self.folder / "to.csv"], input=json.dumps(table).encode(),
                                     stdout=subprocess.PIPE, check=True, timeout=60).stdout
            self.assertEqual(json.loads(printed), table, f"read, round {round}")
            with open(self.folder / "to.csv", newline="", encoding="utf-8") as file:
                self.assertEqual(list(csv.reader(file)), table, f"written, round {round}")


if __name__ == "__main__":
    unittest.main()

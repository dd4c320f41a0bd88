"""What a run writes into its folder, read by others: TensorBoard's own code, and Python's json."""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

MONITORED_RUN = pathlib.Path(os.environ["TANDEM_BUILD"]) / "tests" / "monitored_run"


class ARunThatWentOn(unittest.TestCase):
    """It was killed after step 5; its checkpoint was of step 3."""

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.run_steps(0, 5)
        (first,) = self.folder.glob("events.out.*")
        first.rename(self.folder / "events.out.tfevents.1000000000.host.1.0")  # an earlier second
        self.run_steps(3, 7)

    def run_steps(self, first, last):
        subprocess.run([MONITORED_RUN, self.folder, str(first), str(last)], check=True, timeout=60, stdout=subprocess.DEVNULL)

    def test_has_each_step_once_in_tensorboard(self):
        if importlib.util.find_spec("tensorboard") is None:
            self.skipTest(f"{sys.executable} has no tensorboard")
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
        events = EventAccumulator(str(self.folder), size_guidance={"scalars": 0}).Reload()
        self.assertEqual(set(events.Tags()["scalars"]), {"train/loss", "train/norm", "train/lr", "speed/per_second", "validation/loss"})
        self.assertEqual([(e.step, e.value) for e in events.Scalars("train/loss")], [(step, step / 2) for step in range(1, 8)])
        self.assertEqual([(e.step, e.value) for e in events.Scalars("train/lr")], [(step, 0.25) for step in range(1, 8)])
        self.assertEqual([(e.step, e.value) for e in events.Scalars("validation/loss")], [(7, 2.5)])

    def test_has_both_starts_in_its_events(self):
        events = [json.loads(line) for line in (self.folder / "events.jsonl").read_text().splitlines()]
        self.assertEqual([(e["event"], e.get("step", e.get("steps"))) for e in events],
                         [("start", 0), *(("step", n) for n in range(1, 6)), ("log", 5), ("end", 5),
                          ("start", 3), *(("step", n) for n in range(4, 8)), ("log", 7), ("end", 7)])
        self.assertEqual([e["loss"] for e in events if e["event"] == "log"], [2.5, 2.5])
        later = {e["step"]: e["loss"] for e in events if e["event"] == "step"}
        self.assertEqual(later, {step: step / 2 for step in range(1, 8)})


if __name__ == "__main__":
    unittest.main()

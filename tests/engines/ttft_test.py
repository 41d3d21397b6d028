"""The benchmark bench/python/ttft.py with a tiny model, on processors: every tier gives back the same bits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "bench/python/ttft.py"


class TimeToFirstToken(unittest.TestCase):
    def run_with(self, *more: str) -> subprocess.CompletedProcess[str]:
        with tempfile.TemporaryDirectory(prefix="terrace-ttft-") as folder:
            command = [sys.executable, SCRIPT, "--terraced", os.environ["TERRACED"], "--folder", folder, "--device", "cpu",
                       "--rounds", "2", *more]
            return subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def test_each_tier_gives_back_the_same_bits(self) -> None:
        done = self.run_with()
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = {line["name"]: line for line in map(json.loads, done.stdout.splitlines())}
        for tier in ("gpu", "host", "disk"):
            line = lines[f"ttft_{tier}"]
            self.assertEqual((line["unit"], line["rounds"], line["same_bits"]), ("ms", 2, True))
            self.assertEqual(line["limit"], lines["ttft_computed"]["value"])
            self.assertEqual(line["bytes"], lines["ttft_computed"]["prefix_bytes"])
            self.assertGreater(lines[f"load_{tier}"]["value"], 0)
        declared = lines["ttft_disk_declared"]
        self.assertEqual(declared["limit"], lines["ttft_computed"]["value"])
        self.assertGreater(declared["tokens_per_s"], 0)

    def test_what_it_cannot_do_it_says(self) -> None:
        done = self.run_with("--prefix", "65")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("expected a prefix of whole chunks", done.stderr)
        self.assertEqual(done.stdout, "")


if __name__ == "__main__":
    unittest.main()

"""Runs the benchmark bench/python/serving.py, with the device in host memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "bench/python/serving.py"


class Serving(unittest.TestCase):
    def test_tells_what_clients_notice(self) -> None:
        with tempfile.TemporaryDirectory(prefix="terrace-serving-") as folder:
            command = [sys.executable, SCRIPT, "--terraced", os.environ["TERRACED"], "--folder", folder, "--device", "cpu",
                       "--host-bytes", 64 << 20, "--region-bytes", 8 << 20, "--rounds", 2]
            done = subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = {line["name"]: line for line in map(json.loads, done.stdout.splitlines())}
        self.assertEqual(list(lines), ["lookup_before_pinning", "lookup_while_pinning", "lookup_after_pinning", "daemon_ready",
                                       "killed_client_gone"])
        self.assertEqual(lines["lookup_while_pinning"]["pinned_bytes"], 64 << 20)
        self.assertEqual((lines["daemon_ready"]["rounds"], lines["killed_client_gone"]["rounds"]), (2, 2))
        self.assertGreater(lines["lookup_after_pinning"]["value"], 0)


if __name__ == "__main__":
    unittest.main()

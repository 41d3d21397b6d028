"""Hit ratios of policies, from Python."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import unittest
from pathlib import Path

import terrace

COMMAND = os.environ.get("TERRACE") or shutil.which("terrace") or ""


@unittest.skipUnless(COMMAND, "TERRACE does not name the command terrace")
class Simulation(unittest.TestCase):
    def trace(self, block_tokens: int = 512) -> Path:
        folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        lines = [{"timestamp": i, "input_length": 2 * block_tokens, "output_length": 1, "hash_ids": [1, 2 + i % 2]}
                 for i in range(10)]
        (folder / "a trace.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        return folder / "a trace.jsonl"

    def test_it_returns_what_the_command_prints(self) -> None:
        made = terrace.simulate(self.trace(), policies=["lru", "kmg"], capacity=["100%", 1 << 20], command=COMMAND)
        self.assertEqual([row["policy"] for row in made["policies"]], ["lru", "kmg"])
        self.assertEqual([cell["capacity"] for cell in made["capacities"]], ["100 %", "1.00 MiB"])
        self.assertAlmostEqual(made["policies"][0]["cells"][0]["hit_ratio"], 17 / 20)

    def test_one_policy_or_capacity_needs_no_list(self) -> None:
        trace = self.trace()
        for one, several in (("100%", ["100%"]), (1 << 20, [1 << 20]), ("50%,100%", ["50%", "100%"])):
            made = terrace.simulate(trace, policies="lru", capacity=one, command=COMMAND)
            listed = terrace.simulate(trace, policies=["lru"], capacity=several, command=COMMAND)
            self.assertEqual(made["capacities"], listed["capacities"], one)
            self.assertEqual([row["policy"] for row in made["policies"]], ["lru"])

    def test_options_have_the_commands_names(self) -> None:
        made = terrace.simulate(self.trace(16), policies=["lru"], capacity=["100%"], block_tokens=16, chunk_tokens=16,
                                second_tier="8x", limit=5, command=COMMAND)
        self.assertEqual((made["requests"], made["chunk_tokens"]), (5, 16))

    def test_what_the_command_refuses_is_raised(self) -> None:
        with self.assertRaisesRegex(terrace.BadRequest, "best"):
            terrace.simulate(self.trace(), policies=["best"], command=COMMAND)
        with self.assertRaisesRegex(terrace.BadRequest, "--bogus"):
            terrace.simulate(self.trace(), bogus=1, command=COMMAND)
        with self.assertRaisesRegex(terrace.NotFound, "/no/such/terrace"):
            terrace.simulate(self.trace(), command="/no/such/terrace")


if __name__ == "__main__":
    unittest.main()

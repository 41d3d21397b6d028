"""vLLM with an adapter (LoRA) that is replaced in place: the tokens are those of the files that an engine has loaded."""

from __future__ import annotations

import os
import tempfile
import unittest
from pathlib import Path
from typing import Any

import tiny_adapter
from daemon import Daemon
from engine import Engine
from waiting import prompts_of

BLOCK = 32
WHOLE = 300 // BLOCK * BLOCK


class Adapters(unittest.TestCase):
    def setUp(self) -> None:
        self.daemon = Daemon(host_bytes=64 << 20)
        self.addCleanup(self.daemon.stop)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.write(1)

    def write(self, seed: int) -> None:
        """With the times of the files before."""
        tiny_adapter.write(self.folder, seed)
        for path in Path(self.folder).iterdir():
            os.utime(path, ns=(1, 1))

    def start(self, door: str) -> Engine:
        engine = Engine(self.daemon.socket, TERRACE_TEST_DOOR=door, TERRACE_TEST_ADAPTER=self.folder)
        self.addCleanup(engine.kill)
        return engine.ready()

    def generate(self, engine: Engine, adapted: bool = True) -> tuple[list[int], list[list[int]]]:
        made: dict[str, Any] = engine.call("generate", prompts=prompts_of(70), adapted=adapted)
        self.assertFalse(engine.call("settle")["pending"])
        engine.call("forget")
        return made["cached"], made["tokens"]

    def test_what_was_computed_with_the_files_before_is_not_loaded(self) -> None:
        engine = self.start("connector")
        cached, first = self.generate(engine)
        self.assertEqual(cached, [0])
        alone = self.generate(engine, adapted=False)
        self.assertEqual((alone[0], alone[1] != first), ([0], True), "the adapter decides about tokens")
        self.assertEqual(self.generate(engine), ([WHOLE], first))
        self.write(2)
        self.assertEqual(self.generate(engine), ([0], first), "the engine has loaded the files before, and nobody can say that of it")
        engine.end()
        engine = self.start("connector")
        cached, second = self.generate(engine)
        self.assertEqual((cached, second != first), ([0], True))
        self.assertEqual(self.generate(engine), ([WHOLE], second))
        self.assertEqual(self.generate(engine, adapted=False), ([WHOLE], alone[1]), "the model alone is the same one")
        engine.end()
        self.write(1)
        self.assertEqual(self.generate(self.start("connector")), ([WHOLE], first))

    def test_a_tier_shares_nothing_beyond_an_engine_with_adapters(self) -> None:
        engine = self.start("tier")
        cached, first = self.generate(engine)
        self.assertEqual((cached, self.generate(engine)), ([0], ([WHOLE], first)))
        self.assertEqual(engine.whole_log().count("KV is not shared beyond this engine: vLLM does not tell its tiers"), 1)
        engine.end()
        self.write(2)
        cached, second = self.generate(self.start("tier"))
        self.assertEqual((cached, second != first), ([0], True))


if __name__ == "__main__":
    unittest.main()

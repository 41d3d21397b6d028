"""An engine of vLLM that reaches Terrace by a door: the tier, or the connector."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from daemon import Daemon
from disk_case import OverDisk
from engine import Engine

BLOCK = 32
PROMPT = 300  # tokens: 9 whole blocks and a rest
WHOLE = PROMPT // BLOCK * BLOCK


class Door(OverDisk):
    door: str

    @classmethod
    def setUpClass(cls) -> None:
        cls.server = Daemon(host_bytes=64 << 20, disk_bytes=256 << 20)
        cls.addClassCleanup(cls.server.stop)
        cls.await_disk()

    @classmethod
    def start(cls, **settings: str) -> Engine:
        engine = Engine(cls.server.socket, TERRACE_TEST_DOOR=cls.door, **settings)
        cls.addClassCleanup(engine.kill)
        return engine

    def generate(self, engine: Engine, prompts: list[list[int]]) -> dict[str, Any]:
        made = engine.call("generate", prompts=prompts)
        self.assertFalse(engine.call("settle")["pending"])
        return made

    def cold(self, engine: Engine, prompts: list[list[int]]) -> list[list[int]]:
        """The right tokens: computed, and stored."""
        made = self.generate(engine, prompts)
        self.assertEqual(made["cached"], [0] * len(prompts))
        return made["tokens"]

    def loaded(self, engine: Engine, prompts: list[list[int]]) -> dict[str, Any]:
        """Without what the engine itself has kept."""
        self.assertTrue(engine.call("forget")["reset"])
        return self.generate(engine, prompts)

    @contextlib.contextmanager
    def standing_still(self, engine: Engine) -> Iterator[None]:
        """The daemon does nothing meanwhile, so the engine's lookups count as misses. The engine waits for them only a moment then:
        otherwise it waits so long that a busy machine makes no answer a late one."""
        engine.call("wait_for_lookups", seconds=0.25)
        self.server.pause()
        try:
            yield
        finally:
            self.server.resume()
            engine.call("wait_for_lookups")

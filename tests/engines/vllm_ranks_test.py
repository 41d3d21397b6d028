"""vLLM with two workers: in tensor parallelism each has the KV of its own heads, in pipeline parallelism that of its own layers."""

from __future__ import annotations

import unittest
from typing import Any

import terrace
from daemon import PATIENCE
from engine import Engine
from vllm_door import WHOLE, Door
from waiting import prompts_of, until

RANKS = 2


class Cases(Door):
    door = "connector"
    connections = 1 + RANKS
    settings: dict[str, str]

    @classmethod
    def starting(cls) -> Engine:
        return cls.start(**cls.settings, VLLM_CPU_OMP_THREADS_BIND="nobind", OMP_NUM_THREADS="1")

    def computed(self, engine: Engine, prompts: list[list[int]]) -> list[list[int]]:
        """The right tokens, once both ranks have stored all blocks."""
        made = engine.call("generate", prompts=prompts)
        self.assertEqual(made["cached"], [0] * len(prompts))
        before = -1

        def stands_still() -> bool:
            nonlocal before
            was, before = before, self.tiers()["host"].objects
            return was == before > 0 and before % RANKS == 0

        until(stands_still)
        return made["tokens"]

    def loaded_again(self, engine: Engine, prompts: list[list[int]]) -> dict[str, Any]:
        self.assertTrue(engine.call("forget")["reset"])
        return engine.call("generate", prompts=prompts)

    def leases(self) -> int:
        with terrace.connect(self.server.socket, observes=True, timeout=PATIENCE) as observer:
            return sum(client.leases for client in observer.status(timeout=PATIENCE).clients)

    def test_both_ranks_load_what_both_have_stored(self) -> None:
        engine = self.starting().ready()
        prompts = prompts_of(60, 2)
        right = self.computed(engine, prompts)
        made = self.loaded_again(engine, prompts)
        self.assertEqual((made["tokens"], made["cached"]), (right, [WHOLE] * 2), engine.log_text())
        with terrace.connect(self.server.socket, observes=True, timeout=PATIENCE) as observer:
            names = {client.name for client in observer.status(timeout=PATIENCE).clients}
        self.assertLessEqual({"vllm scheduler", "vllm worker 0", "vllm worker 1"}, names)
        engine.call("kill_worker", rank=1)
        engine.call("forget")
        engine.begin("generate", prompts=prompts)  # ends with the engine, however vLLM ends it
        engine.process.wait(PATIENCE)
        until(lambda: self.leases() == 0)
        again = self.starting().ready().call("generate", prompts=prompts)
        self.assertEqual((again["tokens"], again["cached"]), (right, [WHOLE] * 2))


class VllmTwoRanks(Cases):
    settings = {"TERRACE_TEST_RANKS": str(RANKS)}


class VllmTwoStages(Cases):
    """With the V2 model runner: the V1 runner of vLLM 0.32.0 ends with a KeyError in a pipeline on processors, also without Terrace."""

    settings = {"TERRACE_TEST_STAGES": str(RANKS), "TERRACE_TEST_RUNNER": "V2"}


del Door, Cases


if __name__ == "__main__":
    unittest.main()

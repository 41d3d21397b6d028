"""Prefill and decode in two engines of one machine: the second takes a prompt over that the first still computes and stores."""

from __future__ import annotations

import unittest

from engine import Engine
from vllm_door import BLOCK, Door
from waiting import prompts_of

TOKENS = 2000
BLOCKS = (TOKENS - 1) // BLOCK  # that a second engine can take over
STEP_TOKENS = 256  # of the first engine, so that it stores in several steps
SECONDS = 100  # turns a hang into a failure


class VllmHandover(Door):
    door = "connector"
    connections = 2
    prefill: Engine
    decode: Engine

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.prefill, cls.decode = cls.start(TERRACE_TEST_STEP_TOKENS=str(STEP_TOKENS)), cls.start()
        for engine in (cls.prefill, cls.decode):
            engine.ready()

    def right(self, prompts: list[list[int]]) -> list[list[int]]:
        """What the second engine computes by itself. Nobody has anything of it afterwards."""
        made = self.cold(self.decode, prompts)
        self.assertTrue(self.decode.call("clear")["reset"])
        return made

    def hand_over(self, name: str, prompts: list[list[int]]) -> None:
        """Begins both at once, the second one first: it has to wait."""
        names = [f"{name} {i}" for i in range(len(prompts))]
        self.decode.begin("generate", prompts=prompts,
                          parameters=[{"terrace_follow": one, "terrace_follow_seconds": SECONDS} for one in names])
        self.prefill.begin("generate", prompts=prompts, tokens=1, parameters=[{"terrace_announce": one} for one in names])

    def test_the_second_engine_computes_nothing_that_the_first_stores(self) -> None:
        prompts = prompts_of(50, 2, TOKENS)
        right = self.right(prompts)
        self.hand_over("a", prompts)
        made = self.decode.answer(SECONDS)
        self.assertEqual(self.prefill.answer(SECONDS)["cached"], [0, 0])
        self.assertEqual((made["tokens"], made["cached"]), (right, [BLOCKS * BLOCK] * 2), self.decode.log_text())

    def test_z_an_engine_that_is_killed_in_the_middle_leaves_the_rest_to_the_second(self) -> None:
        """The last, since it ends an engine."""
        prompts = prompts_of(51, 1, TOKENS)
        right = self.right(prompts)
        self.prefill.call("die_after_storing", chunks=2 * STEP_TOKENS // BLOCK)
        self.hand_over("b", prompts)
        made = self.decode.answer(SECONDS)
        self.assertEqual(made["tokens"], right)
        (cached,) = made["cached"]
        self.assertGreaterEqual(cached, 2 * STEP_TOKENS)
        self.assertLess(cached, BLOCKS * BLOCK)
        self.assertNotEqual(self.prefill.process.wait(SECONDS), 0)


del Door


if __name__ == "__main__":
    unittest.main()

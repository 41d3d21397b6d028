"""vLLM with staging memory that is far smaller than a step: all KV is stored that is still in its blocks, and no other."""

from __future__ import annotations

import os
import unittest

from vllm_door import BLOCK, WHOLE, Door
from waiting import prompts_of

TOKENS = 960
NOT_STORED = "vllm:terrace_chunks_not_stored"


class Small(Door):
    """Two blocks fit, and a prompt of TOKENS has 30."""

    door = "connector"
    model = "TERRACE_TEST_MODEL"
    staging_bytes = 4096 + 2 * (32 << 10)
    way: dict[str, str] = {}

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.engine = cls.start(**cls.way, TERRACE_TEST_MODEL=os.environ[cls.model],
                               TERRACE_TEST_OPTIONS=f'{{"staging_bytes": {cls.staging_bytes}}}').ready()

    def test_a_prompt_is_stored_at_once(self) -> None:
        prompts = prompts_of(20, 4, TOKENS + 1)
        right = self.cold(self.engine, prompts)
        self.assertEqual(self.engine.call("metrics").get(NOT_STORED, 0), 0)
        made = self.loaded(self.engine, prompts)
        self.assertEqual((made["tokens"], made["cached"]), (right, [TOKENS] * 4))

    def test_vllm_makes_steps_after_the_last_request_until_all_is_stored(self) -> None:
        prompts = prompts_of(24, 1, TOKENS + 1)
        with self.standing_still(self.engine):
            right = self.engine.call("generate", prompts=prompts)["tokens"]
        made = self.engine.call("run_dry")
        self.assertGreater(made["steps"], 0)
        self.assertEqual(made["kept"], 0)
        self.assertFalse(self.engine.call("settle")["pending"])
        made = self.loaded(self.engine, prompts)
        self.assertEqual((made["tokens"], made["cached"]), (right, [TOKENS]))

    def test_nothing_is_stored_of_blocks_that_have_other_tokens_by_then(self) -> None:
        """There are blocks for eight prompts, and the daemon takes nothing before there were sixteen."""
        first, second = prompts_of(21, 8, TOKENS), prompts_of(22, 8, TOKENS)
        right = [self.cold(self.engine, prompts) for prompts in (first, second)]
        self.assertTrue(self.engine.call("clear")["reset"])
        with self.standing_still(self.engine):
            self.assertEqual([self.engine.call("generate", prompts=prompts)["tokens"] for prompts in (first, second)], right)
            told = self.engine.call("metrics")
            self.assertGreater(told[f"{NOT_STORED}_overwritten"], 0)
            self.assertEqual(told[NOT_STORED], told[f"{NOT_STORED}_overwritten"])
            self.assertIn("blocks are not stored: vLLM gave their blocks to other tokens", self.engine.whole_log())
        self.assertFalse(self.engine.call("settle")["pending"])
        made = [self.loaded(self.engine, prompts) for prompts in (first, second)]
        self.assertEqual([one["tokens"] for one in made], right)
        self.assertGreater(sum(made[1]["cached"]), 0, "what is still in its blocks is stored")


class SmallWindowed(Small):
    model = "TERRACE_TEST_WINDOWED_MODEL"
    staging_bytes = 4096 + 2 * (64 << 10)


class SmallV2Asynchronous(Small):
    way = {"TERRACE_TEST_RUNNER": "V2", "TERRACE_TEST_ASYNCHRONOUS": "1"}


class FollowsFromTheStep(Door):
    door = "connector"

    def test_by_default_all_of_a_prompt_is_stored(self) -> None:
        engine = self.start().ready()
        prompts = prompts_of(23, 8)
        right = self.cold(engine, prompts)
        self.assertEqual(engine.call("metrics").get(NOT_STORED, 0), 0)
        made = self.loaded(engine, prompts)
        self.assertEqual((made["tokens"], made["cached"]), (right, [WHOLE] * 8))


del Door  # which is no test by itself
assert TOKENS % BLOCK == 0


if __name__ == "__main__":
    unittest.main()

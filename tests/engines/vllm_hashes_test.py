"""Block hashes of engines whose own begin with a random root: two such engines share their KV, and of no other tokens."""

from __future__ import annotations

import logging
import os
import unittest
from types import SimpleNamespace
from typing import Any
from unittest import mock

from vllm.lora.request import LoRARequest
from vllm.multimodal.inputs import MultiModalFeatureSpec, PlaceholderRange
from vllm.sampling_params import SamplingParams
from vllm.utils.hashing import get_hash_fn_by_name
from vllm.v1.core import kv_cache_utils as utils
from vllm.v1.request import Request

from terrace.vllm.block_hashes import HashesOfEngine, has_random_root
from vllm_door import WHOLE, Door
from waiting import prompts_of

BLOCK = 16
LOG = logging.getLogger("vllm.terrace")


def image(identifier: str, offset: int) -> MultiModalFeatureSpec:
    return MultiModalFeatureSpec(data=None, modality="image", identifier=identifier, mm_position=PlaceholderRange(offset=offset, length=20))


KINDS: dict[str, dict[str, Any]] = {
    "tokens alone": {},
    "a salt": {"cache_salt": "s"},
    "an adapter": {"lora_request": LoRARequest("support", 1, "/adapters/support")},
    "an image": {"mm_features": [image("first", 10)]},
    "images": {"mm_features": [image("first", 10), image("second", 40)]},
    "the second one elsewhere": {"mm_features": [image("first", 10), image("second", 41)]},
    "another second one": {"mm_features": [image("first", 10), image("third", 40)]},
}


class Hashes(unittest.TestCase):
    def start(self, seed: str | None, algorithm: str = "sha256", random: bool = True, **config: Any) -> HashesOfEngine:
        """An engine that starts with PYTHONHASHSEED. `random`: a version that has a random root without it."""
        settings = {name: value for name, value in os.environ.items() if name != "PYTHONHASHSEED"}
        environment = mock.patch.dict(os.environ, settings | ({} if seed is None else {"PYTHONHASHSEED": seed}), clear=True)
        environment.start()
        self.addCleanup(environment.stop)
        self.hash_of = get_hash_fn_by_name(algorithm)
        utils.init_none_hash(self.hash_of)
        if random and seed is None:
            utils.NONE_HASH = os.urandom(32)
        cache_config = SimpleNamespace(prefix_caching_hash_algo=algorithm)
        return HashesOfEngine(SimpleNamespace(cache_config=cache_config, **config), BLOCK, LOG)

    def request(self, tokens: list[int], **given: Any) -> Request:
        return Request("r", tokens, SamplingParams(max_tokens=64), None, block_hasher=utils.get_request_block_hasher(BLOCK, self.hash_of), **given)

    def test_engines_without_a_seed_have_the_hashes_of_those_with_0(self) -> None:
        (prompt,) = prompts_of(1, tokens=100)
        for algorithm in ("sha256", "sha256_cbor"):
            right = self.start("0", algorithm)
            expected = {kind: list(right.of(self.request(prompt, **given))) for kind, given in KINDS.items()}
            self.assertEqual(expected["a salt"], list(self.request(prompt, cache_salt="s").block_hashes))
            self.assertEqual(len({hashes[-1] for hashes in expected.values()}), len(KINDS))
            self.assertEqual(expected["images"][:1], expected["an image"][:1], "what is before the second one is the same")
            for _ in range(2):
                engine = self.start(None, algorithm)
                for kind, given in KINDS.items():
                    request = self.request(prompt, **given)
                    self.assertNotEqual(list(request.block_hashes), expected[kind])
                    self.assertEqual(list(engine.of(request)), expected[kind], kind)
                    engine.forget("r")

    def test_tokens_that_come_are_added_and_tokens_that_go_are_forgotten(self) -> None:
        (prompt,) = prompts_of(2, tokens=100)
        right, other = self.start("0"), self.request(prompt[:40] + [7] * 60)
        replaced = list(right.of(other))
        whole = list(right.of(self.request(prompt + [1, 2, 3])))
        engine = self.start(None)
        request = self.request(prompt[:90])
        self.assertEqual(list(engine.of(request)), whole[:5])
        request.append_output_token_ids(prompt[90:] + [1, 2, 3])
        self.assertEqual(list(engine.of(request)), whole)
        self.assertEqual(list(engine.of(self.request(prompt[:40]))), whole[:2])
        self.assertEqual(list(engine.of(self.request(prompt[:40] + [7] * 60))), replaced)
        self.assertEqual(list(engine.of(self.request(prompt + [1, 2, 3]))), whole, "as many blocks, with other tokens")

    def test_hashes_that_every_engine_makes_are_left_as_they_are(self) -> None:
        for seed, random in (("17", True), (None, False)):
            engine = self.start(seed, random=random)
            self.assertFalse(has_random_root())
            request = self.request(prompts_of(3)[0])
            self.assertIs(engine.of(request), request.block_hashes)

    def test_hashes_of_more_than_their_tokens_are_not_made_again_and_the_log_says_so(self) -> None:
        """From 0.33 on the hashes of an engine with a draft model contain tokens of the next block."""
        engine = self.start(None, speculative_config=SimpleNamespace())
        request = self.request(prompts_of(4)[0])

        def newer(hash_block_size: int, caching_hash_fn: Any, num_hash_lookahead_tokens: int = 0) -> None: ...

        with mock.patch.object(utils, "get_request_block_hasher", newer), self.assertLogs(LOG, "WARNING") as log:
            self.assertIs(engine.of(request), request.block_hashes)
        self.assertIn("set PYTHONHASHSEED to the same value for all engines", log.output[0])


class Shared(Door):
    door = "connector"

    def test_two_engines_with_roots_of_their_own_share_their_kv(self) -> None:
        first, second = self.start(TERRACE_TEST_RANDOM_ROOT="1"), self.start(TERRACE_TEST_RANDOM_ROOT="1")
        prompts = prompts_of(5)
        right = self.cold(first.ready(), prompts)
        made = self.generate(second.ready(), prompts)
        self.assertEqual((made["tokens"], made["cached"]), (right, [WHOLE]))
        self.assertNotIn("is not shared beyond", first.whole_log())


class Tier(Door):
    door = "tier"

    def test_the_tier_which_is_given_hashes_alone_says_that_it_shares_nothing(self) -> None:
        engine = self.start(TERRACE_TEST_RANDOM_ROOT="1").ready()
        self.cold(engine, prompts_of(6))
        self.cold(engine, prompts_of(7))
        self.assertEqual(engine.whole_log().count("its block hashes begin with a random number; set PYTHONHASHSEED"), 1)


del Door  # it is no test itself


if __name__ == "__main__":
    unittest.main()

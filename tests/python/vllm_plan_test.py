"""The connector's plan for vLLM's configurations, and its slots; without a daemon."""

from __future__ import annotations

import random
import unittest
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import terrace
from terrace.vllm.layered_loads import why_not_layered
from terrace.vllm.orders import Report
from terrace.vllm.plan import POOLS_MAX, Plan, Unusable, plan_of
from terrace.vllm.slots import Slots
from terrace.weights import Weights


class FullAttentionSpec(SimpleNamespace):
    pass


class SlidingWindowSpec(SimpleNamespace):
    pass


class MambaSpec(SimpleNamespace):
    pass


def group(kind: type = FullAttentionSpec, layers: int = 6, block: int = 16, first: int = 0, **more: Any) -> SimpleNamespace:
    spec = kind(block_size=block, page_size_bytes=4096, prefix_cacheable=True, **more)
    return SimpleNamespace(layer_names=[f"layer.{first + i}" for i in range(layers)], kv_cache_spec=spec)


def plan(*groups: SimpleNamespace, layer_parts: int = 4, hash_block: int | None = None, fails_requests: bool = True,
         factors: dict[str, Any] | None = None, stages: Sequence[int] = (),
         **parallel: int) -> Plan:
    sizes = {"world_size": 1, **parallel}
    config = SimpleNamespace(
        parallel_config=SimpleNamespace(**sizes), cache_config=SimpleNamespace(cache_dtype="auto"),
        model_config=SimpleNamespace(model="m", dtype="torch.bfloat16"),
    )
    kv = SimpleNamespace(kv_cache_groups=list(groups), hash_block_size=hash_block, kv_cache_layout="LBHNC", num_blocks=8)
    return plan_of(config, kv, "0.32.0 cpu", weights=Weights(revision="r", factors=factors or {}), salt="",
                   layer_parts=layer_parts, fails_requests=fails_requests, stages=stages)


class Plans(unittest.TestCase):
    def test_layers_are_divided_into_pools(self) -> None:
        made = plan(group(layers=6))
        self.assertEqual([len(part.layers) for part in made.parts], [1, 2, 1, 2])
        self.assertEqual([part.offset for part in made.parts], [0, 4096, 3 * 4096, 4 * 4096])
        self.assertEqual((made.slot_bytes, made.layered, made.spec.dtype), (6 * 4096, True, "bfloat16"))
        self.assertEqual([pool.object_bytes for pool in made.spec.pools], [4096, 8192, 4096, 8192])

    def test_weights_and_factors_make_another_space(self) -> None:
        one, other = plan(group()), plan(group(), factors={"attention_config.backend": "FLASH_ATTN"})
        self.assertEqual(one.spec.revision, "r")
        self.assertNotEqual(one.spec.layout, other.spec.layout)

    def test_groups_share_the_pools(self) -> None:
        made = plan(*(group(layers=8, first=8 * i) for i in range(7)))
        self.assertEqual(len(made.parts), 14)
        self.assertFalse(made.layered)

    def test_a_window_needs_the_end_of_a_prefix(self) -> None:
        made = plan(group(), group(SlidingWindowSpec, first=6, sliding_window=49))
        self.assertEqual(made.trailing, [0, 3])
        self.assertEqual({pool.rule for pool in made.spec.pools[4:]}, {terrace.HitRule.TRAILING_CHUNKS})

    def test_finer_hashes(self) -> None:
        self.assertEqual(plan(group(block=32), hash_block=16).hashes_per_chunk, 2)
        with self.assertRaisesRegex(Unusable, "multiple of the 24 tokens"):
            plan(group(block=32), hash_block=24)

    def test_what_it_cannot_serve_it_says(self) -> None:
        with self.assertRaisesRegex(Unusable, "got MambaSpec in group 1"):
            plan(group(), group(MambaSpec, first=6))
        with self.assertRaisesRegex(Unusable, r"one block size, got \[16, 32\]"):
            plan(group(), group(first=6, block=32))
        with self.assertRaisesRegex(Unusable, "decode_context_parallel_size 1, got 2"):
            plan(group(), decode_context_parallel_size=2)
        for stages, groups in (((7, 5), [group()]), ((5, 7), [group(layers=5)]), ((12, 12), [group()])):
            with self.assertRaisesRegex(Unusable, r"stages with as many layers each, all with KV of one size, got \["):
                plan(*groups, stages=stages)
        with self.assertRaisesRegex(Unusable, "one group of layers with KV in a pipeline, got 2"):
            plan(group(), group(first=6), stages=(12, 12))
        with self.assertRaisesRegex(Unusable, f"1 to {POOLS_MAX} groups"):
            plan(*(group(first=6 * i) for i in range(17)))

    def test_stages_of_a_pipeline_are_ranks_of_one_space(self) -> None:
        first, second = (plan(group(first=6 * stage), world_size=2, stages=(6, 6)).of_rank(stage) for stage in (0, 1))
        self.assertEqual(replace(second.spec, rank=0), first.spec)
        self.assertNotEqual(list(first.parts[0].layers), list(second.parts[0].layers))
        self.assertFalse(first.layered)
        self.assertNotEqual(plan(group(first=6), world_size=2).spec.layout, plan(group(), world_size=2).spec.layout)

    def test_the_speed_of_the_engine_is_no_part_of_what_is_shared(self) -> None:
        made = plan(group())
        declared = made.of_rank(0, 9_000)
        self.assertEqual(declared.spec.prefill_tokens_per_s, 9_000)
        self.assertEqual((declared.spec.layout, declared.spec.pools), (made.spec.layout, made.spec.pools))

    def test_whatever_lays_out_kv_differently_is_another_space(self) -> None:
        layouts = {plan(group(layers=4)).spec.layout, plan(group(layers=5)).spec.layout, plan(group(block=32)).spec.layout,
                   plan(group(layers=4), layer_parts=2).spec.layout}
        self.assertEqual(len(layouts), 4)
        self.assertFalse(plan(group(), world_size=2).layered)


    def test_several_groups_need_an_engine_that_can_be_told_which_requests_failed(self) -> None:
        """Blocks say too little there, so no failure would be reported, and wrong KV would be used."""
        with self.assertRaisesRegex(Unusable, "one group of layers with KV, got 2: this vLLM cannot be told which"):
            plan(group(), group(first=6), fails_requests=False)
        self.assertEqual(plan(group(), fails_requests=False).groups, 1)


class LayeredLoads(unittest.TestCase):
    """The option `layered`, with versions of vLLM that are known to recover from a load that fails inside a step, and
    with others."""

    def why_not(self, version: str = "0.32.0", v2: bool = False, asynchronous: bool = False, policy: str = "recompute",
                speculative: object = None, made: Plan | None = None) -> str:
        config = SimpleNamespace(
            kv_transfer_config=SimpleNamespace(kv_load_failure_policy=policy), use_v2_model_runner=v2,
            scheduler_config=SimpleNamespace(async_scheduling=asynchronous), speculative_config=speculative,
        )
        return why_not_layered(config, version, made or plan(group()))

    def test_it_is_taken_where_recovery_was_tried(self) -> None:
        self.assertEqual([self.why_not(version) for version in ("0.32.0", "0.32.0+cpu")], ["", ""])

    def test_another_version_runner_or_scheduling_refuses_it(self) -> None:
        for reason, refused in (
            ("vLLM 0.26.0 with its V1 model runner and synchronous scheduling", self.why_not("0.26.0")),
            ("vLLM 0.32.1 with its V1 model runner and synchronous scheduling", self.why_not("0.32.1")),
            ("vLLM 0.32.0 with its V2 model runner and synchronous scheduling", self.why_not(v2=True)),
            ("vLLM 0.32.0 with its V1 model runner and asynchronous scheduling", self.why_not(asynchronous=True)),
        ):
            self.assertEqual(refused, f"{reason} may give wrong tokens after a load that fails")

    def test_so_do_several_groups_or_workers_and_an_engine_that_fails_requests(self) -> None:
        two = plan(group(), group(first=6))
        self.assertIn("one group of layers and one worker, got 2 and 1", self.why_not(made=two))
        self.assertIn("one group of layers and one worker, got 1 and 2", self.why_not(made=plan(group(), world_size=2)))
        self.assertIn('"kv_load_failure_policy": "recompute", got fail', self.why_not(policy="fail"))

    def test_so_does_speculative_decoding(self) -> None:
        self.assertEqual(self.why_not(speculative=SimpleNamespace()), "it was not tried with speculative decoding")


class SlotsTest(unittest.TestCase):
    def test_against_a_set(self) -> None:
        seed = random.randrange(1 << 32)
        source = random.Random(seed)
        slots, free, taken = Slots(40), set(range(40)), []
        for _ in range(2000):
            if source.random() < 0.5:
                most = source.randrange(1, 12)
                first, count = slots.take(most)
                self.assertEqual(count == 0, not free, seed)
                self.assertLessEqual(count, most)
                self.assertLessEqual(set(range(first, first + count)), free, seed)
                free -= set(range(first, first + count))
                taken += [(first, count)] if count else []
            elif taken:
                first, count = taken.pop(source.randrange(len(taken)))
                slots.give_back(first, count)
                free |= set(range(first, first + count))
            self.assertEqual(slots.left, len(free), seed)
        for first, count in taken:
            slots.give_back(first, count)
        self.assertEqual(slots.take(40), (0, 40))


class Reports(unittest.TestCase):
    def test_those_of_several_workers_add_up(self) -> None:
        both = Report({1: 1, 2: 1}, {"r"}, 1).add(Report({2: 1}, {"s"}, 2, True))
        self.assertEqual((both.ended, both.failed, both.failures, both.unusable), ({1: 1, 2: 2}, {"r", "s"}, 2, True))
        self.assertFalse(Report(failures=3))

    def test_one_that_is_away_counts_and_so_does_one_that_is_back(self) -> None:
        both = Report(away=True).add(Report(changed=True))
        self.assertEqual((both.away, both.changed), (True, True))
        self.assertTrue(Report(away=True) and Report(changed=True))


if __name__ == "__main__":
    unittest.main()

"""The parts of terrace.vllm that need neither vLLM nor a daemon: keys, lookups, jobs, spaces."""

from __future__ import annotations

import os
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from terrace.vllm.identity import layout_of, specs_of
from terrace.vllm.jobs import Jobs
from terrace.vllm.keys import by_group, digests_of, group_of, parts_of, width_of
from terrace.vllm.lookups import SEGMENTS, Batch, Lookups
from terrace.weights import Weights


def key(number: int, group: int = 0) -> bytes:
    return number.to_bytes(32, "little") + group.to_bytes(4, "big")


class Keys(unittest.TestCase):
    def test_a_key_is_a_digest_and_a_group(self) -> None:
        keys = [key(1, 3), key(2, 3)]
        self.assertEqual((group_of(keys[0]), width_of(keys)), (3, 32))
        self.assertEqual(digests_of(keys), keys[0][:32] + keys[1][:32])
        self.assertEqual(width_of([bytes(16) + bytes(4)]), 16)

    def test_keys_of_different_groups_or_lengths_are_told_apart(self) -> None:
        keys = [key(i, i % 3) for i in range(5)]
        self.assertEqual(by_group(keys), [[keys[0], keys[3]], [keys[1], keys[4]], [keys[2]]])
        self.assertEqual(by_group(keys[:1]), [keys[:1]])
        odd = [key(1), key(2, 5)[1:] + b"x"]  # together as long as two keys
        self.assertEqual(by_group(odd), [odd[:1], odd[1:]])
        short = [bytes(8) + key(1, 4)[-4:], bytes(16) + key(1, 4)[-4:]]
        self.assertEqual(by_group(short), [short])

    def test_a_transfer_is_divided_by_groups_and_size(self) -> None:
        keys = [key(i, i % 2) for i in range(5)]
        parts = parts_of(keys, [10, 11, 12, 13, 14], 2)
        self.assertEqual([(part.group, part.keys, list(part.rows)) for part in parts],
                         [(0, [keys[0], keys[2]], [10, 12]), (0, [keys[4]], [14]), (1, [keys[1], keys[3]], [11, 13])])
        one_group = [key(i, 7) for i in range(5)]
        self.assertEqual([(part.group, list(part.rows)) for part in parts_of(one_group, range(5), 3)],
                         [(7, [0, 1, 2]), (7, [3, 4])])
        self.assertEqual(parts_of([], [], 3), [])
        with self.assertRaisesRegex(ValueError, "1 keys and 2 rows"):
            parts_of([key(1)], [1, 2], 3)


class Questions(unittest.TestCase):
    def ask(self, book: Lookups, keys: list[bytes], request: str = "r") -> list[bool | None]:
        return [book.ask(one, request) for one in keys]

    def test_the_questions_of_a_step_are_one_batch_for_each_request_and_group(self) -> None:
        book = Lookups()
        a, b, c = key(1), key(2), key(3, 1)
        self.assertEqual(self.ask(book, [a, b, c]), [None] * 3)
        self.assertEqual(self.ask(book, [a], "s"), [None])
        self.assertEqual(book.take(), [Batch([a, b], False), Batch([c], False)])
        self.assertEqual(book.take(), [])
        self.assertEqual(self.ask(book, [a, b, c]), [None] * 3)
        self.assertEqual(book.take(), [])

    def test_a_hit_is_told_once_and_a_miss_until_its_request_needs_it_no_longer(self) -> None:
        book = Lookups()
        keys = [key(i) for i in range(4)]
        self.ask(book, keys)
        (batch,) = book.take()
        self.assertEqual(book.answer(batch, 2), [])
        self.assertEqual(self.ask(book, keys[:3]), [True, True, False])
        self.assertEqual(self.ask(book, [keys[2]]), [False])
        self.assertEqual(self.ask(book, [keys[0], keys[3]]), [None, None])  # asked again in another batch
        self.assertEqual(book.take(), [Batch([keys[0], keys[3]], False)])
        book.forget("r")
        self.assertEqual(len(book), 0)
        self.assertEqual(self.ask(book, [keys[2]]), [None])

    def test_a_search_from_the_end_goes_on_behind_a_miss(self) -> None:
        book = Lookups()
        keys = [key(i) for i in range(2 * SEGMENTS + 2)]
        places = {one: -i for i, one in enumerate(keys)}
        self.ask(book, keys)
        (batch,) = book.take(lambda request, one: places[one])
        self.assertTrue(batch.backward)
        rest = book.answer(batch, 1)
        self.assertEqual([one for part in rest for one in part.keys], keys[2:])
        self.assertEqual(len(rest), SEGMENTS)
        self.assertEqual(self.ask(book, keys[:3]), [True, False, None])
        for part in rest:
            self.assertEqual(book.answer(part, len(part.keys)), [])
        self.assertEqual(self.ask(book, keys[2:]), [True] * (2 * SEGMENTS))

    def test_an_answer_for_a_request_that_has_gone_changes_nothing(self) -> None:
        book = Lookups()
        self.ask(book, [key(1)])
        (batch,) = book.take()
        book.forget("r")
        book.answer(batch, 1)
        self.assertEqual(len(book), 0)
        self.ask(book, [key(2)])
        book.forget("r")  # before it was sent
        self.assertEqual(book.take(), [])

    def test_what_cannot_be_loaded_or_is_not_answered_counts_as_missing(self) -> None:
        book = Lookups()
        self.ask(book, [key(1), key(2)])
        (batch,) = book.take()
        book.give_up(batch)
        self.assertEqual(self.ask(book, [key(1), key(2)]), [False, False])
        book.miss([key(3)], "r")
        self.assertEqual(self.ask(book, [key(3)]), [False])
        book.forget("r")
        book.miss([key(3)], "r")  # its last load ends after the request
        self.assertEqual(len(book), 0)


class Bookkeeping(unittest.TestCase):
    def test_a_job_ends_with_its_last_part(self) -> None:
        jobs = Jobs()
        jobs.begin(1, True, "r", 2, now=10.0)
        jobs.end_part(1, [key(1), key(2)], 2, 200, now=11.0)
        self.assertEqual((jobs.take_finished(), jobs.under_way), ([], 1))
        jobs.end_part(1, [key(3), key(4)], 1, 100, now=12.0)
        (done,) = jobs.take_finished()
        self.assertEqual((done.job, done.success, done.arrived, done.lost), (1, False, [key(1), key(2), key(3)], [key(4)]))
        self.assertEqual((done.nbytes, done.seconds, done.request, len(jobs)), (300, 2.0, "r", 0))

    def test_a_store_loses_no_keys_and_an_empty_job_is_finished(self) -> None:
        jobs = Jobs()
        jobs.begin(1, False, "r", 1, now=0.0)
        with self.assertRaisesRegex(ValueError, "under way"):
            jobs.begin(1, False, "r", 1, now=0.0)
        jobs.end_part(1, [key(1)], 0, 0, now=0.0)
        jobs.begin(2, True, "r", 0, now=0.0)
        self.assertEqual(len(jobs), 2)
        store, empty = jobs.take_finished()
        self.assertEqual((store.success, store.lost, empty.success), (False, [], True))


def config(**changes: Any) -> Any:
    """Returns a configuration as vLLM 0.28 and later have it."""
    group = SimpleNamespace(tokens_per_block=32, layer_names=("a", "b"), group_id=0)
    of = dict(
        groups=(group,), model=SimpleNamespace(name="m", dtype="bfloat16"),
        cache=SimpleNamespace(tokens_per_hash=32, blocks_per_chunk=2),
        parallel=SimpleNamespace(world_size=1, tp_size=1, pp_size=1, pcp_size=1, dcp_size=1),
        replicated_layout=False, canonical_layout=False, kv_cache_layout="LBHNC",
    )
    return SimpleNamespace(config=SimpleNamespace(**{**of, **changes}))


class Spaces(unittest.TestCase):
    def names(
        self, spec: Any, row_bytes: int = 4096, engine: str = "0.32 cpu", factors: dict[str, Any] | None = None
    ) -> list[tuple[str, str, str]]:
        specs = specs_of(layout_of(spec, row_bytes, engine), row_bytes, Weights("", factors or {}))
        return [(of.model, of.dtype, of.layout) for of in specs]

    def test_each_group_has_a_space_of_one_pool_of_rows(self) -> None:
        groups = tuple(SimpleNamespace(tokens_per_block=tokens, layer_names=("a",)) for tokens in (32, 1 << 20))
        specs = specs_of(layout_of(config(groups=groups), 4096, "e"), 4096, Weights("r", {}), salt="s")
        self.assertEqual([(of.chunk_tokens, of.hash_block_tokens) for of in specs], [(64, 64), (65536, 65536)])
        self.assertEqual({(of.model, of.revision, of.dtype, of.salt) for of in specs}, {("m", "r", "bfloat16", "s")})
        self.assertEqual({of.pools[0].object_bytes for of in specs}, {4096})
        self.assertEqual(len({of.layout for of in specs}), 2)
        self.assertLessEqual(max(len(of.layout) for of in specs), 256)

    def test_everything_that_decides_about_the_bytes_makes_another_space(self) -> None:
        base = self.names(config())
        self.assertEqual(self.names(config()), base)
        parallel = SimpleNamespace(world_size=2, tp_size=2, pp_size=1, pcp_size=1, dcp_size=1)
        for other in (config(parallel=parallel), config(kv_cache_layout="LBNHC"), config(canonical_layout=True),
                      config(replicated_layout=True), config(model=SimpleNamespace(name="n", dtype="bfloat16")),
                      config(model=SimpleNamespace(name="m", dtype="fp8")),
                      config(cache=SimpleNamespace(tokens_per_hash=32, blocks_per_chunk=1)),
                      config(groups=(SimpleNamespace(tokens_per_block=32, layer_names=("a", "c")),))):
            self.assertNotEqual(self.names(other), base, other)
        self.assertNotEqual(self.names(config(), row_bytes=8192), base)
        self.assertNotEqual(self.names(config(), engine="0.33 cpu"), base)
        self.assertNotEqual(self.names(config(), factors={"model_config.quantization": "fp8"}), base)

    def test_the_form_of_version_0_25(self) -> None:
        spec = SimpleNamespace(
            gpu_block_size=(16,), hash_block_size=16, block_size_factor=4,
            kv_cache_config=SimpleNamespace(kv_cache_groups=[SimpleNamespace(layer_names=["a"])]),
            vllm_config=SimpleNamespace(
                model_config=SimpleNamespace(model="m" * 300, dtype="torch.bfloat16"),
                cache_config=SimpleNamespace(cache_dtype="auto"),
                parallel_config=SimpleNamespace(
                    world_size=1, tensor_parallel_size=1, pipeline_parallel_size=1, prefill_context_parallel_size=1,
                    decode_context_parallel_size=1,
                ),
            ),
        )
        (of,) = specs_of(layout_of(spec, 4096, "0.25 cuda"), 4096, Weights("", {}))
        self.assertEqual((of.dtype, of.chunk_tokens, len(of.model)), ("bfloat16", 64, 64))


if __name__ == "__main__":
    unittest.main()

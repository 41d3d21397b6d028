"""Terrace and the reference store of each engine get the same random calls through the engine's own classes, and must answer alike.
Where they differ on purpose, the comparison says so.

TERRACE_TEST_SEED repeats one run; a failure names it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import random
import select
import tempfile
import unittest
from types import SimpleNamespace
from typing import Any

import terrace
from daemon import PATIENCE, Daemon
from waiting import until

SEEDS = [int(os.environ["TERRACE_TEST_SEED"])] if "TERRACE_TEST_SEED" in os.environ else [1, 2, 3, 4]
CALLS = 120  # of a run


def leading(flags: list[bool]) -> int:
    return flags.index(False) if False in flags else len(flags)


@unittest.skipIf(importlib.util.find_spec("sglang") is None, "SGLang is not installed here")
class SglangFileStore(unittest.TestCase):
    """HiCacheFile. Differences on purpose:

    - Pages behind the first absent one of a batch are not loaded; SGLang counts the leading ones alone.
    - A pool of which nothing is found is reported with 0 pages, not left out.
    """

    POOLS = ("kv", "mamba", "swa", "indexer")
    POLICIES = {"mamba": "TRAILING_PAGES", "swa": "TRAILING_PAGES", "indexer": "ALL_PAGES"}
    ROWS = 24  # pages of each host pool

    def setUp(self) -> None:
        self.server = Daemon(host_bytes=64 << 20)
        self.addCleanup(self.server.stop)

    def test_random_calls_have_the_same_answers(self) -> None:
        for seed in SEEDS:
            for page_size in (1, 4, 64, 1024):
                with self.subTest(TERRACE_TEST_SEED=seed, page_size=page_size):
                    self.run_calls(seed, page_size)

    def run_calls(self, seed: int, page_size: int) -> None:
        from sglang.srt.mem_cache.hicache_storage import HiCacheFile, PoolHitPolicy, PoolName, PoolTransfer
        from sglang_interface_test import TokenPool

        source = random.Random(f"{seed} {page_size}")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        stores = [self.reference(HiCacheFile, folder.name), self.terrace(f"{seed} {page_size}")]
        pools = []
        for store in stores:
            of_store = {name: TokenPool(2 + i, page_size, self.ROWS * page_size) for i, name in enumerate(self.POOLS)}
            for name, pool in of_store.items():
                if name == "kv":
                    store.register_mem_pool_host(pool)
                store.register_mem_host_pool_v2(pool, PoolName(name))
            pools.append(of_store)
        until(lambda: all(pool.connected for pool in stores[1]._pools.values()))
        keys = [hashlib.sha256(b"%d" % i).hexdigest() for i in range(10)]
        odd = ["", "no digits", "z" * 64, keys[0].upper(), keys[0][:63], " " * 64, "k" * 150]

        def some_keys() -> list[str]:
            first = source.randrange(len(keys))
            chosen = keys[first:first + source.randrange(len(keys))]
            if source.random() < 0.2:
                chosen.insert(source.randrange(len(chosen) + 1), source.choice(odd))
            return chosen

        def transfer(name: str, chosen: list[str] | None, pages: list[int] | None) -> Any:
            policy = PoolHitPolicy[self.POLICIES.get(name, "ALL_PAGES")]
            indices = None if pages is None else pools[0][name].indices(*pages) if pages else pools[0][name].indices(0)[:0]
            return PoolTransfer(PoolName(name), indices, keys=chosen, hit_policy=policy)

        def pages_for(chosen: list[str]) -> list[int] | None:
            pages = source.sample(range(self.ROWS), len(chosen))
            if source.random() < 0.1:  # what does not fit is refused
                return None if source.random() < 0.5 else [*pages, 0]
            return pages

        for _ in range(CALLS):
            what = source.choice(("set", "set", "get", "exists", "exists", "exists_one", "leading"))
            if what in ("set", "get"):
                name = source.choice(self.POOLS)
                chosen = some_keys()
                asked = transfer(name, chosen, pages_for(chosen))
                if what == "set":
                    answers = [store.batch_set_v2([asked]) for store in stores]
                    self.assertEqual(*answers)
                    continue
                before = pools[1][name].rows.clone()
                answers = [store.batch_get_v2([asked])[PoolName(name)] for store in stores]
                came = leading(answers[0])
                self.assertEqual(answers[1], [number < came for number in range(len(chosen))])
                for number in range(came):
                    row = int(asked.host_indices[number * page_size])
                    for part in range(row, row + page_size):
                        before[part] = pools[0][name].rows[part]
                self.assertTrue(before.equal(pools[1][name].rows), "other bytes")
                pools[0][name].rows[:] = before  # what lies behind the first absent page came to one of them alone
            elif what == "exists":
                chosen = some_keys()
                others = source.sample(self.POOLS[1:], source.randrange(len(self.POOLS)))
                asks = [transfer(name, [""] * source.randrange(4), None) for name in others]
                one, two = (store.batch_exists_v2(chosen, asks) for store in stores)
                self.assertEqual((two.kv_hit_pages, two.restorable_prefix_pages), (one.kv_hit_pages, one.restorable_prefix_pages))
                if one.kv_hit_pages:
                    self.assertEqual({str(name): pages for name, pages in two.extra_pool_hit_pages.items() if pages},
                                     {str(name): pages for name, pages in one.extra_pool_hit_pages.items()})
            elif what == "exists_one":
                key = source.choice([*keys, *odd])
                self.assertEqual(*(store.exists(key) for store in stores), key)
            else:
                chosen = some_keys()
                self.assertEqual(*(store.batch_exists(chosen) for store in stores))
        for store in stores:
            store.clear()
        self.assertEqual([store.batch_exists(keys) for store in stores], [0, 0])

    @staticmethod
    def config(**extra: Any) -> Any:
        from sglang.srt.mem_cache.hicache_storage import HiCacheStorageConfig

        return HiCacheStorageConfig(
            tp_rank=0, tp_size=1, pp_rank=0, pp_size=1, attn_cp_rank=0, attn_cp_size=1, is_mla_model=False,
            enable_storage_metrics=False, is_page_first_layout=False, model_name="model", extra_config=extra,
        )

    def reference(self, kind: Any, folder: str) -> Any:
        return kind(self.config(), folder)

    def terrace(self, salt: str) -> Any:
        from terrace.sglang.hicache import TerraceHiCache

        made = TerraceHiCache(self.config(socket=self.server.socket, lookup_seconds=PATIENCE, interface_v1=1, salt=salt,
                                          revision="of the tests"), {})
        self.addCleanup(made.close)
        return made


@unittest.skipIf(importlib.util.find_spec("lmcache") is None, "LMCache is not installed here")
class LmcacheFileSystem(unittest.TestCase):
    """The file-system adapter of LMCache's server. An object has one size, as in the server. A difference on purpose: an empty batch is
    answered, where the reference raises an error."""

    SIZES = (32, 4096, 12345)  # by group

    def setUp(self) -> None:
        from lmcache.v1.distributed.l2_adapters import create_l2_adapter
        from lmcache.v1.distributed.l2_adapters.fs_native_l2_adapter import FSNativeL2AdapterConfig
        from lmcache.v1.distributed.l2_adapters.native_plugin_l2_adapter import NativePluginL2AdapterConfig

        self.server = Daemon(host_bytes=64 << 20)
        self.addCleanup(self.server.stop)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.adapters = [
            create_l2_adapter(FSNativeL2AdapterConfig.from_dict({"base_path": folder.name})),
            create_l2_adapter(NativePluginL2AdapterConfig.from_dict({
                "module_path": "terrace.lmcache.connector", "class_name": "TerraceConnector",
                "adapter_params": {"socket": self.server.socket, "lookup_seconds": PATIENCE, "revision": "of the tests"},
            })),
        ]
        for adapter in self.adapters:
            self.addCleanup(adapter.close)

    def test_random_calls_have_the_same_answers(self) -> None:
        for seed in SEEDS:
            with self.subTest(TERRACE_TEST_SEED=seed):
                self.run_calls(seed)

    def run_calls(self, seed: int) -> None:
        from lmcache.v1.distributed.api import ObjectKey

        source = random.Random(seed)
        keys = [
            ObjectKey(chunk_hash=hashlib.sha256(b"%d" % chunk).digest()[:width], model_name=f"org/model-{seed}", kv_rank=rank,
                      object_group_id=group, cache_salt=salt)
            for chunk in range(8) for rank in (0x01000100, 0x02010201) for group in range(len(self.SIZES))
            for salt in ("", "somebody", "x" * 128) for width in (32, 16, 4)
        ]

        def objects(chosen: list[Any], fill: bytes) -> list[Any]:
            made = []
            for key in chosen:
                data = bytearray(self.SIZES[key.object_group_id])
                if fill:
                    data[:] = (hashlib.sha256(fill + repr(key).encode()).digest() * (len(data) // 32 + 1))[:len(data)]
                made.append(SimpleNamespace(byte_array=memoryview(data), get_size=lambda data=data: len(data)))
            return made

        for call in range(CALLS):
            chosen = source.sample(keys, source.choice((0, 1, 2, 5, 40, len(keys))))
            what = source.choice(("store", "lookup", "lookup", "load", "load"))
            adapters = self.adapters if chosen else self.adapters[1:]
            if what == "store":
                given = objects(chosen, b"%d" % call)  # a second store of a key does not change it
                done = [self.stored(adapter, adapter.submit_store_task(chosen, given)) for adapter in adapters]
                self.assertEqual(set(done), {True})
            elif what == "lookup":
                found = []
                for adapter in adapters:
                    task = adapter.submit_lookup_and_lock_task(chosen, {})
                    found.append(self.result(adapter.get_lookup_and_lock_event_fd(), lambda: adapter.query_lookup_and_lock_result(task)))
                    adapter.submit_unlock(chosen)
                self.assertEqual(found[0], found[-1])
            else:
                loaded = []
                for adapter in adapters:
                    into = objects(chosen, b"")
                    task = adapter.submit_load_task(chosen, into)
                    came = self.result(adapter.get_load_event_fd(), lambda: adapter.query_load_result(task))
                    loaded.append((came, [bytes(one.byte_array) for one in into]))
                self.assertEqual(loaded[0][0], loaded[-1][0])
                self.assertTrue(loaded[0][1] == loaded[-1][1], "other bytes")

    def stored(self, adapter: Any, task: int) -> bool:
        results: dict[int, Any] = {}

        def done() -> Any:
            results.update(adapter.pop_completed_store_tasks())
            return results.get(task)

        return bool(self.result(adapter.get_store_event_fd(), done, bitmap=False).is_successful())

    def result(self, event: int, ask: Any, bitmap: bool = True) -> Any:
        while (answer := ask()) is None:
            self.assertTrue(select.select([event], [], [], PATIENCE)[0], "no answer within the patience of a test")
            os.read(event, 8)
        return sorted(answer.get_indices_list()) if bitmap else answer


@unittest.skipIf(importlib.util.find_spec("vllm") is None, "vLLM is not installed here")
class VllmFileTier(unittest.TestCase):
    """The file-system tier of vLLM's native offloading, with two groups of layers. A difference on purpose: of a load in which a key is
    absent the reference keeps what comes before it, and Terrace what comes before it in each group."""

    ROWS, ROW_BYTES, GROUPS = 64, 8192, 2

    def setUp(self) -> None:
        self.server = Daemon(host_bytes=64 << 20)
        self.addCleanup(self.server.stop)

    def test_random_calls_have_the_same_answers(self) -> None:
        for seed in SEEDS:
            with self.subTest(TERRACE_TEST_SEED=seed):
                self.run_calls(seed)

    def run_calls(self, seed: int) -> None:
        import numpy
        from terrace.vllm.tier import TerraceTier
        from vllm.v1.kv_offload.base import ReqContext, make_offload_key
        from vllm.v1.kv_offload.tiering.base import TransferJob
        from vllm.v1.kv_offload.tiering.fs.manager import FileSystemTierManager

        source = random.Random(seed)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        pools = [terrace.Memory(self.ROWS * self.ROW_BYTES) for _ in range(2)]
        views = [memoryview(pool).cast("B", (self.ROWS, self.ROW_BYTES)) for pool in pools]
        rows = [numpy.frombuffer(memoryview(pool), numpy.uint8).reshape(self.ROWS, self.ROW_BYTES) for pool in pools]
        tiers = [
            FileSystemTierManager(vllm_spec(self.GROUPS, self.ROW_BYTES), views[0], "fs", folder.name, n_read_threads=1, n_write_threads=1),
            TerraceTier(vllm_spec(self.GROUPS, self.ROW_BYTES), views[1], "TerraceTier", socket=self.server.socket, revision=f"of test {seed}",
                        lookup_seconds=PATIENCE),
        ]
        keys = [make_offload_key(hashlib.sha256(b"%d" % i).digest(), i % self.GROUPS) for i in range(40)]
        stored: set[bytes] = set()
        for number in range(CALLS):
            request = ReqContext(req_id=f"{number}")
            first = source.randrange(len(keys))
            chosen = keys[first:first + source.choice((0, 1, 2, 7, len(keys)))]
            if source.random() < 0.3:
                source.shuffle(chosen)
            for position, key in enumerate(chosen):
                request.set_offload_key_position(key, position + 1)
            what = source.choice(("store", "lookup", "lookup", "load"))
            chunks = numpy.array(source.sample(range(self.ROWS), len(chosen)), numpy.int64)
            for tier in tiers:
                tier.on_new_request(request)
            if what == "lookup":
                found = [self.looked_up(tier, chosen, request) for tier in tiers]
                self.assertEqual(*found)
            else:
                for one in rows:
                    one[:] = 0
                if what == "store":
                    for key, row in zip(chosen, chunks):
                        data = numpy.frombuffer(hashlib.sha256(b"%d %d" % (seed, number) + key).digest() * (self.ROW_BYTES // 32), numpy.uint8)
                        rows[0][row] = rows[1][row] = data
                results = []
                for tier in tiers:
                    job = TransferJob(number, list(chosen), chunks, what == "load", request)
                    (tier.submit_load if what == "load" else tier.submit_store)(job)
                    results.append(self.finished(tier, number))
                self.assertEqual(results[0].success, results[1].success)
                if what == "store":
                    stored.update(chosen)
                else:
                    came = [set(chosen) if result.success else set(result.successful_keys or ()) for result in results]
                    self.assertLessEqual(came[0], came[1])
                    self.assertLessEqual(came[1], stored)
                    at = dict(zip(chosen, chunks))
                    self.assertTrue(all((rows[0][at[key]] == rows[1][at[key]]).all() for key in came[0]), "other bytes")
                    self.assertTrue(all(rows[1][at[key]].any() for key in came[1]), "no bytes")
            for tier in tiers:
                tier.on_request_finished(request)
        for tier in tiers:
            tier.shutdown()

    def looked_up(self, tier: Any, keys: list[Any], request: Any) -> list[bool]:
        """As the scheduler asks: in order, and again in its next step where there is no answer yet, up to the first miss."""
        from vllm.v1.kv_offload.base import LookupResult, ScheduleEndContext

        hits: dict[bytes, bool] = {}  # a hit is told once

        def answered() -> bool:
            for key in keys:
                if key not in hits and (answer := tier.lookup(key, request)) in (LookupResult.HIT, LookupResult.MISS):
                    hits[key] = answer == LookupResult.HIT
            tier.on_schedule_end(ScheduleEndContext([], []))
            self.assertEqual(list(tier.get_finished_jobs()), [])  # a step of the engine
            known = [hits.get(key) for key in keys]
            return None not in known[:known.index(False) if False in known else None]

        until(answered)
        found = [hits.get(key, False) for key in keys]
        return found[:found.index(False)] if False in found else found

    def finished(self, tier: Any, number: int) -> Any:
        results: list[Any] = []

        def ended() -> bool:
            results.extend(tier.get_finished_jobs())
            return bool(results)

        until(ended)
        (result,) = results
        self.assertEqual(result.job_id, number)
        return result


@unittest.skipIf(importlib.util.find_spec("vllm") is None, "vLLM is not installed here")
class VllmCpuOffloading(unittest.TestCase):
    """vLLM's offloading to host memory that is large enough for everything, and vLLM's offloading to a few rows with Terrace below them: what
    the large memory has, the small one finds too, with the same bytes. vLLM's stock managers of both are asked as its scheduler asks
    them."""

    ROWS, ROW_BYTES, GROUPS, KEYS = 12, 8192, 2, 60

    def setUp(self) -> None:
        self.server = Daemon(host_bytes=64 << 20)
        self.addCleanup(self.server.stop)

    def test_random_calls_have_the_same_answers(self) -> None:
        for seed in SEEDS:
            with self.subTest(TERRACE_TEST_SEED=seed):
                self.run_calls(seed)
        with terrace.connect(self.server.socket, observes=True, timeout=PATIENCE) as observer:
            (host,) = (tier for tier in observer.status(timeout=PATIENCE).groups[0].tiers if tier.tier == "host")
        self.assertGreater(host.bytes_read, len(SEEDS) * self.KEYS * self.ROW_BYTES, "little came from Terrace")

    def run_calls(self, seed: int) -> None:
        import numpy
        from terrace.vllm.tier import TerraceTier
        from vllm.v1.kv_offload.base import ReqContext, make_offload_key
        from vllm.v1.kv_offload.cpu.manager import CPUOffloadingManager
        from vllm.v1.kv_offload.cpu.shared_offload_region import SharedOffloadRegion
        from vllm.v1.kv_offload.tiering.manager import CPUPrimaryTierOffloadingManager, TieringOffloadingManager

        source = random.Random(seed)
        region = SharedOffloadRegion(engine_id=f"terrace-test-{os.getpid()}-{seed}", num_chunks=self.ROWS, rank=None,
                                     kv_bytes_per_chunk=self.ROW_BYTES, cpu_page_size=self.ROW_BYTES)
        primary = CPUPrimaryTierOffloadingManager(num_chunks=self.ROWS, mmap_region=region)
        view = primary.get_kv_memoryview()
        tier = TerraceTier(vllm_spec(self.GROUPS, self.ROW_BYTES), view, "TerraceTier", socket=self.server.socket,
                           revision=f"of test {seed}", lookup_seconds=PATIENCE)
        managers = [CPUOffloadingManager(num_chunks=self.KEYS), TieringOffloadingManager(primary, [tier])]
        rows = [numpy.zeros((self.KEYS, self.ROW_BYTES), numpy.uint8), numpy.frombuffer(view, numpy.uint8).reshape(self.ROWS, self.ROW_BYTES)]
        keys = [make_offload_key(hashlib.sha256(b"%d" % i).digest(), i % self.GROUPS) for i in range(self.KEYS)]
        for number in range(CALLS):
            first = source.randrange(len(keys))
            chosen = keys[first:first + source.choice((1, 2, 5, self.ROWS // 2))]
            if source.random() < 0.3:
                source.shuffle(chosen)
            requests = [ReqContext(req_id=f"{number}") for _ in managers]
            for manager, request in zip(managers, requests):
                for position, key in enumerate(chosen):
                    request.set_offload_key_position(key, position + 1)
                manager.on_new_request(request)
            if source.random() < 0.4:
                for manager, request, memory in zip(managers, requests, rows):
                    self.store(manager, request, chosen, memory, seed)
            else:
                found = [self.found(manager, request, chosen) for manager, request in zip(managers, requests)]
                self.assertEqual(*found)
                loaded = []
                for manager, request, memory in zip(managers, requests, rows):
                    spec = manager.prepare_load(chosen[:found[0]], request)
                    loaded.append(memory[spec.chunk_ids].copy())
                    manager.complete_load(chosen[:found[0]], request)
                self.assertTrue((loaded[0] == loaded[1]).all(), "other bytes")
                self.assertEqual([bytes(row) for row in loaded[0]], [self.content(seed, key) for key in chosen[:found[0]]])
            for manager, request in zip(managers, requests):
                manager.on_request_finished(request)
                self.settle(manager)
        del view, rows, memory
        for manager in managers:
            manager.shutdown()

    def content(self, seed: int, key: bytes) -> bytes:
        return hashlib.sha256(b"%d" % seed + key).digest() * (self.ROW_BYTES // 32)

    def store(self, manager: Any, request: Any, keys: list[Any], memory: Any, seed: int) -> None:
        import numpy

        ready = manager.prepare_store(keys, request)
        self.assertIsNotNone(ready, "nothing is under way, so there is room")
        for key, row in zip(ready.keys_to_store, ready.store_spec.chunk_ids):
            memory[row] = numpy.frombuffer(self.content(seed, key), numpy.uint8)
        if ready.keys_to_store:
            manager.complete_store(ready.keys_to_store, request)

    def found(self, manager: Any, request: Any, keys: list[Any]) -> int:
        """How many leading keys can be loaded in the same step, once there is an answer for each."""
        from vllm.v1.kv_offload.base import LookupResult, ScheduleEndContext

        answers: list[Any] = []

        def known() -> bool:
            answers[:] = [manager.lookup(key, request) for key in keys]
            answers.append(LookupResult.MISS)
            del answers[answers.index(LookupResult.MISS):]
            if all(answer == LookupResult.HIT for answer in answers):
                return True
            manager.touch(keys, request)
            manager.on_schedule_end(ScheduleEndContext([], []))
            return False

        until(known)
        return len(answers)

    def settle(self, manager: Any) -> None:
        """By steps of the engine."""
        from vllm.v1.kv_offload.base import ScheduleEndContext

        def idle() -> bool:
            manager.on_schedule_end(ScheduleEndContext([], []))
            return not manager.has_pending_work()

        until(idle)


def vllm_spec(groups: int, row_bytes: int) -> Any:
    """What vLLM tells its tiers of an engine with so many groups of layers."""
    from vllm.v1.kv_offload import config

    layers = tuple(config.OffloadingGroupConfig(16, (f"layer{group}",), group) for group in range(groups))
    parallel = config.OffloadingParallelConfig(0, 1, 1, 1, 1, 1, 0, 1, None, True)
    made = config.OffloadingConfig(layers, row_bytes, False, {}, "engine", config.OffloadingModelConfig("org/model", "bfloat16"),
                                   config.OffloadingCacheConfig(16, 1), parallel)
    return SimpleNamespace(config=made, blocks_per_chunk=1, kv_events_config=SimpleNamespace(enable_kv_cache_events=False))


if __name__ == "__main__":
    unittest.main()

"""The backend against the base class of the SGLang that is installed, where drift of its interface shows first, and what
the engine of sglang_test.py does not use: further pools, and pages as tensors."""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import unittest
from types import SimpleNamespace
from typing import Any
from unittest import mock

try:
    import sglang  # noqa: F401
except ModuleNotFoundError:
    raise unittest.SkipTest("SGLang is not installed here") from None

import terrace
import torch
from prometheus_client import REGISTRY
from sglang.srt.mem_cache.hicache_storage import (
    HiCacheStorage, HiCacheStorageConfig, HiCacheStorageExtraInfo, PoolHitPolicy, PoolName, PoolTransfer,
)

from sglang.srt.lora.lora_registry import LoRARef
from sglang.srt.server_args import ServerArgs

from daemon import PATIENCE, Daemon
from terrace.sglang import factors, hicache
from terrace.sglang.hicache import TerraceHiCache
from waiting import until

PAGE = 4  # tokens
TOKENS = 64


def accepts(method: Any, of_base: Any) -> bool:
    """Whether each way to call the base's method is one to call ours."""
    ours = inspect.signature(method).parameters
    return all(name in ours for name in inspect.signature(of_base).parameters)


class Interface(unittest.TestCase):
    def test_nothing_abstract_is_left_and_all_signatures_agree(self) -> None:
        self.assertEqual(TerraceHiCache.__abstractmethods__, frozenset())
        for name, method in vars(TerraceHiCache).items():
            if inspect.isfunction(method) and hasattr(HiCacheStorage, name) and name != "__init__":
                self.assertTrue(accepts(method, getattr(HiCacheStorage, name)), name)

    def test_what_the_backend_reads_exists(self) -> None:
        config = {field.name for field in dataclasses.fields(HiCacheStorageConfig)}
        self.assertLessEqual({"tp_rank", "tp_size", "pp_rank", "pp_size", "is_mla_model", "model_name", "extra_config"}, config)
        transfer = {field.name for field in dataclasses.fields(PoolTransfer)}
        self.assertLessEqual({"name", "host_indices", "keys", "hit_policy"}, transfer)
        self.assertIn("prefix_keys", {field.name for field in dataclasses.fields(HiCacheStorageExtraInfo)})
        self.assertEqual(str(PoolName.KV), "kv")


class Arguments(unittest.TestCase):
    def test_what_decides_about_kv_is_among_sglangs_arguments(self) -> None:
        known = set(inspect.signature(ServerArgs).parameters)
        self.assertEqual({*factors.USED, *factors.FILES} - known, set())
        defaults = ServerArgs(model_path="no/files")
        self.assertIn(str(defaults.load_format), factors.FILE_FORMATS)
        self.assertIn("no/files has no files", factors.weights_of(defaults, None, 1).private)

    def test_adapters_are_read_in_all_forms_of_sglang(self) -> None:
        reference = LoRARef(lora_name="a", lora_path="/a")
        for given in (["a=/a"], [{"lora_name": "a", "lora_path": "/a"}], [reference], {"a": "/a"}, {"a": reference}):
            self.assertEqual(factors.adapters_of(ServerArgs(model_path="m", lora_paths=given)), [("a", "/a")])


class TokenPool:
    """Rows of one token each in memory of this process, with the methods by which SGLang's host pools give and take pages."""

    layout = "layer_first"
    dtype = torch.float32

    def __init__(self, width: int, page_size: int = PAGE, tokens: int = TOKENS) -> None:
        self.page_size = page_size
        self.rows = torch.arange(tokens * width, dtype=self.dtype).reshape(tokens, width) + width

    def get_data_page(self, index: int, flat: bool = True) -> torch.Tensor:
        return self.rows[index:index + self.page_size].flatten()

    def get_dummy_flat_data_page(self) -> torch.Tensor:
        return torch.zeros(self.page_size * self.rows.shape[1], dtype=self.dtype)

    def set_from_flat_data_page(self, index: int, data_page: torch.Tensor) -> None:
        self.rows[index:index + self.page_size] = data_page.reshape(self.page_size, -1)

    def indices(self, *pages: int) -> torch.Tensor:
        return torch.cat([torch.arange(page * self.page_size, (page + 1) * self.page_size) for page in pages])


def keys_of(*numbers: int) -> list[str]:
    return [hashlib.sha256(b"%d" % number).hexdigest() for number in numbers]


class Backend:
    """A process of an engine with a KV pool and Mamba states."""

    def __init__(self, socket: str, **extra: Any) -> None:
        config = HiCacheStorageConfig(
            tp_rank=0, tp_size=1, pp_rank=0, pp_size=1, attn_cp_rank=0, attn_cp_size=1, is_mla_model=False,
            enable_storage_metrics=False, is_page_first_layout=False, model_name="model",
            extra_config={"socket": socket, "lookup_seconds": PATIENCE, **extra},
        )
        self.storage = TerraceHiCache(config, {})
        self.kv, self.mamba = TokenPool(8), TokenPool(100, page_size=1)
        self.storage.register_mem_pool_host(self.kv)
        self.storage.register_mem_host_pool_v2(self.mamba, PoolName.MAMBA)
        until(lambda: all(pool.connected for pool in self.storage._pools.values()))

    def transfer(self, numbers: list[int], pages: list[int]) -> PoolTransfer:
        return PoolTransfer(PoolName.MAMBA, self.mamba.indices(*pages), keys=keys_of(*numbers),
                            hit_policy=PoolHitPolicy.TRAILING_PAGES)

    def usable(self, *numbers: int, trailing: int = 1, policy: PoolHitPolicy = PoolHitPolicy.TRAILING_PAGES) -> tuple[int, Any]:
        asked = PoolTransfer(PoolName.MAMBA, keys=keys_of(*range(trailing)), hit_policy=policy)
        found = self.storage.batch_exists_v2(keys_of(*numbers), [asked])
        return found.kv_hit_pages, found.extra_pool_hit_pages


class Pools(unittest.TestCase):
    def setUp(self) -> None:
        self.server = Daemon(host_bytes=64 << 20)
        self.addCleanup(self.server.stop)

    def backend(self, **extra: Any) -> Backend:
        with self.assertLogs("sglang.terrace", "WARNING") as log:  # its memory is not shared
            made = Backend(self.server.socket, revision="of the tests", **extra)
        self.assertIn("copied", log.output[0])
        self.addCleanup(made.storage.close)
        return made

    def test_pages_that_are_not_in_shared_memory_are_copied(self) -> None:
        one, two = self.backend(interface_v1=1), self.backend(interface_v1=1)
        info = HiCacheStorageExtraInfo(prefix_keys=keys_of(1))
        self.assertEqual(one.storage.batch_set_v1(keys_of(2, 3), one.kv.indices(5, 2), info), [True, True])
        self.assertEqual(two.storage.batch_exists(keys_of(2, 3, 4)), 2)
        self.assertEqual(two.storage.batch_get_v1(keys_of(2, 3, 4), two.kv.indices(0, 1, 3)), [True, True, False])
        self.assertTrue(torch.equal(two.kv.get_data_page(0), one.kv.get_data_page(5 * PAGE)))
        self.assertTrue(torch.equal(two.kv.get_data_page(PAGE), one.kv.get_data_page(2 * PAGE)))

    def test_operators_see_port_and_role_and_prometheus_the_connections(self) -> None:
        def connected() -> float | None:
            return REGISTRY.get_sample_value("terrace_connected", {"adapter": "sglang"})

        before = connected() or 0
        arguments = SimpleNamespace(port=30000, model_path="m", lora_paths=None)
        with mock.patch.object(hicache, "_server_args", return_value=arguments):
            one = self.backend(interface_v1=1)
        with terrace.connect(self.server.socket, observes=True, timeout=PATIENCE) as observer:
            clients = observer.status(timeout=PATIENCE).clients
        names = sorted(client.name for client in clients if client.name.startswith("sglang"))
        roles = ("loads", "lookups", "mamba loads", "mamba lookups", "mamba stores", "stores")
        self.assertEqual(names, [f"sglang:30000 {role}" for role in roles])
        until(lambda: connected() == before + 6)
        self.server.kill()
        until(lambda: connected() == before)
        one.storage.close()

    def test_states_of_another_pool_end_the_prefix(self) -> None:
        one = self.backend(interface_v1=1)
        one.storage.batch_set_v1(keys_of(1, 2, 3, 4), one.kv.indices(1, 2, 3, 4))
        self.assertEqual(one.usable(1, 2, 3, 4), (0, {"kv": 4, "mamba": 0}))
        self.assertEqual(one.storage.batch_set_v2([one.transfer([1, 2, 4], [7, 8, 9])]), {PoolName.MAMBA: [True] * 3})
        self.assertEqual(one.usable(1, 2, 3, 4), (4, {"kv": 4, "mamba": 4}))
        self.assertEqual(one.usable(1, 2, 3)[0], 2)
        self.assertEqual(one.usable(1, 2, 3, 4, trailing=2)[0], 2)
        self.assertEqual(one.usable(1, 2, 3, 4, policy=PoolHitPolicy.ALL_PAGES)[0], 2)
        self.assertEqual(one.usable(1, 2, 3, 4, policy=PoolHitPolicy.BLOCK_GROUPS), (4, {"kv": 4}))
        got = one.storage.batch_get_v2([one.transfer([2, 4, 3], [20, 21, 22])])
        self.assertEqual(got, {PoolName.MAMBA: [True, True, False]})
        self.assertTrue(torch.equal(one.mamba.rows[20], one.mamba.rows[8]))
        self.assertTrue(torch.equal(one.mamba.rows[21], one.mamba.rows[9]))

    def test_what_does_not_fit_a_pool_is_refused(self) -> None:
        one = self.backend(interface_v1=1)
        unknown = PoolTransfer(PoolName.SWA, one.mamba.indices(1), keys=keys_of(1))
        short = PoolTransfer(PoolName.MAMBA, one.mamba.indices(1), keys=keys_of(1, 2))
        with self.assertLogs("sglang.terrace", "ERROR"):
            self.assertEqual(one.storage.batch_set_v2([unknown, short]), {PoolName.SWA: [False], PoolName.MAMBA: [False] * 2})
            self.assertEqual(one.storage.batch_get_v2([unknown, short]), {PoolName.SWA: [False], PoolName.MAMBA: [False] * 2})

    def test_pages_as_tensors(self) -> None:
        one = self.backend()
        pages = [one.kv.get_data_page(PAGE * number) for number in (3, 5)]
        self.assertTrue(one.storage.batch_set(keys_of(1, 2), pages))
        self.assertTrue(one.storage.set(keys_of(3)[0], pages[0]))
        self.assertEqual((one.storage.exists(keys_of(3)[0]), one.storage.exists(keys_of(4)[0])), (True, False))
        targets = [one.kv.get_dummy_flat_data_page() for _ in range(3)]
        first, second, third = one.storage.batch_get(keys_of(1, 2, 4), targets)
        self.assertTrue(torch.equal(first, pages[0]) and torch.equal(second, pages[1]))
        self.assertIs(first, targets[0])
        self.assertIsNone(third)
        self.assertTrue(torch.equal(one.storage.get(keys_of(2)[0]), pages[1]))

    def test_cleared_pages_are_gone(self) -> None:
        one = self.backend(interface_v1=1)
        one.storage.batch_set_v1(keys_of(1), one.kv.indices(1))
        one.storage.batch_set_v2([one.transfer([1], [1])])
        one.storage.clear()
        self.assertEqual(one.storage.batch_exists(keys_of(1)), 0)
        self.assertEqual(one.storage.batch_get_v2([one.transfer([1], [2])]), {PoolName.MAMBA: [False]})


if __name__ == "__main__":
    unittest.main()

"""A storage backend of SGLang's HiCache: `--hicache-storage-backend dynamic` with `{"backend_name": "terrace",
"module_path": "terrace.sglang.hicache", "class_name": "TerraceHiCache", "interface_v1": 1, "allocator": "shm"}` as
its extra configuration.

SGLang moves pages between the GPU and a pool in host memory; the daemon reads and writes that pool itself. SGLang
calls from its own threads, which may wait: one looks up, one loads, one stores.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from sglang.srt.mem_cache.hicache_storage import (  # type: ignore[import-not-found]
    HiCacheStorage,
    PoolHitPolicy,
    PoolTransferResult,
)

from .. import gauge, options
from ..connection import default_socket
from ..errors import BadRequest
from ..link import HostPool
from ..options import Limits
from ..pages import Pages
from .factors import weights_of
from .identity import Owner, digests_of, spec_of
from .pools import CopiedPool, Door, OpenDoor, PagePool, SharedPool, StagedPool, as_bytes, page_bytes_of

logger = logging.getLogger("sglang.terrace")

KV = "kv"
# Versions that let several ranks agree on a length ask for all of them.
TELLS_LENGTHS = "restorable_prefix_pages" in getattr(PoolTransferResult, "__dataclass_fields__", {})


def _version() -> str:
    try:
        return version("sglang")
    except PackageNotFoundError:
        return "unknown"


def _server_args() -> Any:
    """Returns the arguments of this engine; None if SGLang does not give them."""
    try:
        from sglang.srt.runtime_context import get_server_args  # type: ignore[import-not-found]
    except ImportError:  # versions before 0.5.23
        return None
    try:
        return get_server_args()
    except (AttributeError, RuntimeError, ValueError):
        return None


def _client_name(name: str, config: Any) -> str:
    """Returns what operators see of this process: the name, the port of the engine's server, and the rank."""
    port = getattr(_server_args(), "port", None)
    name = f"{name}:{port}" if port else name
    return f"{name} rank {config.tp_rank}" if config.tp_size > 1 else name


class TerraceHiCache(HiCacheStorage):  # type: ignore[misc]
    def __init__(self, storage_config: Any, kwargs: Any = None) -> None:
        """`storage_config.extra_config` may have `socket` (the daemon's; by default TERRACE_SOCKET, or the system's),
        `revision` (of the model's weights), `salt` (engines share pages only with those of an equal salt), `name`,
        `lookup_seconds`, `load_seconds`, `store_seconds`."""
        given = dict(storage_config.extra_config or {})
        self._config = storage_config
        self._path = str(given.get("socket") or default_socket())
        self._name = _client_name(options.text("name", given.get("name", "sglang")), storage_config)
        self._limits = Limits(
            given.get("lookup_seconds", Limits.lookup), given.get("load_seconds", Limits.load),
            given.get("store_seconds", Limits.store),
        )
        revision = given.get("revision")
        weights = weights_of(
            _server_args(), None if revision is None else options.text("revision", revision), storage_config.tp_size
        )
        if weights.private:
            logger.warning("Terrace: KV is not shared beyond this engine: %s", weights.private)
        self._owner = Owner(f"sglang {_version()}", weights, options.text("salt", given.get("salt", "")))
        self._in_place = bool(given.get("interface_v1", 0))  # otherwise SGLang passes pages as tensors
        self._pools: dict[str, PagePool] = {}

    # ---- pools ----

    def register_mem_pool_host(self, mem_pool_host: Any) -> None:
        super().register_mem_pool_host(mem_pool_host)
        self._replace(KV, self._shared_or_copied(mem_pool_host))

    def register_mem_host_pool_v2(self, host_pool: Any, host_pool_name: Any) -> None:
        super().register_mem_host_pool_v2(host_pool, host_pool_name)
        if str(host_pool_name) != KV:
            self._replace(str(host_pool_name), self._copied(host_pool, str(host_pool_name)))

    def _shared_or_copied(self, host_pool: Any) -> PagePool:
        if not self._in_place:
            logger.warning('pages are copied three times more: "interface_v1": 1 in the extra configuration avoids it')
            return self._copied(host_pool, KV)
        try:
            runs = SharedPool.page_runs(host_pool)
        except (BadRequest, NotImplementedError, ValueError) as problem:
            logger.warning('pages are copied once more: %s. "allocator": "shm" in the extra configuration avoids it', problem)
            return self._copied(host_pool, KV)
        return SharedPool(host_pool, self._opener(host_pool, KV, runs))

    def _copied(self, host_pool: Any, name: str) -> PagePool:
        return CopiedPool(host_pool, self._opener(host_pool, name, [page_bytes_of(host_pool)]))

    def _opener(self, host_pool: Any, name: str, runs: Sequence[int]) -> OpenDoor:
        spec = spec_of(self._config, host_pool, name, runs, self._owner)

        def opened(pool: HostPool, role: str) -> Door:
            called = f"{self._name} {role}" if name == KV else f"{self._name} {name} {role}"
            pages = Pages(self._path, pool, name=called, limits=self._limits, log=logger, specs=[spec],
                          changed=gauge.connected("sglang"))
            return Door(pages, spec)

        return opened

    def _replace(self, name: str, pool: PagePool) -> None:
        before, self._pools[name] = self._pools.get(name), pool
        if before is not None:
            before.close()

    # ---- the pages of the KV pool, in place ----

    def batch_exists(self, keys: list[str], extra_info: Any = None) -> int:
        return self._pools[KV].found(digests_of(keys))

    def batch_get_v1(self, keys: list[str], host_indices: Any, extra_info: Any = None) -> list[bool]:
        arrived = self._pools[KV].load(digests_of(keys), host_indices)
        return [number < arrived for number in range(len(keys))]

    def batch_set_v1(self, keys: list[str], host_indices: Any, extra_info: Any = None) -> list[bool]:
        stored = self._pools[KV].store(digests_of(keys), host_indices, _parent(extra_info))
        return [stored] * len(keys)

    # ---- further pools: windows, Mamba states ----

    def batch_exists_v2(self, keys: list[str], pool_transfers: Any = None, extra_info: Any = None) -> Any:
        digests = digests_of(keys)
        pages = self._pools[KV].found(digests)
        hits = {KV: pages}
        restorable = set(range(1, pages + 1))  # lengths of prefixes of which each pool has what it needs
        for transfer in pool_transfers or []:
            if transfer.hit_policy == PoolHitPolicy.ALL_PAGES:
                fits = set(range(1, self._found_in(transfer.name, digests[:pages]) + 1))
            elif transfer.hit_policy == PoolHitPolicy.TRAILING_PAGES:
                fits = self._ends_in(transfer.name, digests[:pages], max(1, len(transfer.keys or ())))
            else:
                continue  # the transfer decides nothing
            hits[str(transfer.name)] = max(fits, default=0)
            restorable &= fits
        lengths = {"restorable_prefix_pages": sorted(restorable)} if TELLS_LENGTHS else {}
        return PoolTransferResult(max(restorable, default=0), hits, **lengths)

    def batch_get_v2(self, transfers: list[Any], extra_info: Any = None) -> dict[str, list[bool]]:
        results = {}
        for transfer in transfers:
            keys = transfer.keys or []
            pool = self._pool_for(transfer, keys)
            arrived = pool.load(digests_of(keys), transfer.host_indices) if pool is not None else 0
            results[transfer.name] = [number < arrived for number in range(len(keys))]
        return results

    def batch_set_v2(self, transfers: list[Any], extra_info: Any = None) -> dict[str, list[bool]]:
        results = {}
        for transfer in transfers:
            keys = transfer.keys or []
            pool = self._pool_for(transfer, keys)
            stored = pool is not None and pool.store(digests_of(keys), transfer.host_indices)
            results[transfer.name] = [stored] * len(keys)
        return results

    def _found_in(self, name: Any, digests: Sequence[bytes]) -> int:
        pool = self._pools.get(str(name))
        return pool.found(digests) if pool is not None else 0

    def _ends_in(self, name: Any, digests: Sequence[bytes], trailing: int) -> set[int]:
        """Returns the lengths of the prefixes whose last `trailing` pages are present."""
        pool = self._pools.get(str(name))
        ends: set[int] = set()
        count = 0  # present ones in a row
        for end, here in enumerate(pool.present(digests) if pool is not None else (), 1):
            count = count + 1 if here else 0
            if count >= min(trailing, end):
                ends.add(end)
        return ends

    def _pool_for(self, transfer: Any, keys: Sequence[str]) -> PagePool | None:
        """Returns None if SGLang asks for something other than one page per key."""
        pool = self._pools.get(str(transfer.name))
        host_pool = getattr(self, "registered_pools", {}).get(transfer.name, getattr(self, "mem_pool_host", None))
        pages = len(keys) * (getattr(host_pool, "page_size", 1) or 1)
        indices = transfer.host_indices
        if pool is None or not keys or indices is None or indices.numel() != pages:
            logger.error("expected %d indices for pages of pool %s, got %s", pages, transfer.name,
                         None if indices is None else indices.numel())
            return None
        return pool

    # ---- pages as tensors, without interface_v1 ----

    def exists(self, key: str) -> bool:
        return self.batch_exists([key]) == 1

    def get(self, key: str, target_location: Any = None, target_sizes: Any = None) -> Any:
        return self.batch_get([key], [target_location])[0]

    def batch_get(self, keys: list[str], target_locations: Any = None, target_sizes: Any = None) -> list[Any]:
        """Loads one page per key, into its target if there is one. Returns None from the first absent one on."""
        pages: list[Any] = [None] * len(keys)
        targets = list(target_locations or pages)

        def write(number: int, data: Any) -> None:
            target = targets[number]
            page = self.mem_pool_host.get_dummy_flat_data_page() if target is None else target
            as_bytes(page).copy_(data)
            pages[number] = page

        pool = self._pools[KV]
        if isinstance(pool, StagedPool):
            pool.load_pages(digests_of(keys), write)
        return pages

    def set(self, key: str, value: Any = None, target_location: Any = None, target_sizes: Any = None) -> bool:
        return self.batch_set([key], [value])

    def batch_set(
        self, keys: list[str], values: Any = None, target_locations: Any = None, target_sizes: Any = None
    ) -> bool:
        pool = self._pools[KV]
        return isinstance(pool, StagedPool) and pool.store_pages(digests_of(keys), list(values))

    # ---- all of it ----

    def clear(self) -> None:
        for pool in self._pools.values():
            pool.clear()

    def close(self) -> None:
        for pool in self._pools.values():
            pool.close()


def _parent(extra_info: Any) -> bytes:
    before = getattr(extra_info, "prefix_keys", None)
    return digests_of(before[-1:])[0] if before else b""

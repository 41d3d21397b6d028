"""A secondary tier of vLLM's native offloading: `"secondary_tiers": [{"type": "TerraceTier", "module_path":
"terrace.vllm.tier"}]` with `"spec_name": "TieringOffloadingSpec"`. For vLLM 0.25 to 0.33.

vLLM moves blocks between the GPU and a pool in host memory; the daemon reads and writes that pool itself. Every
method runs in the scheduler and returns without waiting, except `drain_jobs` and `shutdown`; its start waits for
the daemon.
"""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Collection, Iterable
from typing import Any

import vllm  # type: ignore[import-not-found]
from vllm.logger import init_logger  # type: ignore[import-not-found]
from vllm.platforms import current_platform  # type: ignore[import-not-found]
from vllm.v1.kv_offload import base  # type: ignore[import-not-found]
from vllm.v1.kv_offload.tiering.base import JobResult, SecondaryTierManager  # type: ignore[import-not-found]

from .. import gauge, options
from .._libterrace import address_of
from ..connection import default_socket
from ..options import Limits
from ..shared import memory_of
from ..weights import Weights, process_identity
from .block_hashes import RANDOM_ROOT, has_random_root
from .cache import PoolCache
from .factors import engine_identity, weights_of
from .identity import layout_of, specs_of
from ..link import HostPool

logger = init_logger("vllm.terrace")

_RESULT_FIELDS = {field.name for field in dataclasses.fields(JobResult)}
_RESULTS = {True: base.LookupResult.HIT, False: base.LookupResult.MISS, None: base.LookupResult.RETRY}


class TerraceTier(SecondaryTierManager):  # type: ignore[misc]
    if hasattr(base, "Medium"):
        medium = base.Medium.STORAGE

    def __init__(
        self,
        offloading_spec: Any,
        primary_kv_view: memoryview,
        tier_type: str,
        backpressure_detector: Any = None,
        *,
        socket: str | None = None,
        revision: Any = None,
        salt: Any = "",
        name: str = "vllm",
        lookup_seconds: float = Limits.lookup,
        load_seconds: float = Limits.load,
        store_seconds: float = Limits.store,
        locality: str | None = None,
        module_path: str | None = None,
    ) -> None:
        """The arguments after the `*` come from the tier's configuration. `socket`: the daemon's; by default
        TERRACE_SOCKET, or the system's. `revision`: revision of the model's weights. `salt`: engines share blocks
        only with those of an equal salt."""
        limits = Limits(lookup_seconds, load_seconds, store_seconds)
        given = (offloading_spec, primary_kv_view, tier_type)
        if backpressure_detector is None:
            super().__init__(*given)
        else:
            super().__init__(*given, backpressure_detector)
        if locality is not None and hasattr(base, "Locality"):
            self.locality = base.Locality(locality)
        strides = primary_kv_view.strides
        assert strides is not None
        row_bytes = strides[0]
        layout = layout_of(offloading_spec, row_bytes, f"{vllm.__version__} {current_platform.device_type}")
        weights = _weights(offloading_spec, None if revision is None else options.text("revision", revision))
        if weights.private:
            logger.warning("Terrace: KV is not shared beyond this engine: %s", weights.private)
        specs = specs_of(layout, row_bytes, weights, options.text("salt", salt))
        self._contexts: dict[str, Any] = {}
        self._used = False
        self._cache = PoolCache(
            socket or default_socket(), specs, _host_pool(primary_kv_view, row_bytes), name=f"{options.text('name', name)} tier",
            limits=limits, log=logger, changed=gauge.connected("vllm tier"),
        )
        self._cache.await_attempt()

    # ---- questions ----

    def on_new_request(self, req_context: Any) -> Any:
        if not self._used and has_random_root():  # vLLM has chosen its root by now
            logger.warning(RANDOM_ROOT)
        self._used = True
        self._contexts[req_context.req_id] = req_context
        return base.RequestOffloadingContext()

    def lookup(self, key: bytes, req_context: Any) -> Any:
        return _RESULTS[self._cache.lookup(key, req_context.req_id)]

    def on_schedule_end(self, context: Any) -> None:
        for request in context.new_req_ids:
            self._cache.forget(request)
        self._cache.flush(self._position)

    def on_request_finished(self, req_context: Any) -> None:
        self._contexts.pop(req_context.req_id, None)
        self._cache.forget(req_context.req_id)

    def _position(self, request: str, key: bytes) -> int | None:
        position = getattr(self._contexts.get(request), "get_offload_key_position", None)
        found: int | None = position(key) if position is not None else None
        return found

    # ---- transfers ----

    def submit_store(self, job_metadata: Any) -> None:
        self._cache.store(job_metadata.job_id, job_metadata.keys, _rows(job_metadata), job_metadata.req_context.req_id)

    def submit_load(self, job_metadata: Any) -> None:
        self._cache.load(job_metadata.job_id, job_metadata.keys, _rows(job_metadata), job_metadata.req_context.req_id)

    def get_finished_jobs(self) -> Iterable[Any]:
        results = []
        for job in self._cache.finished():
            told: dict[str, Any] = {"job_id": job.job, "success": job.success}
            if "successful_keys" in _RESULT_FIELDS and job.is_load and not job.success and job.arrived:
                told["successful_keys"] = tuple(job.arrived)
            if "transfer_time" in _RESULT_FIELDS:
                told["transfer_time"] = job.seconds
            if "transfer_bytes" in _RESULT_FIELDS:
                told["transfer_bytes"] = job.nbytes
            results.append(JobResult(**told))
        return results

    def has_pending_work(self) -> bool:
        return self._cache.busy

    def drain_jobs(self) -> None:
        self._cache.drain()

    def touch(self, keys: Collection[bytes], req_context: Any) -> None:
        """Does nothing, because the daemon's policies count loads and stores."""

    def shutdown(self) -> None:
        self._cache.close()
        self.__dict__.pop("_primary_kv_view", None)  # otherwise the pool cannot be unmapped


def _weights(spec: Any, revision: str | None) -> Weights:
    config = getattr(spec, "vllm_config", None) or _config_of_callers()
    if config is None:
        if revision is not None:
            return Weights(revision, {})
        return Weights("process-" + process_identity(), {}, "vLLM's configuration cannot be seen by this tier")
    weights = weights_of(config, revision)
    if getattr(config, "lora_config", None) is None:
        return weights
    why = "vLLM does not tell its tiers which adapter (LoRA) a request uses; it tells connectors, terrace.vllm.connector"
    return Weights(engine_identity(config), weights.factors, why)


def _config_of_callers() -> Any:
    """Returns vLLM's configuration. From 0.28 on a tier gets a part of it that says nothing of weights, quantization
    or adapters; the whole one is an argument of the function that makes the tiers."""
    frame = sys._getframe(1).f_back
    while frame is not None:
        found = frame.f_locals.get("vllm_config")
        if hasattr(found, "model_config"):
            return found
        frame = frame.f_back
    return None


def _rows(job: Any) -> Any:
    return job.chunk_ids if hasattr(job, "chunk_ids") else job.block_ids  # versions before 0.29


def _host_pool(view: memoryview, row_bytes: int) -> HostPool:
    with memory_of(view) as place:
        address, _ = address_of(view)
        return HostPool(os.dup(place.descriptor), place.nbytes, address - place.base, row_bytes)

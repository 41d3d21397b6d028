"""A connector of vLLM: `"kv_connector": "TerraceConnector", "kv_connector_module_path": "terrace.vllm.connector"`,
without vLLM's own host pool. vLLM makes one object in its scheduler and one in each worker. docs/engines/vllm.md
explains the use.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import vllm  # type: ignore[import-not-found]
from vllm.distributed.kv_transfer.kv_connector.v1 import base  # type: ignore[import-not-found]
from vllm.logger import init_logger  # type: ignore[import-not-found]
from vllm.platforms import current_platform  # type: ignore[import-not-found]

from .. import options
from ..connection import default_socket
from ..weights import Weights
from .adapters import Adapters
from .block_hashes import HashesOfEngine
from .factors import adapter_factors, engine_identity, weights_of
from .layered_loads import why_not_layered
from .make_staging import Step, staging_for
from .orders import Ending, LoadOrder, Report, StoreOrder
from .plan import LAYER_PARTS, Plan, Unusable, plan_of
from .scheduler_side import SchedulerSide
from .metrics import PrometheusMetrics, Statistics
from .worker_side import Limits, WorkerSide

logger = init_logger("vllm.terrace")


@dataclass
class Orders(base.KVConnectorMetadata):  # type: ignore[misc]
    """The orders of a step."""

    loads: list[LoadOrder] = field(default_factory=list)
    stores: list[StoreOrder] = field(default_factory=list)
    failures_seen: int = 0
    overwritten: set[int] = field(default_factory=set)  #: blocks that the step may overwrite
    cleared: bool = False  #: the cache was cleared before the step
    endings: list[Ending] = field(default_factory=list)


@dataclass
class Told(getattr(base, "KVConnectorWorkerMetadata", object)):  # type: ignore[misc]
    """The reports of the workers."""

    report: Report

    def aggregate(self, other: Told) -> Told:
        return Told(Report().add(self.report).add(other.report))


@dataclass(frozen=True)
class _Options:
    """The options in kv_connector_extra_config."""

    socket: str = ""
    revision: str | None = None
    salt: str = ""
    name: str = "vllm"
    layered: bool = False
    layer_parts: int = LAYER_PARTS
    staging_bytes: int | None = None  #: None: follows from the size of a step
    prefill_tokens_per_s: int = 0  #: 0: everything that is found is loaded
    lookup_seconds: float = 0.25
    load_seconds: float = Limits.load
    store_seconds: float = Limits.store

    @staticmethod
    def of(given: dict[str, Any]) -> _Options:
        known = set(_Options.__dataclass_fields__)
        if unknown := sorted(set(given) - known):
            raise ValueError(f"expected options of TerraceConnector among {', '.join(sorted(known))}, got {', '.join(unknown)}")
        read: dict[str, Callable[[str, Any], Any]] = {
            "layered": options.flag, "layer_parts": options.whole, "staging_bytes": options.whole,
            "prefill_tokens_per_s": options.whole,
            "lookup_seconds": options.seconds, "load_seconds": options.seconds, "store_seconds": options.seconds,
        }
        said: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        for name, value in said.items():
            reader: Callable[[str, Any], Any] = read.get(name, options.text)
            said[name] = reader(name, value)
        return _Options(**said)


def _stages(vllm_config: Any) -> list[int]:
    """Returns how many of the model's layers each stage of its pipeline has."""
    count = vllm_config.parallel_config.pipeline_parallel_size
    if count == 1:
        return []
    from vllm.distributed.utils import get_pp_indices  # type: ignore[import-not-found]

    layers = vllm_config.model_config.get_total_num_hidden_layers()
    bounds = [get_pp_indices(layers, stage, count) for stage in range(count)]
    return [end - first for first, end in bounds]


class TerraceConnector(base.KVConnectorBase_V1, base.SupportsHMA):  # type: ignore[misc]
    def __init__(self, vllm_config: Any, role: Any, kv_cache_config: Any) -> None:
        super().__init__(vllm_config, role, kv_cache_config)
        self._options = _Options.of(dict(self._kv_transfer_config.kv_connector_extra_config))
        self._scheduler: SchedulerSide | None = None
        self._worker: WorkerSide | None = None
        self._plan: Plan | None = None
        self._blocks = kv_cache_config.num_blocks
        self._statistics: dict[str, float] = {}
        self._unusable = ""
        try:
            weights = weights_of(vllm_config, self._options.revision)
            self._plan = self._make_plan(vllm_config, kv_cache_config, weights)
        except Unusable as problem:
            self._give_up(problem)
            return
        if self._options.layered and (reason := why_not_layered(vllm_config, vllm.__version__, self._plan)):
            raise ValueError(f'"layered": true is refused: {reason}; leave it out, and loads come between steps')
        if role == base.KVConnectorRole.SCHEDULER:
            if getattr(self._kv_transfer_config, "kv_load_failure_policy", "recompute") != "recompute":
                logger.warning('Terrace: set "kv_load_failure_policy": "recompute", or a request whose KV is lost fails')
            if weights.private:
                logger.warning("Terrace: KV is not shared beyond this engine: %s", weights.private)
            self._scheduler = SchedulerSide(
                self._socket, self._plan, name=f"{self._options.name} scheduler", lookup_seconds=self._options.lookup_seconds,
                layered=self._options.layered, log=logger, load_seconds=self._options.load_seconds,
                store_seconds=self._options.store_seconds,
                adapters=Adapters(adapter_factors(vllm_config), engine_identity(vllm_config), logger),
                hashes=HashesOfEngine(vllm_config, self._plan.chunk_tokens // self._plan.hashes_per_chunk, logger),
            )
            self._scheduler.await_attempt()

    def _make_plan(self, vllm_config: Any, kv_cache_config: Any, weights: Weights) -> Plan:
        made = plan_of(
            vllm_config, kv_cache_config, f"{vllm.__version__} {current_platform.device_type}",
            weights=weights, salt=self._options.salt, layer_parts=self._options.layer_parts,
            fails_requests=hasattr(base.KVConnectorBase_V1, "get_transfer_results"), stages=_stages(vllm_config),
        )
        return made.of_rank(getattr(vllm_config.parallel_config, "rank", 0), self._options.prefill_tokens_per_s)

    @property
    def _socket(self) -> str:
        return self._options.socket or default_socket()

    def _give_up(self, reason: Unusable) -> None:
        self._unusable = str(reason)
        logger.warning("Terrace is not used: %s", reason)

    # ---- both ----

    @property
    def requires_kv_delivery(self) -> bool:
        return False  # this is a cache, so chunks that are not stored are later misses

    def shutdown(self) -> None:
        for side in (self._scheduler, self._worker):
            if side is not None:
                side.close()

    def get_kv_connector_stats(self) -> Statistics | None:
        for side in (self._scheduler, self._worker):
            if side is not None:
                return Statistics.since(side.counters, self._statistics, side.connected)
        return None

    @classmethod
    def build_kv_connector_stats(cls, data: dict[str, Any] | None = None) -> Statistics:
        return Statistics(data=dict(data or {}))

    @classmethod
    def build_prom_metrics(cls, vllm_config: Any, metric_types: Any, labelnames: Any, per_engine_labelvalues: Any) -> Any:
        return PrometheusMetrics(vllm_config, metric_types, labelnames, per_engine_labelvalues)

    @classmethod
    def requires_piecewise_for_cudagraph(cls, extra_config: dict[str, Any]) -> bool:
        return options.flag("layered", extra_config.get("layered", False))

    # ---- in the scheduler ----

    def get_num_new_matched_tokens(self, request: Any, num_computed_tokens: int) -> tuple[int | None, bool]:
        return (0, False) if self._scheduler is None else self._scheduler.matched(request, num_computed_tokens)

    def update_state_after_alloc(self, request: Any, blocks: Any, num_external_tokens: int) -> None:
        if self._scheduler is not None:
            self._scheduler.allocated(request, blocks.get_block_ids(), num_external_tokens)

    def build_connector_meta(self, scheduler_output: Any) -> Orders:
        if self._scheduler is None:
            return Orders()
        loads, stores = self._scheduler.orders(scheduler_output)
        return Orders(loads, stores, self._scheduler.failures_seen, *self._scheduler.overwritten(), self._scheduler.endings())

    def has_pending_push_work(self) -> bool:
        """vLLM makes steps without tokens as long as this is true and nothing else is to be done."""
        return self._scheduler is not None and self._scheduler.keeps

    def update_connector_output(self, connector_output: Any) -> None:
        told = getattr(connector_output, "kv_connector_worker_meta", None)
        if self._scheduler is not None and told is not None:
            self._scheduler.reported(told.report)

    def request_finished(self, request: Any, block_ids: list[int]) -> tuple[bool, dict[str, Any] | None]:
        if self._scheduler is not None:
            self._scheduler.finished(request.request_id, str(request.get_finished_reason()), request.num_output_tokens)
        return False, None  # stores no longer need the blocks

    def request_finished_all_groups(
        self, request: Any, block_ids: tuple[list[int], ...]
    ) -> tuple[bool, dict[str, Any] | None]:
        return self.request_finished(request, [])

    def reset_cache(self) -> bool | None:
        """Forgets the KV of this model for all engines, so that KV of wrong weights cannot come back."""
        return None if self._scheduler is None else self._scheduler.clear()

    # ---- in a worker ----

    def register_kv_caches(self, kv_caches: dict[str, Any]) -> None:
        if self._plan is None:
            return
        config = self._vllm_config
        scheduler = config.scheduler_config
        try:
            step = Step(scheduler.max_num_batched_tokens, scheduler.max_num_seqs)
            staging = staging_for(self._plan, kv_caches, self._blocks, self._options.staging_bytes, step)
        except Unusable as reason:
            self._give_up(reason)
            return
        limits = Limits(self._options.load_seconds, self._options.store_seconds)
        self._worker = WorkerSide(
            self._socket, self._plan, staging, name=f"{self._options.name} worker {self._plan.spec.rank}", limits=limits,
            log=logger,
            keeps=not getattr(config.model_config, "enable_sleep_mode", False),  # an engine that sleeps loses its KV
        )
        self._worker.await_attempt()  # before graphs are captured: another thread calls the driver

    def handle_preemptions(self, kv_connector_metadata: Any) -> None:
        if self._worker is not None and isinstance(kv_connector_metadata, Orders):
            self._worker.prepare(kv_connector_metadata.overwritten, kv_connector_metadata.cleared)

    def start_load_kv(self, forward_context: Any, **kwargs: Any) -> None:
        orders = self._orders()
        if self._worker is not None:
            self._worker.begin(orders.loads, orders.endings)

    def wait_for_layer_load(self, layer_name: str) -> None:
        if self._worker is not None:
            self._worker.layer(layer_name)

    def save_kv_layer(self, layer_name: str, kv_layer: Any, attn_metadata: Any, **kwargs: Any) -> None:
        """All layers are saved together when the step is computed, because they are one object."""

    def wait_for_save(self) -> None:
        orders = self._orders()
        if self._worker is not None:
            self._worker.save(orders.stores, orders.failures_seen)

    def get_finished(self, finished_req_ids: set[str]) -> tuple[set[str] | None, set[str] | None]:
        return None, self._received()[0]

    def get_transfer_results(self, finished_req_ids: set[str]) -> Any:
        received, failed = self._received()
        several = self._plan is not None and self._plan.groups > 1  # otherwise the failed blocks are reported
        return base.KVConnectorTransferResults(finished_recving=received, failed_recving=failed if several else set())

    def get_block_ids_with_load_errors(self) -> set[int]:
        if self._worker is not None:
            return self._worker.failed_blocks()
        loads = self._orders().loads if self._is_of_one_group else []
        return {block for order in loads for block in order.blocks[0] if block}

    def build_connector_worker_meta(self) -> Told | None:
        if self._worker is not None:
            report = self._worker.report()
        else:
            orders = self._orders().loads
            report = Report({order.number: 1 for order in orders}, {order.request for order in orders}, 0, bool(orders))
        return Told(report) if report else None

    @property
    def _is_of_one_group(self) -> bool:
        return self._plan is not None and self._plan.groups == 1

    def _received(self) -> tuple[set[str], set[str]]:
        if self._worker is not None:
            return self._worker.received()
        lost = {order.request for order in self._orders().loads if not order.layered}
        return lost, lost

    def _orders(self) -> Orders:
        made = self._connector_metadata
        return made if isinstance(made, Orders) else Orders()

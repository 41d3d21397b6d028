"""The statistics that vLLM's log and its /metrics show of the connector."""

from __future__ import annotations

from typing import Any

from vllm.distributed.kv_transfer.kv_connector.v1.metrics import (  # type: ignore[import-not-found]
    KVConnectorPromMetrics,
    KVConnectorStats,
)
from vllm.v1.metrics.utils import create_metric_per_engine  # type: ignore[import-not-found]

from .stores import REASONS

NAMES = {
    "lookups": "Lookups of prompts that were sent to Terrace.",
    "lookup_misses": "Lookups that found nothing.",
    "lookups_failed": "Lookups without an answer in time, or with an error.",
    "lookup_seconds": "Time from a lookup to the step that took its answer, in seconds.",
    "loads": "Loads that brought all that was found.",
    "loaded_chunks": "Blocks loaded.",
    "loaded_bytes": "Bytes loaded.",
    "load_seconds": "Time from a load's start to its last block, in seconds.",
    "loads_failed": "Loads that did not bring all that was found.",
    "stores": "Stores that ended well.",
    "stored_chunks": "Blocks stored that were not there before.",
    "stored_bytes": "Bytes stored.",
    "stores_failed": "Stores that ended with an error.",
    "turns_reported": "Ends of requests that are turns of a conversation, reported to Terrace.",
    "chunks_not_stored": "Blocks not stored, for all reasons together.",
    **{f"chunks_not_stored_{reason}": f"Blocks not stored: {text}." for reason, text in REASONS.items()},
}

# A change of this number, which vLLM sums up like the statistics: so it is right for workers that come and go.
CONNECTED = "connected"
CONNECTED_TEXT = "Connections of this engine's scheduler and workers to the Terrace daemon; 0: it computes without Terrace."


class Statistics(KVConnectorStats):  # type: ignore[misc]
    """Sums over an interval, by name."""

    @staticmethod
    def since(counters: Any, told: dict[str, float], connected: bool) -> Statistics | None:
        """Returns what `counters` count beyond `told`, and whether the connection came or went, and updates `told`."""
        made: dict[str, float] = {}
        if connected != told.get(CONNECTED, 0):
            made[CONNECTED] = int(connected) - told.get(CONNECTED, 0)
            told[CONNECTED] = int(connected)
        for name in NAMES:
            value = getattr(counters, name, None)
            if value is not None and value != told.get(name, 0):
                made[name] = value - told.get(name, 0)
                told[name] = value
        return Statistics(data=made) if made else None

    def reset(self) -> None:
        self.data: dict[str, Any] = {}

    def aggregate(self, other: KVConnectorStats) -> Statistics:
        for name, value in other.data.items():
            self.data[name] = self.data.get(name, 0) + value
        return self

    def reduce(self) -> dict[str, int | float]:
        return {f"Terrace {name}": round(value, 6) for name, value in self.data.items() if name != CONNECTED}

    def is_empty(self) -> bool:
        return not any(self.data.values())


class PrometheusMetrics(KVConnectorPromMetrics):  # type: ignore[misc]
    """Makes a counter vllm:terrace_NAME for each statistic, and the gauge vllm:terrace_connected."""

    def __init__(self, vllm_config: Any, metric_types: Any, labelnames: Any, per_engine_labelvalues: Any) -> None:
        super().__init__(vllm_config, metric_types, labelnames, per_engine_labelvalues)
        self._counters = {
            name: create_metric_per_engine(
                self._counter_cls(name=f"vllm:terrace_{name}", documentation=text, labelnames=labelnames),
                per_engine_labelvalues,
            )
            for name, text in NAMES.items()
        }
        self._connected = create_metric_per_engine(
            self._gauge_cls(
                name=f"vllm:terrace_{CONNECTED}", documentation=CONNECTED_TEXT, labelnames=labelnames, multiprocess_mode="sum"
            ),
            per_engine_labelvalues,
        )

    def observe(self, transfer_stats_data: dict[str, Any], engine_idx: int = 0) -> None:
        for name, value in transfer_stats_data.items():
            if name == CONNECTED:
                self._connected[engine_idx].inc(value)
            elif name in self._counters:
                self._counters[name][engine_idx].inc(value)

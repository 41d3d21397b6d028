"""The gauge `terrace_connected` beside an engine's own metrics, for engines whose processes have Prometheus's client."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

Change = Callable[[int], None]  #: adds to the gauge


def connected(adapter: str) -> Change:
    """Returns what adds to the number of connections to the daemon in the process's default registry. It does nothing
    without the package prometheus_client, because then no metrics are shown either. The caller calls it late: an engine
    decides first whether its processes share their metrics."""
    gauge = _gauge()
    if gauge is None:
        return lambda change: None
    series = gauge.labels(adapter=adapter)
    return lambda change: series.inc(change)


@functools.cache  # a registry takes a name once, also where a process has two adapters
def _gauge() -> Any:
    try:
        from prometheus_client import Gauge  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        return None
    return Gauge(
        "terrace_connected", "Connections of the engine to the Terrace daemon; 0: it computes without Terrace.",
        ["adapter"], multiprocess_mode="livesum",
    )

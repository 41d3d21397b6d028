"""Loads that start before the step that uses them; each layer is copied to its blocks when the model reaches it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .._libterrace import Loaded
from ..errors import Error
from ..link import Session
from .loads import Load, Loads
from .plan import Part, Plan
from .requests import Result, Window
from .staging import Staging
from .transfers import Transfers

SLICE_SECONDS = 0.01  # limit of a wait for arrivals, after which answers are taken: nothing waits for both

# Versions of vLLM, with their model runner and asynchronous scheduling or not, that recover from a load that fails
# inside a step: they recompute its tokens and return no token that depends on its blocks. vllm_recovery_test.py tries
# each of them. The V2 runner does not go back to tokens that it counts as computed, and with asynchronous scheduling
# the next step is already in progress.
RECOVERING = frozenset({("0.32.0", "V1", False)})


def why_not_layered(vllm_config: Any, version: str, plan: Plan) -> str:
    """Returns why an engine would give wrong tokens after a failed layered load; empty: it would not. `version`: that
    of vLLM."""
    if not plan.layered:
        return f"it takes one group of layers and one worker, got {plan.groups} and {plan.workers}"
    policy = getattr(vllm_config.kv_transfer_config, "kv_load_failure_policy", None)
    if policy != "recompute":
        return f'it takes "kv_load_failure_policy": "recompute", got {policy}'
    if getattr(vllm_config, "speculative_config", None) is not None:
        return "it was not tried with speculative decoding"
    runner = "V2" if getattr(vllm_config, "use_v2_model_runner", False) else "V1"
    asynchronous = bool(getattr(vllm_config.scheduler_config, "async_scheduling", False))
    if (version.partition("+")[0], runner, asynchronous) in RECOVERING:
        return ""
    scheduling = "asynchronous" if asynchronous else "synchronous"
    return f"vLLM {version} with its {runner} model runner and {scheduling} scheduling may give wrong tokens after a load that fails"


@dataclass(slots=True)
class _Layered:
    """A window whose layers are taken one by one."""

    load: Load
    window: Window
    first: int  #: its first chunk in the order
    rows: Any  #: the window's blocks
    came: int  #: chunks of which all layers have arrived so far
    session: Session | None = None
    over: bool = False  #: the request has ended
    delivered: int = 0  #: number of chunks, from its answer
    layers: set[str] = field(default_factory=set)  #: layers that are in their blocks

    def end(self, result: Result) -> None:
        self.over = True
        self.delivered = result.delivered_chunks if isinstance(result, Loaded) else 0
        if self.window.layers is not None:
            self.window.layers.end()


class LayeredLoads:
    def __init__(self, transfers: Transfers, staging: Staging, loads: Loads, on_end: Callable[[Load], None]) -> None:
        self._transfers, self._staging, self._loads, self._on_end = transfers, staging, loads, on_end
        self._part_of: dict[str, tuple[int, Part]] = {
            layer: (number, part) for number, part in enumerate(loads.plan.parts) for layer in part.layers
        }
        self._windows: list[_Layered] = []

    def begin(self, load: Load) -> None:
        """Sends the load's last window; earlier windows, for which staging memory is too small, are completed first."""
        chunks = load.order.chunks
        while load.good and load.sent < chunks:
            window = self._transfers.take(chunks - load.sent)
            if window is None and self._windows:
                earlier = self._windows.pop(0)
                self._finish(earlier, used=False)
                self._on_end(earlier.load)
            elif window is None:
                if not self._transfers.wait(lambda: self._transfers.slots.left > 0, self._loads.seconds):
                    load.fail(load.sent)
            else:
                one = self._send(load, window)
                if load.sent < chunks:
                    self._finish(one, used=False)
                else:
                    self._windows.append(one)
                    return
        self._on_end(load)

    def layer(self, name: str) -> None:
        """From now on the engine finds this layer's KV in its blocks, unless it does not come."""
        if self._windows and name in self._part_of:
            with self._staging.ordered():
                for one in self._windows:
                    self._take_layer(one, name)

    def finish(self) -> None:
        """Called when the model has run."""
        windows, self._windows = self._windows, []
        for one in windows:
            self._finish(one, used=True)
            self._on_end(one.load)

    def _send(self, load: Load, window: Window) -> _Layered:
        first, chunks = load.sent, window.chunks
        load.sent += chunks
        rows = self._staging.mover.rows(load.order.blocks[0][first : first + chunks])
        one = _Layered(load, window, first, rows, came=chunks)
        if self._staging.by_stream:
            self._transfers.receive()  # counters of a lost GPU are not used again
        one.session = session = self._transfers.session()
        if session is not None:
            with self._transfers.lock:
                window.layers = self._staging.begin_layers(session)
        self._loads.send(load, self._loads.plan.parts, first, chunks, window.slot, window, one.end, window.layers)
        return one

    def _take_layer(self, one: _Layered, name: str) -> None:
        if name in one.layers:
            return
        one.came = min(one.came, self._await_part(one, self._part_of[name][0]))
        one.layers.add(name)
        if one.came:
            self._staging.mover.scatter(name, one.rows[: one.came], one.window.slot)

    def _await_part(self, one: _Layered, part: int) -> int:
        """Waits for a part, and returns how many of its chunks have come: all, or those before the load ended early."""
        layers, chunks = one.window.layers, one.window.chunks
        while not one.over:
            if layers is not None:
                try:
                    if layers.ready(part, chunks, SLICE_SECONDS):
                        return chunks
                except Error as problem:
                    self._transfers.broken(one.session, str(problem))
                    return 0
            else:
                self._transfers.await_answer(SLICE_SECONDS)
            self._transfers.receive()
            if self._is_late(one):
                break
        return max(one.delivered, min(layers.chunks(part), chunks) if layers is not None else 0)

    def _finish(self, one: _Layered, used: bool) -> None:
        """Finishes a load. `used`: the model has run, and layers that it did not wait for were wrong."""
        left = [name for name in self._part_of if name not in one.layers]
        if used and left:
            self._transfers.tell("layers", f'the engine did not wait for the KV of {", ".join(left)}: set "layered": false')
            one.came = 0
        elif left:
            with self._staging.ordered():
                for name in left:
                    self._take_layer(one, name)
        layers = one.window.layers
        if layers is not None:
            try:
                layers.passed()
            except Error as problem:
                self._transfers.broken(one.session, str(problem))
                one.came = 0
            if layers.by_stream:
                self._await_end(one)
                one.came = min(one.came, one.delivered)
        if one.came < one.window.chunks:
            one.load.fail(one.first + one.came)
        self._transfers.done_with(one.window)

    def _await_end(self, one: _Layered) -> None:
        """Waits for the answer; the streams have only waited for its counters, which also rise when it fails."""
        while not one.over and not self._is_late(one):
            self._transfers.receive()
            if not one.over:
                self._transfers.await_answer(SLICE_SECONDS)
        if not one.over and one.window.layers is not None:
            one.window.layers.end()

    def _is_late(self, one: _Layered) -> bool:
        if time.monotonic() <= one.load.began + self._loads.seconds:
            return False
        self._transfers.tell("slow", f"a load did not come within {self._loads.seconds} s: its tokens are computed")
        return True

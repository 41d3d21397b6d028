"""The connector in a worker: loads under the scheduler's leases, and stores, through staging memory that the daemon
reads and writes itself. Used by one thread, which waits for no store.

A load is *layered*: it starts before the step that uses it, and each layer is copied to its blocks when the model
reaches it; or it continues between steps. A store's KV is copied to staging memory before the blocks are
overwritten. What staging memory has no room for stays in its blocks and is copied in a later step.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Sequence, Set
from dataclasses import dataclass

from .._libterrace import Stored
from ..errors import Error
from ..link import HANDSHAKE_SECONDS, Link
from .layered_loads import LayeredLoads
from .loads import Load, Loads, LoadsBetweenSteps
from .orders import NULL_BLOCK, Ending, LoadOrder, Report, StoreOrder
from .plan import Plan
from .staging import Staging
from .stores import Stores
from .transfers import Transfers


@dataclass(frozen=True)
class Limits:
    """Time limits in seconds."""

    load: float = 5.0  #: the daemon ends a load by then, and the engine continues without a layered one
    store: float = 60.0  #: the daemon ends a store by then, and KV that waits for staging memory waits no longer


@dataclass(slots=True)
class Counters:
    loads: int = 0
    loaded_chunks: int = 0
    loaded_bytes: int = 0
    load_seconds: float = 0.0
    loads_failed: int = 0
    stores: int = 0
    stored_chunks: int = 0
    stored_bytes: int = 0
    stores_failed: int = 0
    turns_reported: int = 0  #: ends of requests that are turns of a conversation
    chunks_not_stored: int = 0  #: for all reasons together (`stores.REASONS`), and for each of them:
    chunks_not_stored_away: int = 0
    chunks_not_stored_failed: int = 0
    chunks_not_stored_room: int = 0
    chunks_not_stored_overwritten: int = 0
    chunks_not_stored_late: int = 0
    chunks_not_stored_cleared: int = 0
    chunks_not_stored_spoiled: int = 0

    def leave_out(self, reason: str, chunks: int) -> None:
        self.chunks_not_stored += chunks
        name = f"chunks_not_stored_{reason}"
        setattr(self, name, getattr(self, name) + chunks)


class WorkerSide:
    def __init__(
        self, path: str, plan: Plan, staging: Staging, *, name: str, limits: Limits, log: logging.Logger,
        keeps: bool = True,
    ) -> None:
        """`keeps`: KV may stay in its blocks until there is staging memory, because `prepare` is told which blocks the
        engine overwrites, and nothing else changes them."""
        self._plan, self._staging = plan, staging
        self._link = Link(path, name, [plan.spec], staging.pool, log)
        self._transfers = Transfers(self._link, staging, log)
        loads = Loads(self._transfers, staging, plan, limits.load)
        self._layered = LayeredLoads(self._transfers, staging, loads, self._end_load)
        self._between = LoadsBetweenSteps(self._transfers, staging, loads)
        self._stores = Stores(
            self._transfers, staging, plan, seconds=limits.store, keeps=keeps, on_stored=self._end_store,
            on_failed=self._fail_store, on_left_out=self._leave_out,
        )
        self._endings: list[Ending] = []  # of requests of which something is still to be stored
        self._received: set[str] = set()
        self._failed: set[str] = set()
        self._bad_blocks: set[int] = set()
        self._report = Report()
        self._failures = 0
        self._last = (False, False)  # whether the last report said that it was away, and that it keeps KV
        self.counters = Counters()

    @property
    def connected(self) -> bool:
        return self._link.session is not None

    def await_attempt(self, seconds: float = HANDSHAKE_SECONDS) -> None:
        """Waits until the first attempt to connect is over."""
        self._link.await_attempt(seconds)

    @property
    def slots_left(self) -> int:
        """Number of staging slots not in use."""
        return self._transfers.slots.left

    # ---- a step ----

    def prepare(self, overwritten: Set[int], cleared: bool = False) -> None:
        """Called before anything of a step. From now on the engine may overwrite these blocks. `cleared`: what was
        computed before must not be stored any more."""
        if cleared:
            self._stores.clear()
        self._stores.overwritten(overwritten)
        self._advance()  # requests wait for loads, and nobody for stores
        self._stores.advance()
        with self._staging.ordered():  # the engine writes after all copies that are queued so far
            pass

    def begin(self, orders: Sequence[LoadOrder], endings: Sequence[Ending] = ()) -> None:
        """Starts the step's loads. `endings`: requests that get no more orders."""
        self._endings += endings if self._plan.spec.rank == 0 else ()
        for order in orders:
            load = Load(order, time.monotonic(), order.chunks)
            if order.layered:
                self._layered.begin(load)
            else:
                self._between.add(load)
        self._advance()

    def layer(self, name: str) -> None:
        """From now on the engine finds this layer's KV of the layered loads in its blocks, unless it does not come."""
        self._layered.layer(name)

    def save(self, orders: Sequence[StoreOrder], failures_seen: int) -> None:
        """Saves the step's KV. The model has run, or its work is in its stream. `failures_seen`: `Report.failures` as
        the scheduler knew it when it made the orders."""
        self._layered.finish()
        if failures_seen != self._failures:  # KV computed since then may depend on KV that did not come
            self._leave_out("spoiled", sum(len(order.digests) for order in orders), {order.request for order in orders})
            return
        self._stores.store(orders)

    def received(self) -> tuple[set[str], set[str]]:
        """Returns requests whose loads between steps have ended since the last call, and requests whose loads have
        failed."""
        self._advance()
        self._stores.advance()
        self._report_endings()
        told = self._received, self._failed & self._received
        self._received, self._failed = set(), set()
        return told

    def failed_blocks(self) -> set[int]:
        """Returns the blocks whose KV has not come since the last call. With several groups of layers there are none,
        because a number says too little."""
        bad, self._bad_blocks = self._bad_blocks, set()
        return bad

    def report(self) -> Report:
        """Returns a report of everything since the last call."""
        report, self._report = self._report, Report()
        report.failures = self._failures
        report.away, report.keeps = not self.connected, self._stores.kept > 0
        now = report.away, report.keeps
        report.changed, self._last = now != self._last, now
        return report

    def drain(self, seconds: float) -> bool:
        """Waits until the daemon works on nothing, and nothing is kept for it. False: `seconds` are over."""
        until = time.monotonic() + seconds
        while self._stores.kept:
            if not self._transfers.wait(lambda: self._transfers.slots.left > 0, until - time.monotonic()):
                return False
            self._stores.advance()
        return self._transfers.drain(until - time.monotonic())

    def close(self, seconds: float = 5.0) -> None:
        self.drain(seconds)
        self._report_endings()
        self._transfers.close()
        self._link.close()

    # ---- ends ----

    def _advance(self) -> None:
        for load in self._between.advance():
            self._received.add(load.order.request)
            self._end_load(load)

    def _report_endings(self) -> None:
        """A daemon that is away is not told later: by then it knows nothing of these requests."""
        endings, self._endings = self._endings, []
        session = self._transfers.session()
        for one in endings:
            if self._stores.busy(one.request):
                self._endings.append(one)
            elif session is not None:
                with self._transfers.lock, contextlib.suppress(Error):
                    session.connection.end_inference(
                        one.inference, output_tokens=one.output_tokens, reason=one.reason, session_closed=one.closed,
                        think_time=one.think_seconds, wait=False)
                    self.counters.turns_reported += 1

    def _end_load(self, load: Load) -> None:
        order = load.order
        self._report.ended[order.number] = 1
        if load.good:
            self.counters.loads += 1
            self.counters.loaded_chunks += order.chunks
            self.counters.loaded_bytes += order.chunks * self._plan.slot_bytes
            self.counters.load_seconds += time.monotonic() - load.began
            return
        self.counters.loads_failed += 1
        self._report.failed.add(order.request)
        if order.layered:
            self._failures += 1
        else:
            self._failed.add(order.request)
        if self._plan.groups == 1:
            self._bad_blocks.update(block for block in order.blocks[0][load.arrived :] if block != NULL_BLOCK)

    def _end_store(self, result: Stored) -> None:
        self.counters.stores += 1
        self.counters.stored_chunks += result.stored_chunks
        self.counters.stored_bytes += result.nbytes

    def _fail_store(self) -> None:
        self.counters.stores_failed += 1

    def _leave_out(self, reason: str, chunks: int, requests: set[str]) -> None:
        self._report.not_stored |= requests
        self.counters.leave_out(reason, chunks)

"""The connector in a worker: loads under the scheduler's leases, and stores, through staging memory that the daemon reads and
writes itself. Used by one thread.

A load is *layered*: started before the step that uses it, and each layer is copied to its blocks when the model comes to it;
or it goes on between steps. A store's KV is in staging memory before the step ends, so its blocks may be written again at
once. Slots that a lost daemon may still work on are not used until it can no longer do so.
"""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from .._libterrace import Arrivals, Loaded, Memory, Options, Prefix, Stored, Ticket
from ..errors import Error, Gone
from ..link import HostPool, Link, Session, await_readable
from .kv_mover import KvMover
from .orders import NULL_BLOCK, LoadOrder, Report, StoreOrder
from .plan import Part, Plan
from .slots import Slots

COUNTERS_BYTES = 4096  # at the beginning of staging memory: arrivals
SECONDS_BETWEEN_LINES = 60.0  # in the log, of the same kind
SLICE_SECONDS = 0.01  # of a wait for arrivals, between which answers are taken: nothing waits for both
LOAD_OPTIONS = Options(priority=64)

Result = Loaded | Stored | None  # None: it failed


@dataclass(frozen=True)
class Limits:
    """Seconds."""

    load: float = 5.0  #: by then the daemon ends a load, and a layered one is gone on without
    store: float = 60.0  #: by then the daemon ends a store
    room: float = 0.25  #: that a step waits for staging memory; then what it would store is left out


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
    chunks_not_stored: int = 0  #: no staging memory, no daemon, or computed from KV that did not come


@dataclass(slots=True)
class _Window:
    """Slots in use, and perhaps a row of counters."""

    slot: int
    chunks: int
    users: int  #: transfers, and who reads what they bring
    row: int | None = None


@dataclass(slots=True)
class _Transfer:
    """A request in the daemon's hands."""

    ticket: Ticket[Loaded] | Ticket[Stored]
    window: _Window
    on_end: Callable[[Result], None]


@dataclass(slots=True)
class _Load:
    order: LoadOrder
    began: float
    arrived: int  #: leading chunks that are in their blocks, or will be
    sent: int = 0  #: chunks
    windows: int = 0  #: under way
    good: bool = True

    def fail(self, at: int) -> None:
        self.good = False
        self.arrived = min(self.arrived, at)

    @property
    def ended(self) -> bool:
        return self.windows == 0 and (not self.good or self.sent == self.order.chunks)


@dataclass(slots=True)
class _Layered:
    """A window whose layers are taken one by one."""

    load: _Load
    window: _Window
    first: int  #: chunk of the order
    arrivals: Arrivals | None
    over: bool = False  #: the request has ended
    delivered: int = 0  #: chunks, by its answer
    came: int = 0  #: chunks that all layers so far have
    layers: set[str] = field(default_factory=set)  #: that are in their blocks

    def end(self, result: Result) -> None:
        self.over = True
        self.delivered = result.delivered_chunks if isinstance(result, Loaded) else 0


class WorkerSide:
    def __init__(
        self, path: str, plan: Plan, memory: Memory, mover: KvMover, *, name: str, limits: Limits, log: logging.Logger
    ) -> None:
        """`memory`: counters, then at least one slot."""
        self._plan, self._memory, self._mover, self._limits, self._log = plan, memory, mover, limits, log
        self._link = Link(path, name, [plan.spec], HostPool(os.dup(memory.fileno()), memory.nbytes), log)
        self._slots = Slots((memory.nbytes - COUNTERS_BYTES) // plan.slot_bytes)
        self._rows = list(range(COUNTERS_BYTES // (4 * len(plan.parts))))  # of counters, not in use
        self._part_of = {layer: (number, part) for number, part in enumerate(plan.parts) for layer in part.layers}
        self._used: Session | None = None  # of all transfers
        self._transfers: list[_Transfer] = []
        self._stranded: dict[int, list[_Window]] = {}  # by id() of the lost session
        self._layered: list[_Layered] = []
        self._loads: list[_Load] = []  # between steps, in order
        self._received: set[str] = set()
        self._failed: set[str] = set()
        self._bad_blocks: set[int] = set()
        self._report = Report()
        self._failures = 0
        self._told: dict[str, float] = {}
        self.counters = Counters()

    @property
    def connected(self) -> bool:
        return self._link.session is not None

    # ---- a step ----

    def begin(self, orders: Sequence[LoadOrder]) -> None:
        """Starts the step's loads."""
        for order in orders:
            load = _Load(order, time.monotonic(), order.chunks)
            if order.layered:
                self._begin_layered(load)
            else:
                self._loads.append(load)
        self._advance()

    def layer(self, name: str) -> None:
        """Returns when this layer's KV of the layered loads is in its blocks, or will not come."""
        for one in self._layered:
            self._take_layer(one, name)

    def save(self, orders: Sequence[StoreOrder], failures_seen: int) -> None:
        """The model has run. `failures_seen`: of `Report.failures`, by the scheduler when it made the orders."""
        for one in self._layered:
            self._finish_window(one, used=True)
            self._end_load(one.load)
        self._layered.clear()
        if failures_seen != self._failures:  # what was computed since then may rest on KV that did not come
            self.counters.chunks_not_stored += sum(len(order.digests) for order in orders)
            return
        for order in orders:
            self._store(order)

    def received(self) -> tuple[set[str], set[str]]:
        """Requests whose loads between steps have ended since the last call, and those whose loads have failed."""
        self._advance()
        told = self._received, self._failed & self._received
        self._received, self._failed = set(), set()
        return told

    def failed_blocks(self) -> set[int]:
        """Whose KV has not come, since the last call. With several groups of layers: none, since a number says too little."""
        bad, self._bad_blocks = self._bad_blocks, set()
        return bad

    def report(self) -> Report:
        """Since the last call."""
        report, self._report = self._report, Report()
        report.failures = self._failures
        return report

    def flush(self) -> None:
        """Blocks are about to be written by others."""
        self._mover.flush()

    def drain(self, seconds: float) -> bool:
        """Waits until the daemon works on nothing. False: `seconds` are over."""
        return self._wait(lambda: not self._transfers and not self._stranded, seconds)

    def close(self, seconds: float = 5.0) -> None:
        self.drain(seconds)
        self._link.close()

    # ---- layered loads ----

    def _begin_layered(self, load: _Load) -> None:
        """Sends its last window; those before, for which staging memory is too small, are completed."""
        order = load.order
        while load.good and load.sent < order.chunks:
            slot, count = self._slots.take(order.chunks - load.sent)
            if count == 0 and self._layered:
                earlier = self._layered.pop(0)
                self._finish_window(earlier, used=False)
                self._end_load(earlier.load)
            elif count == 0:
                if not self._wait(lambda: self._slots.left > 0, self._limits.load):
                    load.fail(load.sent)
            else:
                one = self._send_layered(load, _Window(slot, count, 1))
                if load.sent < order.chunks:
                    self._finish_window(one, used=False)
                else:
                    self._layered.append(one)
                    return
        self._end_load(load)

    def _send_layered(self, load: _Load, window: _Window) -> _Layered:
        one = _Layered(load, window, load.sent, None, came=window.chunks)
        session = self._session()
        if session is not None and session.region.mapped and self._rows:
            window.row = self._rows.pop()
            parts = len(self._plan.parts)
            one.arrivals = Arrivals(self._memory, session.region, window.row * 4 * parts, parts)
        load.sent += window.chunks
        self._send_load(load.order, self._plan.parts, one.first, window.chunks, window.slot, window, one.end, one.arrivals)
        return one

    def _take_layer(self, one: _Layered, name: str) -> None:
        if name in one.layers or name not in self._part_of:
            return
        number, part = self._part_of[name]
        one.came = min(one.came, self._await_part(one, number))
        one.layers.add(name)
        if one.came:
            self._mover.scatter(name, one.load.order.blocks[part.group][one.first : one.first + one.came], one.window.slot)

    def _await_part(self, one: _Layered, part: int) -> int:
        """Chunks of it that have come: all, or those before the load ended early."""
        chunks, until = one.window.chunks, one.load.began + self._limits.load
        while not one.over:
            if one.arrivals is not None:
                if one.arrivals.wait(part, chunks, timeout=SLICE_SECONDS):
                    return chunks
            else:
                self._await_answer(SLICE_SECONDS)
            self._receive()
            if time.monotonic() > until:
                self._tell("slow", f"a load did not come within {self._limits.load} s: its tokens are computed")
                break
        return max(one.delivered, min(one.arrivals.chunks(part), chunks) if one.arrivals is not None else 0)

    def _finish_window(self, one: _Layered, used: bool) -> None:
        """`used`: the model has run, and layers that it did not wait for were wrong."""
        left = [name for name in self._part_of if name not in one.layers]
        if used and left:
            self._tell("layers", f'the engine did not wait for the KV of {", ".join(left)}: set "layered": false')
            one.came = 0
        else:
            for name in left:
                self._take_layer(one, name)
        if one.came < one.window.chunks:
            one.load.fail(one.first + one.came)
        self._done_with(one.window)

    # ---- loads between steps ----

    def _advance(self) -> None:
        self._receive()
        for load in self._loads:
            while load.good and load.sent < load.order.chunks:
                slot, count = self._slots.take(load.order.chunks - load.sent)
                if count == 0:
                    break
                self._send_window(load, slot, count)
            if load.good and load.sent < load.order.chunks:
                break  # the others wait for room as well
        for load in [load for load in self._loads if load.ended]:
            self._loads.remove(load)
            self._received.add(load.order.request)
            self._end_load(load)

    def _send_window(self, load: _Load, slot: int, count: int) -> None:
        """A request for all parts; and others for groups that need the end of the window alone."""
        first = load.sent
        load.sent += count
        starts: dict[int, list[Part]] = {}
        for part in self._plan.parts:
            of_group = load.order.blocks[part.group][first : first + count]
            start = next((i for i, block in enumerate(of_group) if block != NULL_BLOCK), count)
            starts.setdefault(start, []).append(part)
        pieces = [(start, parts) for start, parts in starts.items() if start < count]
        window = _Window(slot, count, 1)
        load.windows += 1
        left = len(pieces)

        def end_piece(start: int, parts: Sequence[Part], result: Result) -> None:
            nonlocal left
            came = result.delivered_chunks if isinstance(result, Loaded) else 0
            for part in parts if came else ():
                blocks = load.order.blocks[part.group][first + start : first + start + came]
                for name in part.layers:
                    self._mover.scatter(name, blocks, slot + start)
            if came < count - start:
                load.fail(first + start + came)
            left -= 1
            if left == 0:
                load.windows -= 1

        def ender(start: int, parts: Sequence[Part]) -> Callable[[Result], None]:
            return lambda result: end_piece(start, parts, result)

        if not pieces:
            load.windows -= 1
        for start, parts in pieces:
            self._send_load(load.order, parts, first + start, count - start, slot + start, window, ender(start, parts))
        self._done_with(window)

    def _end_load(self, load: _Load) -> None:
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

    # ---- stores ----

    def _store(self, order: StoreOrder) -> None:
        done, count = 0, len(order.digests)
        while done < count:
            if self._slots.left == 0:
                self._wait(lambda: self._slots.left > 0, self._limits.room)
            session = self._session()
            slot, taken = self._slots.take(count - done) if session is not None else (0, 0)
            if session is None or taken == 0:
                self.counters.chunks_not_stored += count - done
                return
            self._mover.gather(tuple(of_group[done : done + taken] for of_group in order.blocks), slot)
            parent = order.digests[done - 1] if done else order.parent
            chain = [*([parent] if parent else []), *order.digests[done : done + taken]]
            window = _Window(slot, taken, 1)
            try:
                ticket = session.connection.submit_store(
                    session.spaces[0], Prefix.of_digests(chain), session.region, self._runs(self._plan.parts, slot, taken),
                    first_chunk=len(chain) - taken, timeout=self._limits.store,
                )
            except Error as problem:
                self._done_with(window)
                self.counters.chunks_not_stored += count - done
                self._refused(session, "a store", problem)
                return
            self._transfers.append(_Transfer(ticket, window, self._end_store))
            done += taken

    def _end_store(self, result: Result) -> None:
        if isinstance(result, Stored):
            self.counters.stores += 1
            self.counters.stored_chunks += result.stored_chunks
            self.counters.stored_bytes += result.nbytes
        else:
            self.counters.stores_failed += 1

    # ---- requests ----

    def _send_load(
        self, order: LoadOrder, parts: Sequence[Part], first: int, chunks: int, slot: int, window: _Window,
        on_end: Callable[[Result], None], arrivals: Arrivals | None = None,
    ) -> None:
        session = self._session()
        try:
            if session is None:
                raise Gone("the daemon is away")
            pools = [] if len(parts) == len(self._plan.parts) else [self._plan.parts.index(part) for part in parts]
            ticket = session.connection.submit_load(
                None, order.lease, session.region, self._runs(parts, slot, chunks), first_chunk=order.first_chunk + first,
                chunks=chunks, pools=pools, arrivals=arrivals, options=LOAD_OPTIONS, timeout=self._limits.load,
            )
        except Error as problem:
            on_end(None)
            if session is not None:
                self._refused(session, "a load", problem)
            return
        window.users += 1
        self._transfers.append(_Transfer(ticket, window, on_end))

    def _runs(self, parts: Sequence[Part], slot: int, chunks: int) -> list[tuple[int, int]]:
        places = [(part.offset, part.nbytes) for part in parts]
        size = self._plan.slot_bytes
        return [(COUNTERS_BYTES + (slot + i) * size + offset, nbytes) for i in range(chunks) for offset, nbytes in places]

    def _done_with(self, window: _Window) -> None:
        window.users -= 1
        if window.users == 0:
            self._slots.give_back(window.slot, window.chunks)
            if window.row is not None:
                self._rows.append(window.row)

    def _receive(self) -> None:
        self._take_ended()
        session = self._session()
        if session is None or not self._transfers:
            return
        why = ""
        try:
            session.connection.poll()
        except Error as problem:
            why = str(problem)
        self._transfers = [one for one in self._transfers if not self._moved(session, one)]
        if not session.connection.alive:
            self._lose(session, why)

    def _moved(self, session: Session, one: _Transfer) -> bool:
        if not one.ticket.done:
            return False
        result: Result = None
        try:
            result = one.ticket.result(0)
        except Error as problem:
            if not session.connection.alive:
                return False  # its slots may still be in use
            self._tell("moved", f"a load or a store failed: {problem}")
        one.on_end(result)
        self._done_with(one.window)
        return True

    def _await_answer(self, seconds: float) -> None:
        """Or until it is time to look again."""
        session = self._session()
        if session is None or not self._transfers:
            self._take_ended(seconds)
            return
        with contextlib.suppress(Error):
            await_readable([session.connection.fileno()], seconds)

    def _wait(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Until what is under way brings the condition about. False: it does not, or the time is over."""
        until = time.monotonic() + seconds
        self._receive()
        while not condition():
            left = until - time.monotonic()
            if left <= 0 or not (self._transfers or self._stranded):
                return False
            self._await_answer(min(left, 0.05))
            self._receive()
        return True

    # ---- losing the daemon ----

    def _session(self) -> Session | None:
        """The connection to use. When the daemon's process ended, what was under way has ended too."""
        session = self._link.session
        if session is not self._used:
            for window in self._abandon():
                self._done_with(window)
            self._used = session
        return session

    def _refused(self, session: Session, what: str, problem: Error) -> None:
        """A request could not be sent."""
        if session.connection.alive:
            self._tell(what, f"{what} failed: {problem}")
        else:
            self._lose(session, str(problem))

    def _lose(self, session: Session, why: str) -> None:
        """The connection ended; perhaps the daemon still works on its transfers."""
        self._stranded[id(session)] = self._abandon()
        self._used = None
        self._link.lost(session, why or "the connection ended")

    def _abandon(self) -> list[_Window]:
        transfers, self._transfers = self._transfers, []
        for one in transfers:
            one.on_end(None)
        return [one.window for one in transfers]

    def _take_ended(self, seconds: float = 0.0) -> None:
        """Slots of lost sessions that the daemon no longer touches."""
        while self._stranded:
            try:
                session = self._link.ended.get(timeout=seconds) if seconds else self._link.ended.get_nowait()
            except queue.Empty:
                return
            seconds = 0.0
            for window in self._stranded.pop(id(session), ()):
                self._done_with(window)

    def _tell(self, kind: str, text: str) -> None:
        """At most once a minute of each kind."""
        now = time.monotonic()
        if now - self._told.get(kind, -SECONDS_BETWEEN_LINES) >= SECONDS_BETWEEN_LINES:
            self._told[kind] = now
            self._log.warning("Terrace: %s", text)

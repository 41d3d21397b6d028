"""Loads under the scheduler's leases, and loads that continue between steps."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .._libterrace import Loaded, Options
from .orders import NULL_BLOCK, LoadOrder
from .plan import Part, Plan
from .requests import Result, Window
from .staging import Layers, Staging
from .transfers import Transfers

PRIORITY = 64
ANSWER_SECONDS = 1.0  # time after its deadline in which a running daemon answers a load


@dataclass(slots=True)
class Load:
    order: LoadOrder
    began: float
    arrived: int  #: leading chunks that are in their blocks, or will be
    sent: int = 0  #: chunks sent
    windows: int = 0  #: windows in progress
    good: bool = True
    given_up: bool = False  #: nobody waits for its windows, and none of them is copied into its blocks
    moved: float = 0.0  #: time at which its last window was sent

    def fail(self, at: int) -> None:
        self.good = False
        self.arrived = min(self.arrived, at)

    @property
    def ended(self) -> bool:
        return self.given_up or (self.windows == 0 and (not self.good or self.sent == self.order.chunks))

    def give_up(self) -> None:
        """Gives the load up. The daemon may still write its staging memory; what the engine computes instead stays."""
        self.given_up = True
        self.fail(0)


class Loads:
    """The requests for pieces of loads."""

    def __init__(self, transfers: Transfers, staging: Staging, plan: Plan, seconds: float) -> None:
        """`seconds`: the daemon ends a load by then."""
        self.plan, self.seconds = plan, seconds
        self._transfers, self._staging = transfers, staging

    def send(
        self, load: Load, parts: Sequence[Part], first: int, chunks: int, slot: int, window: Window,
        on_end: Callable[[Result], None], layers: Layers | None = None,
    ) -> None:
        session = self._transfers.session()
        if session is None:
            on_end(None)
            return
        pools = [] if len(parts) == len(self.plan.parts) else [self.plan.parts.index(part) for part in parts]
        runs = self.plan.runs(self._staging.offset, parts, slot, chunks)
        self._transfers.send(
            session, window, "a load",
            lambda: session.connection.submit_load(
                None, load.order.lease, session.region, runs, first_chunk=load.order.first_chunk + first, chunks=chunks,
                pools=pools, arrivals=layers.arrivals if layers else None, layers=layers.slot if layers else None,
                options=Options(priority=PRIORITY, inference=load.order.inference), timeout=self.seconds,
            ),
            on_end, load.began + self.seconds if layers is not None and layers.by_stream else None,
        )


class LoadsBetweenSteps:
    def __init__(self, transfers: Transfers, staging: Staging, loads: Loads) -> None:
        self._transfers, self._staging, self._loads = transfers, staging, loads
        self._waiting: list[Load] = []  # in order
        self._moved = 0.0  # time at which a window of any of them last ended

    def add(self, load: Load) -> None:
        self._waiting.append(load)

    def advance(self) -> list[Load]:
        """Returns the loads that have ended. From then on the engine finds their KV in its blocks."""
        self._transfers.receive()
        for load in self._waiting:
            while load.good and load.sent < load.order.chunks:
                window = self._transfers.take(load.order.chunks - load.sent)
                if window is None:
                    break
                self._send_window(load, window)
            if load.good and load.sent < load.order.chunks:
                break  # the others wait for room as well
        self._give_up_late()
        ended = [load for load in self._waiting if load.ended]
        self._waiting = [load for load in self._waiting if not load.ended]
        return ended

    def _give_up_late(self) -> None:
        """Gives up loads without an answer after their deadline, and loads that wait for room while nothing moves: the
        daemon stands still, and their requests must not."""
        until = time.monotonic() - self._loads.seconds - ANSWER_SECONDS
        for load in self._waiting:
            since = max(load.began, load.moved, 0.0 if load.windows else self._moved)
            if since < until and not load.ended:
                self._transfers.tell("slow", f"a load did not come within {self._loads.seconds} s: its tokens are computed")
                load.give_up()

    def _send_window(self, load: Load, window: Window) -> None:
        """Sends one request for all parts, and others for groups that only need the end of the window."""
        first, count = load.sent, window.chunks
        load.sent += count
        load.moved = time.monotonic()
        starts: dict[int, list[Part]] = {}
        for part in self._loads.plan.parts:
            of_group = load.order.blocks[part.group][first : first + count]
            start = next((i for i, block in enumerate(of_group) if block != NULL_BLOCK), count)
            starts.setdefault(start, []).append(part)
        pieces = [(start, parts) for start, parts in starts.items() if start < count]
        load.windows += 1
        left = len(pieces)

        def end_piece(start: int, parts: Sequence[Part], result: Result) -> None:
            nonlocal left
            came = result.delivered_chunks if isinstance(result, Loaded) and not load.given_up else 0
            self._moved = time.monotonic()
            if came:
                self._scatter(load, parts, first + start, came, window.slot + start)
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
            self._loads.send(load, parts, first + start, count - start, window.slot + start, window, ender(start, parts))
        self._transfers.done_with(window)

    def _scatter(self, load: Load, parts: Sequence[Part], first: int, chunks: int, slot: int) -> None:
        mover = self._staging.mover
        of_group = {part.group: load.order.blocks[part.group][first : first + chunks] for part in parts}
        with self._staging.ordered():
            rows = {group: mover.rows(blocks) for group, blocks in of_group.items()}
            for part in parts:
                for name in part.layers:
                    mover.scatter(name, rows[part.group], slot)

"""A worker's staging memory for KV in transit, which the daemon reads and writes: slots of a block each. This is what
loads and stores need to know about its kind."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from .._libterrace import Arrivals, LayeredLoad, Memory, Region
from ..link import HostPool, Pool, Session
from .kv_mover import KvMover, Mark
from .plan import Plan

COUNTERS_BYTES = 4096  # at the beginning of staging memory of the host: arrivals


class Layers(Protocol):
    """Tells when the parts of a layered load have come."""

    @property
    def by_stream(self) -> bool:
        """True if a stream waits for the parts and the worker does not. Then only the load's answer says what has
        come."""

    @property
    def arrivals(self) -> Arrivals | None: ...
    @property
    def slot(self) -> LayeredLoad | None: ...
    def ready(self, part: int, chunks: int, seconds: float) -> bool:
        """Returns whether this many chunks of the part have come, or will have for what the stream does next. False:
        not in time. Raises Error if the driver refuses."""

    def chunks(self, part: int) -> int:
        """Returns how many chunks of an ended load have come."""

    def passed(self) -> None:
        """Says that nobody will wait any more. Raises Error if the driver refuses."""

    def end(self) -> None:
        """Says that the load has ended, or that nobody waits for it any longer. May be called any number of times."""

    def give_back(self) -> None:
        """Called when the daemon has answered."""


class Staging(Protocol):
    @property
    def pool(self) -> Pool: ...
    @property
    def slots(self) -> int: ...
    @property
    def offset(self) -> int:
        """Offset of the first slot in the region."""

    @property
    def mover(self) -> KvMover: ...
    @property
    def by_stream(self) -> bool:
        """True if streams wait for loads."""

    def lost(self, session: Session) -> bool:
        """Something is gone: returns whether it is the process that accesses the memory, although the daemon is there."""

    def begin_layers(self, session: Session) -> Layers | None:
        """Begins the layers of a load of all parts. None: all counters are in use, so the load's answer has to be
        awaited."""

    def ordered(self) -> AbstractContextManager[None]:
        """Copies inside the block see what the engine has done, and the engine will see what they do."""

    def gathered(self, session: Session) -> tuple[Region, int, int] | None:
        """Returns what a store of everything gathered so far waits for (`after`); None: it is there. Raises Error if
        the driver refuses."""

    def mark(self) -> Mark | None:
        """Returns a mark behind all copies so far; None: they have been made."""


class HostLayers:
    by_stream = False
    slot = None

    def __init__(self, arrivals: Arrivals, row: int, rows: list[int]) -> None:
        self.arrivals = arrivals
        self._row, self._rows = row, rows

    def ready(self, part: int, chunks: int, seconds: float) -> bool:
        return self.arrivals.wait(part, chunks, timeout=seconds)

    def chunks(self, part: int) -> int:
        return self.arrivals.chunks(part)

    def passed(self) -> None:
        pass

    def end(self) -> None:
        pass

    def give_back(self) -> None:
        self._rows.append(self._row)


class HostStaging:
    by_stream = False
    offset = COUNTERS_BYTES

    def __init__(self, plan: Plan, memory: Memory, mover: KvMover) -> None:
        """`memory`: counters, followed by at least one slot."""
        self.pool = HostPool(os.dup(memory.fileno()), memory.nbytes)
        self.mover = mover
        self.slots = (memory.nbytes - COUNTERS_BYTES) // plan.slot_bytes
        self._memory, self._parts = memory, len(plan.parts)
        self._rows = list(range(COUNTERS_BYTES // (4 * self._parts)))  # rows of counters that are not in use

    def begin_layers(self, session: Session) -> HostLayers | None:
        if not session.region.mapped or not self._rows:
            return None
        row = self._rows.pop()
        return HostLayers(Arrivals(self._memory, session.region, row * 4 * self._parts, self._parts), row, self._rows)

    def lost(self, session: Session) -> bool:
        return False

    def ordered(self) -> AbstractContextManager[None]:
        return nullcontext()

    def gathered(self, session: Session) -> None:
        return None

    def mark(self) -> None:
        return None

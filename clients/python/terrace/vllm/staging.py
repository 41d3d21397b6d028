"""Memory of a worker for KV on its way, which the daemon reads and writes: slots of a block each. What loads and stores have to know of its
kind."""

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
    """How it is known that the parts of a layered load have come."""

    @property
    def by_stream(self) -> bool:
        """A stream waits for them, and the worker does not. Then the load's answer alone says what has come."""

    @property
    def arrivals(self) -> Arrivals | None: ...
    @property
    def slot(self) -> LayeredLoad | None: ...
    def ready(self, part: int, chunks: int, seconds: float) -> bool:
        """So many chunks of it have come, or will have for what the stream does next. False: not in time. Error: the driver refuses."""

    def chunks(self, part: int) -> int:
        """That have come, of a load that has ended."""

    def passed(self) -> None:
        """Nobody will wait any more. Error: the driver refuses."""

    def end(self) -> None:
        """The load has ended, or nobody waits for it any longer. Any number of times."""

    def give_back(self) -> None:
        """The daemon has answered."""


class Staging(Protocol):
    @property
    def pool(self) -> Pool: ...
    @property
    def slots(self) -> int: ...
    @property
    def offset(self) -> int:
        """Of the first slot in the region."""

    @property
    def mover(self) -> KvMover: ...
    @property
    def by_stream(self) -> bool:
        """Streams wait for what comes."""

    def lost(self, session: Session) -> bool:
        """Something is gone: whether that is what accesses the memory, although the daemon is there."""

    def begin_layers(self, session: Session) -> Layers | None:
        """For a load of all parts. None: all counters are in use, so its answer has to be waited for."""

    def ordered(self) -> AbstractContextManager[None]:
        """Copies inside of it see what the engine has done, and it will see what they do."""

    def gathered(self, session: Session) -> tuple[Region, int, int] | None:
        """What a store waits for (`after`) of what was gathered by now; None: it is there. Error: the driver refuses."""

    def mark(self) -> Mark | None:
        """Behind all copies that were made or are to be made; None: they were made."""


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
        """`memory`: counters, then at least one slot."""
        self.pool = HostPool(os.dup(memory.fileno()), memory.nbytes)
        self.mover = mover
        self.slots = (memory.nbytes - COUNTERS_BYTES) // plan.slot_bytes
        self._memory, self._parts = memory, len(plan.parts)
        self._rows = list(range(COUNTERS_BYTES // (4 * self._parts)))  # of counters, not in use

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

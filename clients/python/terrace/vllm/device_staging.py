"""Staging memory of a GPU. The daemon's process of that GPU reads and writes its slots. Copies between slots and
blocks are queued in a stream, which waits for loads and signals stores, so that the worker waits for neither."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from .._libterrace import Bell, LayeredLoad, LayerRing, Memory, Region, StoreCounter
from ..connection import Connection
from ..errors import Busy, Error, Gone
from ..link import Registered, Session
from .kv_mover import Mark, StreamMover
from .plan import Plan

LOADS = 16  # layered loads at a time whose layers the stream waits for
PAGE_BYTES = 4096
STATUS_SECONDS = 1.0  # limit of a wait for the state of the GPU after a loss


@dataclass(frozen=True, kw_only=True)
class _OfSession(Registered):
    ring: LayerRing
    counter: StoreCounter
    bell: Bell
    pid: int  #: id of `process`


class DevicePool:
    """Registers the memory, and pages of counters for each connection: what a lost connection still writes harms no
    other."""

    def __init__(self, memory: Any, device: str, parts: int) -> None:
        self._memory, self._device, self._parts = memory, device, parts
        # Their pages stay pinned: unpinning waits for all streams, on whatever thread drops the last reference.
        self._made: list[_OfSession] = []

    def register(self, connection: Connection, timeout: float) -> Registered:
        pages = [Memory(max(PAGE_BYTES, LayerRing.bytes_for(LOADS, self._parts))), Memory(PAGE_BYTES)]
        # Registered before the memory: at the end of the connection they end first, and so do the stores that wait for
        # them.
        known = [connection.register_generations(page, self._device, timeout=timeout) for page in pages]
        region = connection.register_device_region(self._memory, timeout=timeout)
        pid = _pid_of(connection, self._device, timeout)
        try:
            process = os.pidfd_open(pid)
        except OSError:
            raise Gone(f"the daemon's process of {self._device} has ended, or cannot be seen") from None
        try:
            ring = LayerRing(pages[0], known[0], self._device, layers=self._parts, loads=LOADS)
            counter = StoreCounter(pages[1], known[1], self._device)
            bell = connection.bell(timeout=timeout)
            ring.open()  # here, and not in a step
            bell.open(self._device)
        except BaseException:
            os.close(process)
            raise
        made = _OfSession(region, process, ring=ring, counter=counter, bell=bell, pid=pid)
        self._made.append(made)
        return made

    def close(self) -> None:
        self._made.clear()  # the last region releases the memory


class DeviceLayers:
    by_stream = True
    arrivals = None

    def __init__(self, slot: LayeredLoad, stream: int) -> None:
        self.slot = slot
        self._stream = stream

    def ready(self, part: int, chunks: int, seconds: float) -> bool:
        self.slot.wait_on(self._stream, part)
        return True

    def chunks(self, part: int) -> int:
        return 0  # the answer tells the number

    def passed(self) -> None:
        self.slot.pass_on(self._stream)

    def end(self) -> None:
        self.slot.end()

    def give_back(self) -> None:
        pass


class DeviceStaging:
    by_stream = True
    offset = 0

    def __init__(self, plan: Plan, memory: Any, device: str, mover: StreamMover) -> None:
        """`memory`: an argument for `Connection.register_device_region` with at least one slot, on the GPU with the
        UUID `device`."""
        self.pool = DevicePool(memory, device, len(plan.parts))
        self.mover = mover
        self.slots = memory.nbytes // plan.slot_bytes
        self._device = device

    def begin_layers(self, session: Session) -> DeviceLayers | None:
        try:
            return DeviceLayers(_of(session).ring.begin(), self.mover.stream)
        except (Busy, Gone):
            return None

    def lost(self, session: Session) -> bool:
        try:
            return _pid_of(session.connection, self._device, STATUS_SECONDS) != _of(session).pid
        except Error:
            return True

    @contextmanager
    def ordered(self) -> Iterator[None]:
        self.mover.follow()
        yield
        self.mover.lead()

    def gathered(self, session: Session) -> tuple[Region, int, int]:
        mine = _of(session)
        after = mine.counter.raise_after(self.mover.stream)
        mine.bell.ring_after(self.mover.stream, self._device)
        return after

    def mark(self) -> Mark:
        return self.mover.mark()


def _of(session: Session) -> _OfSession:
    assert isinstance(session.registered, _OfSession)
    return session.registered


def _pid_of(connection: Connection, device: str, timeout: float) -> int:
    """Returns the id of the daemon's process of this GPU; 0: there is none that serves."""
    devices = connection.status(timeout=timeout).devices
    return next((one.pid for one in devices if one.device == device and one.state == "ready"), 0)

"""Caches a host pool in the daemon: lookups, loads and stores by keys and rows, none of which waits.

Used by one thread at a time. Calls send requests and take answers; the daemon copies between its memory and the
pool meanwhile. While the daemon is away, everything misses and transfers fail at once. Transfers that were in
progress when it was lost fail once it can no longer touch their rows.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from .._libterrace import Lookup, Loaded, Options, Prefix, Rows, Stored, Ticket
from ..errors import Error, Gone
from ..gauge import Change
from ..options import Limits
from ..spaces import SpaceSpec
from .jobs import Finished, Jobs
from .keys import Part, digests_of, group_of, parts_of, width_of
from ..link import HANDSHAKE_SECONDS, HostPool, Link, Session, await_readable
from .lookups import Batch, Lookups

# so small that a send never waits: 8 frames of 256 objects fit into any socket's buffer, and into a daemon's credits
OBJECTS_OF_A_REQUEST = 256
REQUESTS_IN_FLIGHT = 8
SECONDS_BETWEEN_LINES = 60.0  # interval of log lines of one kind


@dataclass(slots=True)
class _Asked:
    ticket: Ticket[Lookup]
    batch: Batch
    since: float
    late: bool = False


@dataclass(slots=True)
class _Moving:
    ticket: Ticket[Loaded] | Ticket[Stored]
    job: int
    part: Part
    is_load: bool


class PoolCache:
    def __init__(
        self,
        path: str,
        specs: Sequence[SpaceSpec],
        pool: HostPool,
        *,
        name: str = "vllm",
        limits: Limits = Limits(),
        log: logging.Logger = logging.getLogger("terrace.vllm"),
        changed: Change = lambda change: None,
    ) -> None:
        """`specs`: the space of each group. `changed`: as of a `Link`."""
        self._link = Link(path, name, specs, pool, log, changed)
        self._pool, self._limits, self._log = pool, limits, log
        self._groups = len(specs)
        self._lookups = Lookups()
        self._jobs = Jobs()
        self._asked: list[_Asked] = []
        self._moving: list[_Moving] = []
        self._to_ask: deque[Batch] = deque()
        self._to_move: deque[tuple[int, Part, bool]] = deque()
        self._used: Session | None = None  # session of all requests in progress
        self._stranded: dict[int, list[_Moving]] = {}  # by id() of the lost session
        self._load_options = Options(priority=64)
        self._told: dict[str, float] = {}

    def await_attempt(self, seconds: float = HANDSHAKE_SECONDS) -> None:
        """Waits until the first attempt to connect is over."""
        self._link.await_attempt(seconds)

    # ---- questions ----

    def lookup(self, key: bytes, request: str) -> bool | None:
        """Returns whether a key is present; None: ask again in the next step."""
        if self._link.session is None:
            return False
        return self._lookups.ask(key, request)

    def flush(self, position: Callable[[str, bytes], int | None] = lambda request, key: None) -> None:
        """Sends the lookups of this step."""
        for batch in self._lookups.take(position):
            keys = batch.keys
            for i in range(0, len(keys), OBJECTS_OF_A_REQUEST):
                self._to_ask.append(Batch(keys[i : i + OBJECTS_OF_A_REQUEST], batch.backward))
        self._send()

    def forget(self, request: str) -> None:
        """The request asks no more, for now."""
        self._lookups.forget(request)

    # ---- transfers ----

    def store(self, job: int, keys: Collection[bytes], rows: Sequence[int], request: str = "") -> None:
        self._begin(job, keys, rows, request, False)

    def load(self, job: int, keys: Collection[bytes], rows: Sequence[int], request: str = "") -> None:
        self._begin(job, keys, rows, request, True)

    def finished(self) -> list[Finished]:
        """Returns jobs that ended since the last call. Also takes answers and sends what waited for room."""
        self._receive()
        self._send()
        finished = self._jobs.take_finished()
        for job in finished:
            if job.lost:
                self._lookups.miss(job.lost, job.request)
        return finished

    @property
    def busy(self) -> bool:
        """True if jobs are in progress, or finished and not yet reported."""
        return len(self._jobs) > 0

    def drain(self, seconds: float | None = None) -> bool:
        """Waits until no transfer touches the pool; what has not been sent fails. False: `seconds` are over."""
        until = None if seconds is None else time.monotonic() + seconds
        for job, part, _ in self._to_move:
            self._jobs.end_part(job, part.keys, 0, 0, time.monotonic())
        self._to_move.clear()
        while self._jobs.under_way:
            if until is not None and time.monotonic() >= until:
                return False
            session = self._session()
            if session is not None and self._moving:
                with contextlib.suppress(Error):  # the connection may be lost meanwhile
                    await_readable([session.connection.fileno()], 0.05)
            else:
                self._take_ended(0.05)
            self._receive()
        return True

    def close(self, seconds: float = 5.0) -> None:
        self.drain(seconds)
        self._link.close()

    @property
    def connected(self) -> bool:
        return self._link.session is not None

    # ---- sending ----

    def _begin(self, job: int, keys: Collection[bytes], rows: Sequence[int], request: str, is_load: bool) -> None:
        now = time.monotonic()
        parts = parts_of(keys, rows, OBJECTS_OF_A_REQUEST)
        self._jobs.begin(job, is_load, request, len(parts), now)
        for part in parts:
            if self._session() is None or self._is_late or part.group >= self._groups:
                self._jobs.end_part(job, part.keys, 0, 0, now)
            else:
                self._to_move.append((job, part, is_load))
        self._send()

    @property
    def _is_late(self) -> bool:
        return any(asked.late for asked in self._asked)

    def _send(self) -> None:
        """Sends as much as the requests in flight leave room for, lookups first."""
        while self._to_ask:
            session = self._session()
            if not self._to_ask:
                break
            if session is None or self._is_late or group_of(self._to_ask[0].keys[0]) >= self._groups:
                self._lookups.give_up(self._to_ask.popleft())
                continue
            if len(self._asked) + len(self._moving) >= REQUESTS_IN_FLIGHT:
                break
            batch = self._to_ask.popleft()
            try:
                self._ask(session, batch)
            except Error as problem:
                self._lookups.give_up(batch)
                self._refused(session, problem)
        while self._to_move and len(self._asked) + len(self._moving) < REQUESTS_IN_FLIGHT:
            session = self._session()
            if not self._to_move:
                break
            job, part, is_load = self._to_move.popleft()
            try:
                if session is None:
                    raise Gone("the daemon is away")
                self._move(session, job, part, is_load)
            except Error as problem:
                self._jobs.end_part(job, part.keys, 0, 0, time.monotonic())
                if session is not None:
                    self._refused(session, problem)

    def _ask(self, session: Session, batch: Batch) -> None:
        what = Prefix.of_digests(digests_of(batch.keys), width=width_of(batch.keys))
        space = session.spaces[group_of(batch.keys[0])]
        ticket = session.connection.submit_lookup(space, what, timeout=self._limits.lookup)
        self._asked.append(_Asked(ticket, batch, time.monotonic()))

    def _move(self, session: Session, job: int, part: Part, is_load: bool) -> None:
        what = Prefix.of_digests(digests_of(part.keys), width=width_of(part.keys))
        space = session.spaces[part.group]
        rows = Rows(part.rows, self._pool.row_bytes, offset=self._pool.offset)
        ticket: Ticket[Loaded] | Ticket[Stored]
        if is_load:
            ticket = session.connection.submit_load(
                space, what, session.region, rows, options=self._load_options, timeout=self._limits.load
            )
        else:
            ticket = session.connection.submit_store(space, what, session.region, rows, timeout=self._limits.store)
        self._moving.append(_Moving(ticket, job, part, is_load))

    # ---- receiving ----

    def _receive(self) -> None:
        self._take_ended()
        session = self._session()
        if session is None or not (self._asked or self._moving):
            return
        why = ""
        try:
            session.connection.poll()
        except Error as problem:
            why = str(problem)
        now = time.monotonic()
        self._asked = [one for one in self._asked if not self._answered(one, now)]
        self._moving = [one for one in self._moving if not self._moved(session, one, now)]
        if not session.connection.alive:
            self._lose(session, why)

    def _answered(self, one: _Asked, now: float) -> bool:
        if not one.ticket.done:
            if not one.late and now - one.since > self._limits.lookup:
                one.late = True
                self._tell("late", f"no answer to a lookup within {self._limits.lookup} s: everything misses until it comes")
                self._lookups.give_up(one.batch)
            return False
        try:
            found = one.ticket.result(0).found_chunks
        except Error as problem:
            self._lookups.give_up(one.batch)
            self._tell("lookup", f"a lookup failed: {problem}")
            return True
        if not one.late:
            self._to_ask.extend(self._lookups.answer(one.batch, found))
        return True

    def _moved(self, session: Session, one: _Moving, now: float) -> bool:
        if not one.ticket.done:
            return False
        delivered = nbytes = 0
        try:
            result = one.ticket.result(0)
            nbytes = result.nbytes
            delivered = result.delivered_chunks if isinstance(result, Loaded) else len(one.part.keys)
        except Error as problem:
            if not session.connection.alive:
                return False  # its rows may still be in use
            what = "load" if one.is_load else "store"
            self._tell(what, f"a {what} of {len(one.part.keys)} blocks failed: {problem}")
        self._jobs.end_part(one.job, one.part.keys, delivered, nbytes, now)
        return True

    # ---- losing the daemon ----

    def _session(self) -> Session | None:
        """Returns the connection to use. When the daemon's process ended, everything in progress has ended too."""
        session = self._link.session
        if session is not self._used:
            if self._used is not None:
                for moved in self._abandon():
                    self._jobs.end_part(moved.job, moved.part.keys, 0, 0, time.monotonic())
            self._used = session
        return session

    def _refused(self, session: Session, problem: Error) -> None:
        """Handles a request that could not be sent."""
        if session.connection.alive:
            self._tell("send", f"a request failed: {problem}")
        else:
            self._lose(session, str(problem))

    def _lose(self, session: Session, why: str) -> None:
        """Handles the end of a connection; the daemon may still work on its transfers."""
        self._stranded[id(session)] = self._abandon()
        self._used = None
        self._link.lost(session, why or "the connection ended")

    def _abandon(self) -> list[_Moving]:
        """Ends everything except the transfers that were sent, which it returns."""
        for batch in [one.batch for one in self._asked] + list(self._to_ask):
            self._lookups.give_up(batch)
        self._asked = []
        self._to_ask.clear()
        for job, part, _ in self._to_move:
            self._jobs.end_part(job, part.keys, 0, 0, time.monotonic())
        self._to_move.clear()
        moving, self._moving = self._moving, []
        return moving

    def _take_ended(self, seconds: float = 0.0) -> None:
        """Ends the transfers of lost sessions whose daemon no longer touches the pool."""
        while self._stranded:
            try:
                session = self._link.ended.get(timeout=seconds) if seconds else self._link.ended.get_nowait()
            except queue.Empty:
                return
            seconds = 0.0
            now = time.monotonic()
            for moved in self._stranded.pop(id(session)):
                self._jobs.end_part(moved.job, moved.part.keys, 0, 0, now)

    def _tell(self, kind: str, text: str) -> None:
        """Logs at most one line per minute of each kind."""
        now = time.monotonic()
        if now - self._told.get(kind, -SECONDS_BETWEEN_LINES) >= SECONDS_BETWEEN_LINES:
            self._told[kind] = now
            self._log.warning("Terrace: %s", text)

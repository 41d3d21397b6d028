"""Blocking lookups and transfers of pages, for threads that may wait. While the daemon is away, everything misses.

A page is an object of a space with one pool, under a digest that says nothing about others.
"""

from __future__ import annotations

import logging
import queue
import time
from collections.abc import Iterator, Sequence

from ._libterrace import Lookup, Options, Prefix, Space, Ticket
from .errors import DeadlineExceeded, Error
from .gauge import Change
from .link import HostPool, Link, Session
from .options import Limits
from .spaces import SpaceSpec

SECONDS_BETWEEN_LINES = 60.0  # interval of log lines of one kind
PAGES_MAX = 16_384  # pages of one request, far below each bound of the protocol
ALONE_MAX = 64  # lookups of one page each that are in flight together
ROUNDS = 4  # lookups one after the other before those that are left are asked for one by one
LOAD_OPTIONS = Options(priority=64)

Runs = Sequence[tuple[int, int]]


class Pages:
    """One connection, used by one thread at a time. The daemon copies between its memory and `pool`; a transfer
    returns when the daemon no longer touches the pool, also when the connection or the daemon is lost."""

    def __init__(
        self, path: str, pool: HostPool, *, name: str, limits: Limits, log: logging.Logger, specs: Sequence[SpaceSpec] = (),
        changed: Change = lambda change: None,
    ) -> None:
        """Closes `pool.descriptor` in the end. `specs`: spaces to open with the connection; others are opened with
        their first request."""
        self._link = Link(path, name, specs, pool, log, changed)
        self._limits, self._log, self._specs = limits, log, specs
        self._opened: tuple[Session | None, dict[SpaceSpec, Space]] = (None, {})  # spaces opened in that session
        self._late: tuple[Session, Ticket[Lookup]] | None = None
        self._told: dict[str, float] = {}

    @property
    def connected(self) -> bool:
        return self._link.session is not None

    def await_attempt(self) -> None:
        """Waits until the first attempt to connect is over, but not longer than for a load."""
        self._link.await_attempt(self._limits.load)

    def close(self) -> None:
        """Closes the connection. A transfer in another thread ends before that or soon after."""
        self._link.close()

    def found(self, spec: SpaceSpec, digests: Sequence[bytes]) -> int:
        """Returns how many of the pages the space has, up to the first that it lacks."""
        count = 0
        while count < len(digests):
            part = digests[count:count + PAGES_MAX]
            found = self._found(spec, part)
            count += found
            if found < len(part):
                break
        return count

    def present(self, spec: SpaceSpec, digests: Sequence[bytes]) -> list[bool]:
        """Returns for each of the pages whether the space has it."""
        present = [False] * len(digests)
        begin = 0
        for _ in range(ROUNDS):
            count = self.found(spec, digests[begin:])
            present[begin:begin + count] = [True] * count
            begin += count + 1  # the one behind them is absent
            if begin >= len(digests):
                return present
        for number in range(begin, len(digests), ALONE_MAX):
            part = self._each_found(spec, digests[number:number + ALONE_MAX])
            present[number:number + len(part)] = part
        return present

    def _each_found(self, spec: SpaceSpec, digests: Sequence[bytes]) -> list[bool]:
        session = self._link.session
        found = [False] * len(digests)
        if session is None or self._is_late(session):
            return found
        until = time.monotonic() + self._limits.lookup
        try:
            space = self._space(session, spec, self._limits.lookup)
            tickets = [session.connection.submit_lookup(space, Prefix.of_digests([digest]), timeout=self._limits.lookup)
                       for digest in digests]
            for number, ticket in enumerate(tickets):
                try:
                    found[number] = ticket.result(max(0.0, until - time.monotonic())).found_chunks == 1
                except DeadlineExceeded:
                    if not ticket.done:
                        self._late = (session, ticket)
                    self._tell_late()
                    break
        except Error as problem:
            self._failed(session, "a lookup", problem)
        return found

    def _found(self, spec: SpaceSpec, digests: Sequence[bytes]) -> int:
        session = self._link.session
        if session is None or not digests or self._is_late(session):
            return 0
        try:
            space = self._space(session, spec, self._limits.lookup)
            ticket = session.connection.submit_lookup(space, Prefix.of_digests(digests), timeout=self._limits.lookup)
            try:
                return ticket.result(self._limits.lookup).found_chunks
            except DeadlineExceeded:
                if not ticket.done:
                    self._late = (session, ticket)
                self._tell_late()
        except Error as problem:
            self._failed(session, "a lookup", problem)
        return 0

    def _tell_late(self) -> None:
        self._tell("late", f"no answer to a lookup within {self._limits.lookup} s: everything misses until it comes")

    def load(self, spec: SpaceSpec, digests: Sequence[bytes], runs: Runs, runs_per_object: Sequence[int]) -> int:
        """Loads pages, and returns how many arrived, up to the first that did not. `runs`: (offset, bytes) in the
        pool, page after page."""
        arrived = 0
        for first, end, some in _parts(runs, runs_per_object, len(digests)):
            came = self._load(spec, digests[first:end], some, runs_per_object[first:end])
            arrived += came
            if came < end - first:
                break
        return arrived

    def _load(self, spec: SpaceSpec, digests: Sequence[bytes], runs: Runs, runs_per_object: Sequence[int]) -> int:
        session = self._link.session
        if session is None:
            return 0

        try:
            ticket = session.connection.submit_load(
                self._space(session, spec, self._limits.load), Prefix.of_digests(digests), session.region, runs,
                runs_per_object=runs_per_object, options=LOAD_OPTIONS, timeout=self._limits.load,
            )
            return ticket.result().delivered_chunks
        except Error as problem:
            self._failed(session, f"a load of {len(digests)} pages", problem, moved=True)
            return 0

    def store(
        self, spec: SpaceSpec, digests: Sequence[bytes], runs: Runs, runs_per_object: Sequence[int], parent: bytes = b""
    ) -> bool:
        """Stores pages, and returns whether they are present now. `parent`: the page before the first; the daemon
        keeps it as long as the pages after it."""
        for first, end, some in _parts(runs, runs_per_object, len(digests)):
            if not self._store(spec, digests[first:end], some, runs_per_object[first:end], parent):
                return False
            parent = digests[end - 1]
        return True

    def _store(
        self, spec: SpaceSpec, digests: Sequence[bytes], runs: Runs, runs_per_object: Sequence[int], parent: bytes
    ) -> bool:
        session = self._link.session
        if session is None:
            return False
        chain = [parent, *digests] if parent else digests

        try:
            ticket = session.connection.submit_store(
                self._space(session, spec, self._limits.store), Prefix.of_digests(chain), session.region, runs,
                first_chunk=len(chain) - len(digests), runs_per_object=runs_per_object, timeout=self._limits.store,
            )
            ticket.result()
        except Error as problem:
            self._failed(session, f"a store of {len(digests)} pages", problem, moved=True)
            return False
        return True

    def clear(self, spec: SpaceSpec) -> None:
        """Forgets all pages of the space. Raises the daemon's errors."""
        session = self._link.session
        if session is not None:
            space = self._space(session, spec, self._limits.store)
            session.connection.clear(space, timeout=self._limits.store)

    def _space(self, session: Session, spec: SpaceSpec, timeout: float) -> Space:
        """Opens a space. The sequences of `spec` are tuples. If opening takes longer, the connection is given up, so
        that nobody waits for it again."""
        if self._opened[0] is not session:
            self._opened = (session, dict(zip(self._specs, session.spaces)))
        spaces = self._opened[1]
        if spec not in spaces:
            try:
                spaces[spec] = session.connection.open_space(spec, timeout=timeout)
            except DeadlineExceeded:
                self._link.lost(session, f"it did not open a space within {timeout} s")
                raise
        return spaces[spec]

    def _is_late(self, session: Session) -> bool:
        """True if an answer is still to come on this connection."""
        if self._late is None:
            return False
        asked, ticket = self._late
        if asked is session and session.connection.alive:
            try:
                session.connection.poll()
            except Error as problem:
                self._failed(session, "a lookup", problem)
            if session.connection.alive and not ticket.done:
                return True
        self._late = None
        return False

    def _failed(self, session: Session, what: str, problem: Error, *, moved: bool = False) -> None:
        """Handles a failure. `moved`: a transfer may have begun. Returns when the daemon no longer touches the pool
        for it."""
        if session.connection.alive:
            self._tell(what.split(" of ")[0], f"{what} failed: {problem}")
            return
        self._link.lost(session, str(problem))
        while moved:
            try:
                moved = self._link.ended.get(timeout=1.0) is not session
            except queue.Empty:
                moved = self._link.running

    def _tell(self, kind: str, text: str) -> None:
        """Logs at most one line per minute of each kind."""
        now = time.monotonic()
        if now - self._told.get(kind, -SECONDS_BETWEEN_LINES) >= SECONDS_BETWEEN_LINES:
            self._told[kind] = now
            self._log.warning("Terrace: %s", text)


def _parts(runs: Runs, runs_per_object: Sequence[int], pages: int) -> Iterator[tuple[int, int, Runs]]:
    """Divides a batch: the first page and the end of each part, and its runs."""
    at = 0
    for first in range(0, pages, PAGES_MAX):
        end = min(pages, first + PAGES_MAX)
        count = sum(runs_per_object[first:end])
        yield first, end, runs if end - first == pages else runs[at:at + count]
        at += count

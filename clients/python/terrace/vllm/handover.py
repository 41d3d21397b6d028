"""Requests that are computed in one engine and continued in another one: this side announces what it is going to store, and
waits for what others have announced. Nothing here waits. Used by the scheduler's thread."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass

from .._libterrace import Announced, Prefix, Ticket
from ..errors import Error
from ..link import Session
from .adapters import Tags

# Announcements and waits in progress: each takes one of the connection's credits, and lookups need some as well.
IN_PROGRESS_MAX = 64
ANSWER_SECONDS = 0.5  # after its deadline, in which a running daemon answers
ANNOUNCED_SECONDS = 600.0  # the daemon allows about so many


@dataclass(slots=True)
class _Promise:
    """An announcement of chunks that this engine is going to store."""

    session: Session
    ticket: Ticket[Announced]
    chunks: int
    until: float = float("inf")  #: then it is taken back


@dataclass(slots=True)
class _Wait:
    session: Session | None
    ticket: Ticket[Announced] | None  #: None: it is over
    until: float


class Handover:
    def __init__(self, store_seconds: float, tell: Callable[[str, str], None]) -> None:
        """`store_seconds`: by then what a request has ordered to be stored is stored, or not at all."""
        self._store_seconds, self._tell = store_seconds, tell
        self._promises: dict[str, _Promise] = {}  # by request
        self._announced: set[str] = set()  # requests in progress, once each: what has ended is not announced again
        self._waits: dict[str, _Wait] = {}

    def __len__(self) -> int:
        return len(self._promises) + sum(wait.ticket is not None for wait in self._waits.values())

    # ---- what this engine stores ----

    def announces(self, request: str) -> bool:
        return request in self._announced

    def announce(self, request: str, session: Session, name: bytes, digests: Sequence[bytes], tags: Tags) -> None:
        """Announces these chunks of the request."""
        if not digests or not self._has_room():
            return
        try:
            ticket = session.connection.submit_announce(
                session.spaces[0], Prefix.of_digests(digests, tags=tags), name, timeout=ANNOUNCED_SECONDS)
        except Error as problem:
            self._tell("announce", f"what a request stores could not be announced: {problem}")
            return
        self._promises[request] = _Promise(session, ticket, len(digests))
        self._announced.add(request)

    def withdraw(self, requests: Set[str]) -> None:
        """Chunks of these requests will not be stored."""
        for request in requests & self._promises.keys():
            self._drop(request)

    def finished(self, request: str, ordered: int) -> None:
        """The request is over. `ordered`: how many of its chunks workers have been told to store; they may still do so."""
        self._announced.discard(request)
        wait = self._waits.pop(request, None)
        if wait is not None:
            self._end(wait)
        if (promise := self._promises.get(request)) is None:
            return
        if ordered < promise.chunks:
            self._drop(request)
        else:
            promise.until = time.monotonic() + 2 * self._store_seconds

    def advance(self, session: Session | None) -> None:
        """Once per step."""
        now = time.monotonic()
        for request, promise in list(self._promises.items()):
            if promise.session is not session or promise.ticket.done:
                del self._promises[request]
                if promise.session is not session:
                    self._announced.discard(request)
                self._take(promise.session, promise.ticket, session)
            elif promise.until < now:
                self._drop(request)

    # ---- what others store ----

    def follows(self, request: str, session: Session | None, name: bytes, chunks: int, seconds: float) -> bool:
        """Whether the request still has to wait for its first `chunks`. The first call begins the wait."""
        if (wait := self._waits.get(request)) is None:
            self._waits[request] = wait = self._begin(session, name, chunks, seconds)
        if wait.ticket is None:
            return False
        if wait.session is not session or wait.ticket.done or time.monotonic() > wait.until:
            self._take(wait.session, wait.ticket, session)
            wait.ticket = None
        return wait.ticket is not None

    def _begin(self, session: Session | None, name: bytes, chunks: int, seconds: float) -> _Wait:
        until = time.monotonic() + seconds + ANSWER_SECONDS
        if session is None or not self._has_room():
            return _Wait(session, None, until)
        try:
            return _Wait(session, session.connection.submit_follow(name, chunks=chunks, timeout=seconds), until)
        except Error as problem:
            self._tell("follow", f"what another engine stores could not be followed: {problem}")
            return _Wait(session, None, until)

    def _has_room(self) -> bool:
        if len(self) < IN_PROGRESS_MAX:
            return True
        self._tell("handover", f"{IN_PROGRESS_MAX} requests announce or follow at once; further ones do without")
        return False

    def _take(self, of: Session | None, ticket: Ticket[Announced], now: Session | None) -> None:
        if of is not now or not ticket.done:
            with contextlib.suppress(Error):
                ticket.cancel()
            return
        try:
            ticket.result(0)
        except Error as problem:
            self._tell("handover", f"an announcement or a wait for one ended: {problem}")

    def _drop(self, request: str) -> None:
        with contextlib.suppress(Error):
            self._promises.pop(request).ticket.cancel()

    @staticmethod
    def _end(wait: _Wait) -> None:
        if wait.ticket is not None:
            with contextlib.suppress(Error):
                wait.ticket.cancel()
            wait.ticket = None

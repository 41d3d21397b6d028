"""Releases streams that wait for layers of loads. Only its answer tells that a load failed, and a stream that waits
for its layers goes on when somebody has taken the answer; the worker's thread may be waiting for the stream just
then."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import Error
from ..link import Session, await_readable
from .requests import Request


@dataclass(slots=True)
class _Watched:
    session: Session
    request: Request
    until: float


class LayerWatch:
    """A thread that sleeps while there are no such loads."""

    def __init__(self, lock: threading.Lock, log: logging.Logger) -> None:
        """`lock`: held by every user of the connection, because answers would be missed otherwise."""
        self.came = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)  #: readable when the thread has received answers
        self._lock, self._log = lock, log
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._watched: list[_Watched] = []
        self._stop = False
        self._thread = threading.Thread(target=self._run, name="terrace-layers", daemon=True)
        self._thread.start()

    def add(self, session: Session, request: Request, until: float) -> None:
        """Called with the lock. After `until`, nobody waits for the request's layers any longer."""
        self._watched.append(_Watched(session, request, until))
        os.eventfd_write(self._wake, 1)

    def abandoned(self) -> None:
        """Called with the lock. Forgets requests that were given up, because they keep their connection open."""
        os.eventfd_write(self._wake, 1)

    def close(self) -> None:
        """Ends the thread. A second call does nothing."""
        with self._lock:
            if self._stop:
                return
            self._stop = True
        os.eventfd_write(self._wake, 1)
        self._thread.join()
        self._watched.clear()
        os.close(self._wake)
        os.close(self.came)

    def _run(self) -> None:
        while not self._stop:
            try:
                self._attend()
            except Exception:  # a bug in this code must not make an engine stand still
                self._log.exception("Terrace: loads are given up")
                self._give_up_all()

    def _attend(self) -> None:
        """Waits until something may have changed. Between calls it keeps only the watched requests of a session."""
        descriptors, seconds, process = [self._wake], None, None
        with self._lock:
            self._watched = watched = [one for one in self._watched if not (one.request.over or one.request.given_up)]
            if watched:
                session = watched[0].session  # all belong to one session, or are about to end
                process = None if session.registered is None else session.registered.process
                descriptors += [session.descriptor] if process is None else [session.descriptor, process]
                seconds = max(0.0, min(one.until for one in watched) - time.monotonic())
                # A lost or closed connection ends its requests, and its descriptors say nothing more.
                if not session.connection.alive:
                    seconds = 0.0
        ready = await_readable(descriptors, seconds)
        if self._wake in ready:
            os.eventfd_read(self._wake)
        self._look(watched, process in ready)

    def _look(self, watched: Sequence[_Watched], ended: bool) -> None:
        """`ended`: the GPU's process has ended. The link then closes the connection, perhaps before the answers were
        seen."""
        with self._lock:
            for one in watched[:1]:
                with contextlib.suppress(Error):  # a request reveals the loss
                    one.session.connection.poll()
            for one in watched:
                if not one.request.take() and ((ended and one.session is watched[0].session) or time.monotonic() >= one.until):
                    one.request.give_up()
            if watched:
                os.eventfd_write(self.came, 1)

    def _give_up_all(self) -> None:
        with self._lock:
            for one in self._watched:
                one.request.give_up()
            self._watched.clear()
            os.eventfd_write(self.came, 1)

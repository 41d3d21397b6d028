"""The connection of an engine's memory to the daemon, which comes and goes. A thread connects, so that nobody waits
for it."""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import select
import socket
import struct
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from .connection import Connection
from .errors import Error
from .gauge import Change
from ._libterrace import Region, Space
from .spaces import SpaceSpec

HANDSHAKE_SECONDS = 10.0
BACKOFF_LEAST = 0.05  # seconds between attempts; doubled after each one, up to BACKOFF_MOST
BACKOFF_MOST = 2.0
REMIND_SECONDS = 60.0  # between warnings while the daemon is away
CLOSE_SECONDS = 2.0
DEVICE_SECONDS = 4000.0  # by then the daemon has ended any GPU process that does not answer (gpu.deadline)


@dataclass(frozen=True)
class Registered:
    """Memory that a connection has registered, with its counters and process."""

    region: Region
    process: int | None = None  #: pidfd of the process that accesses the memory instead of the daemon, and that ends
                                #: with it; closed by the link


class Pool(Protocol):
    """Memory of an engine, which each connection registers anew."""

    def register(self, connection: Connection, timeout: float) -> Registered: ...
    def close(self) -> None:
        """Called when no connection will be made any more."""


@dataclass(frozen=True)
class HostPool:
    """Shared memory of an engine, in rows."""

    descriptor: int  #: closed by the link
    file_bytes: int
    offset: int = 0  #: offset of the first row in the file
    row_bytes: int = 0  #: 0: the rows do not have one size

    def register(self, connection: Connection, timeout: float) -> Registered:
        return Registered(connection.register_region(self.descriptor, self.file_bytes, timeout=timeout))

    def close(self) -> None:
        os.close(self.descriptor)


@dataclass(frozen=True)
class Session:
    """A connection with the pool registered and all spaces open. The scheduler uses it until `Link.session` is another
    one."""

    connection: Connection
    spaces: Sequence[Space]  #: space of each group
    registered: Registered | None  #: registration of the pool, if there is one
    boot: bytes
    number: int  #: number of the connection in the daemon's status
    process: int | None  #: pidfd of the daemon; None if its processes cannot be seen
    descriptor: int  #: `connection.fileno()`, for callers that must not wait for their turn to ask; any file or none
                     #: once the connection is closed

    @property
    def region(self) -> Region:
        assert self.registered is not None
        return self.registered.region


class Link:
    """Keeps a session with the daemon. `session` is None while the daemon is away. A session that the user has
    reported as `lost` is in `ended` once the daemon can no longer touch the pool for it: until then transfers that
    were in progress may still read and write their rows. When the daemon's process ends (or that of the GPU whose
    memory the pool is), `session` changes without a report, and nothing of the old one is left."""

    def __init__(
        self, path: str, name: str, specs: Sequence[SpaceSpec], pool: Pool | None, log: logging.Logger,
        changed: Change = lambda change: None,
    ) -> None:
        """`pool` is None for users that move no bytes. `changed` is called with 1 for each session, and with -1 at its
        end."""
        self.session: Session | None = None
        self.ended: queue.SimpleQueue[Session] = queue.SimpleQueue()
        self._path, self._name, self._specs, self._pool, self._log = path, name, specs, pool, log
        self._changed = changed
        self._tried = threading.Event()  #: set when the first attempt to connect is over
        self._lost: queue.SimpleQueue[Session] = queue.SimpleQueue()
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="terrace-link", daemon=True)
        self._thread.start()

    def lost(self, session: Session, why: str) -> None:
        """Reports a session as lost. Its user calls this at most once for each session."""
        if self.session is session:
            self.session = None
            self._log.warning("the Terrace daemon at %s is lost (%s); going on without it until it is back", self._path, why)
        self._lost.put(session)
        if not self._stop.is_set():
            os.eventfd_write(self._wake, 1)

    def await_attempt(self, seconds: float) -> None:
        """Waits until the first attempt to connect is over. An engine calls it at its start: otherwise its first
        requests would miss, and their KV would not be stored."""
        self._tried.wait(seconds)

    def close(self) -> None:
        """Ends the thread and the connection. A second call does nothing."""
        if self._stop.is_set():
            return
        self._stop.set()
        os.eventfd_write(self._wake, 1)
        self._thread.join(CLOSE_SECONDS)  # takes longer only inside a handshake with a daemon that stands still
        if not self._thread.is_alive():
            os.close(self._wake)

    @property
    def running(self) -> bool:
        """False after `close`: no session ends any more."""
        return self._thread.is_alive()

    # ---- the thread ----

    def _run(self) -> None:
        while not self._stop.is_set():
            self.session = session = self._connect()
            self._tried.set()
            if session is not None:
                self._log.info("connected to the Terrace daemon at %s", self._path)  # from now on the session is used
                self._changed(1)
                self._attend(session)
        self.session = None
        if self._pool is not None:
            self._pool.close()

    def _attend(self, session: Session) -> None:
        """Returns when the session is over and the daemon does nothing more for it."""
        device = None if session.registered is None else session.registered.process
        reported = self._await_loss(session, session.process if device is None else device)
        self.session = None
        self._changed(-1)
        session.connection.close(timeout=DEVICE_SECONDS)
        if reported:
            self._await_end(session)
            if device is not None and session.process is not None and await_readable([session.process], 0):
                self._await_loss(session, device)
            self.ended.put(session)
        elif not self._stop.is_set():
            what = "the Terrace daemon" if device is None else "the GPU's process of the Terrace daemon"
            self._log.warning("%s at %s has ended; going on without it until it is back", what, self._path)
        if device is not None and session.process is not None and await_readable([session.process], 0):
            await_readable([device])  # the GPU's process ends with its daemon, and may access the pool until then
        for process in (session.process, device):
            if process is not None:
                os.close(process)

    def _await_loss(self, session: Session, process: int | None) -> bool:
        """Waits until the process has ended or the session was reported as lost, and returns whether it was reported."""
        reported = False
        while not reported and not self._stop.is_set():
            ready = await_readable([self._wake] if process is None else [self._wake, process])
            if self._wake in ready:
                os.eventfd_read(self._wake)
            reported = self._take_lost(session)
            if process in ready:
                break
        return reported

    def _take_lost(self, current: Session | None) -> bool:
        """Returns whether `current` was reported. Other reported sessions had already ended with their processes."""
        reported = False
        while not self._lost.empty():
            if (lost := self._lost.get()) is current:
                reported = True
            else:
                self.ended.put(lost)
        return reported

    def _connect(self) -> Session | None:
        """Tries until it succeeds. Returns None if `close` was called."""
        told = ""
        since = reminded = time.monotonic()
        pause = BACKOFF_LEAST
        while not self._stop.is_set():
            try:
                return self._attempt()
            except Exception as problem:  # also if a space cannot be described, because nobody else would report that
                if str(problem) != told:
                    told = str(problem)
                    self._log.warning("cannot use the Terrace daemon at %s: %s; trying again", self._path, told)
                elif time.monotonic() - reminded >= REMIND_SECONDS:
                    reminded = time.monotonic()
                    self._log.warning(
                        "without the Terrace daemon at %s for %.0f s (%s): prompts are computed, and nothing is cached; start it "
                        "(systemctl start terraced), or see its log (journalctl -u terraced)", self._path, reminded - since, told)
            self._tried.set()
            self._take_lost(None)
            self._stop.wait(pause)
            pause = min(2 * pause, BACKOFF_MOST)
        return None

    def _attempt(self) -> Session:
        connection = Connection(self._path, name=self._name, timeout=HANDSHAKE_SECONDS)
        process = None
        try:
            process = _process_of(connection)
            spaces = [connection.open_space(spec, timeout=HANDSHAKE_SECONDS) for spec in self._specs]
            daemon = connection.daemon
            registered = None if self._pool is None else self._pool.register(connection, HANDSHAKE_SECONDS)
            return Session(connection, spaces, registered, daemon.boot, daemon.connection, process, connection.fileno())
        except BaseException:
            connection.close()
            if process is not None:
                os.close(process)
            raise

    def _await_end(self, session: Session) -> None:
        pause = BACKOFF_LEAST
        while not self._stop.is_set():
            if session.process is not None and await_readable([session.process], 0):
                return
            try:
                with Connection(self._path, name=self._name, observes=True, timeout=HANDSHAKE_SECONDS) as other:
                    clients = other.status(timeout=HANDSHAKE_SECONDS).clients
                    if other.daemon.boot != session.boot or session.number not in {one.connection for one in clients}:
                        return
            except Error:
                if session.process is None:  # nobody answers, and there is no other way to learn of the loss
                    return
            if session.process is None:
                self._stop.wait(pause)
            elif await_readable([session.process], pause):
                return
            pause = min(2 * pause, BACKOFF_MOST)


def _process_of(connection: Connection) -> int | None:
    with contextlib.suppress(OSError), socket.socket(fileno=os.dup(connection.fileno())) as peer:
        (pid, _, _) = struct.unpack("3i", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        if pid > 0:
            return os.pidfd_open(pid)
    return None


def await_readable(descriptors: Sequence[int], seconds: float | None = None) -> set[int]:
    """Returns those that are readable within `seconds`; None: waits for one."""
    watched = select.poll()
    for descriptor in descriptors:
        watched.register(descriptor, select.POLLIN)
    return {descriptor for descriptor, _ in watched.poll(None if seconds is None else seconds * 1000)}

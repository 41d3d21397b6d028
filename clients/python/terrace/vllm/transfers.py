"""The requests of a worker that are in progress, over connections that come and go, and the slots of staging memory
that they use."""

from __future__ import annotations

import logging
import os
import queue
import threading
import time
from collections.abc import Callable

from .._libterrace import Loaded, Stored, Ticket
from ..errors import Error, Gone
from ..link import Link, Session, await_readable
from .kv_mover import Mark
from .layer_watch import LayerWatch
from .requests import Request, Result, Window
from .slots import Slots
from .staging import Staging

SECONDS_BETWEEN_LINES = 60.0  # interval of log lines of one kind
SLICE_SECONDS = 0.05  # limit of a wait for answers, after which it checks for changes that nobody announces


class Transfers:
    """The transfers of a worker. Used by one thread. Slots on which a lost daemon or copies of a stream may still work
    are not given out again until that has ended."""

    def __init__(self, link: Link, staging: Staging, log: logging.Logger) -> None:
        self.slots = Slots(staging.slots)
        self._link, self._staging, self._log = link, staging, log
        self.lock = threading.Lock()  #: held around all uses of the session's connection
        self._watch = LayerWatch(self.lock, log) if staging.by_stream else None
        self._used: Session | None = None  # session of all requests
        self._under_way: list[Request] = []
        self._returning: list[tuple[Mark, Window]] = []  # in the stream's order
        self._stranded: dict[int, list[Window]] = {}  # by id() of the lost session
        self._told: dict[str, float] = {}

    def take(self, most: int) -> Window | None:
        """Takes at most `most` slots; None: there are none."""
        slot, count = self.slots.take(most)
        return Window(slot, count) if count else None

    def done_with(self, window: Window) -> None:
        """One user of the window is done. Copies of the last one may still be queued."""
        window.users -= 1
        if window.users:
            return
        mark = self._staging.mark()
        if mark is None:
            self._free(window)
        else:
            self._returning.append((mark, window))

    def send(
        self, session: Session, window: Window, what: str, submit: Callable[[], Ticket[Loaded] | Ticket[Stored]],
        on_end: Callable[[Result], None], watched_until: float | None = None,
    ) -> bool:
        """Sends a request. `receive` calls `on_end`, or this does if the request cannot be sent (then it returns
        False). `watched_until`: a stream may wait for its layers until then."""
        with self.lock:
            try:
                request = Request(submit(), window, on_end)
            except Error as problem:
                refused = problem
            else:
                window.users += 1
                self._under_way.append(request)
                if self._watch is not None and watched_until is not None:
                    self._watch.add(session, request, watched_until)
                return True
        on_end(None)
        if session.connection.alive and not self._is_loss(session, refused):
            self.tell(what, f"{what} failed: {refused}")
        else:
            self._lose(session, str(refused))
        return False

    def receive(self) -> None:
        """Ends the requests that have been answered."""
        while self._returning and self._returning[0][0].passed:
            self._free(self._returning.pop(0)[1])
        self._take_ended()
        session = self.session()
        if session is None or not self._under_way:
            return
        why = ""
        with self.lock:
            try:
                session.connection.poll()
            except Error as problem:
                why = str(problem)
            came = [one for one in self._under_way if one.take()]
        lost = not session.connection.alive
        for one in came:
            if one.problem is not None and (lost or self._is_loss(session, one.problem)):
                lost, why = True, why or str(one.problem)  # its slots may still be in use
                continue
            if one.problem is not None:
                self.tell("moved", f"a load or a store failed: {one.problem}")
            self._under_way.remove(one)
            one.on_end(one.result)
            self.done_with(one.window)
        if lost:
            self._lose(session, why)

    def await_answer(self, seconds: float) -> None:
        """Waits for an answer, or until it is time to check again."""
        session = self.session()
        if session is None or not self._under_way:
            self._take_ended(seconds)
            return
        descriptors = [] if self._watch is None else [self._watch.came]
        ready = await_readable([session.descriptor, *descriptors], seconds)
        if ready.intersection(descriptors):
            os.eventfd_read(descriptors[0])

    def wait(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Waits until requests in progress make the condition true. False: they do not, or the time is over."""
        until = time.monotonic() + seconds
        self.receive()
        while not condition():
            left = until - time.monotonic()
            if left <= 0 or not (self._under_way or self._stranded or self._returning):
                return False
            if self._returning:
                self._returning[0][0].wait()  # copies queued in the stream end by themselves
            else:
                self.await_answer(min(left, SLICE_SECONDS))
            self.receive()
        return True

    def drain(self, seconds: float) -> bool:
        """Waits until all slots are free. False: `seconds` are over."""
        return self.wait(lambda: not (self._under_way or self._stranded or self._returning), seconds)

    def close(self) -> None:
        """Called when nobody waits for layers any more."""
        with self.lock:
            for one in self._under_way:
                one.give_up()
        if self._watch is not None:
            self._watch.close()
        self._used = None

    def tell(self, kind: str, text: str) -> None:
        """Logs at most one line per minute of each kind."""
        now = time.monotonic()
        if now - self._told.get(kind, -SECONDS_BETWEEN_LINES) >= SECONDS_BETWEEN_LINES:
            self._told[kind] = now
            self._log.warning("Terrace: %s", text)

    # ---- losing the daemon ----

    def session(self) -> Session | None:
        """Returns the connection to use. When the daemon's process ended, everything in progress has ended too."""
        session = self._link.session
        if session is not self._used:
            for window in self._abandon():
                self.done_with(window)
            self._used = session
        return session

    def broken(self, session: Session | None, why: str) -> None:
        """The GPU's driver refuses what belongs to the session, so it is given up: another one may succeed."""
        if session is not None and session is self.session():
            self._lose(session, why)

    def _is_loss(self, session: Session, problem: Error) -> bool:
        """Returns whether it is a loss. Perhaps only the GPU's process was lost: the next session has another one."""
        if not isinstance(problem, Gone):
            return False
        with self.lock:
            return self._staging.lost(session)

    def _lose(self, session: Session, why: str) -> None:
        """Handles the end of a connection; the daemon may still work on its requests."""
        self._stranded[id(session)] = self._abandon()
        self._used = None
        self._link.lost(session, why or "the connection ended")

    def _abandon(self) -> list[Window]:
        with self.lock:
            abandoned, self._under_way = self._under_way, []
            for one in abandoned:
                one.over = True
                one.give_up()
            if self._watch is not None:
                self._watch.abandoned()
        for one in abandoned:
            one.on_end(None)
        return [one.window for one in abandoned]

    def _take_ended(self, seconds: float = 0.0) -> None:
        """Frees slots of lost sessions that the daemon no longer touches."""
        while self._stranded:
            try:
                session = self._link.ended.get(timeout=seconds) if seconds else self._link.ended.get_nowait()
            except queue.Empty:
                return
            seconds = 0.0
            for window in self._stranded.pop(id(session), ()):
                self.done_with(window)

    def _free(self, window: Window) -> None:
        self.slots.give_back(window.slot, window.chunks)
        if window.layers is not None:
            window.layers.give_back()

"""A native plugin of LMCache's server: `--l2-adapter '{"type": "native_plugin", "module_path":
"terrace.lmcache.connector", "class_name": "TerraceConnector", "adapter_params": {"socket": ...}}'`.

LMCache submits batches and learns by an eventfd when they have ended. Lookups, loads and stores each have a thread
and a connection, which may wait. While the daemon is away, lookups miss and stores fail, at once.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import logging
import os
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from .. import gauge, options
from .._libterrace import Memory
from ..connection import default_socket
from ..link import HostPool
from ..options import Limits
from ..pages import Pages
from ..spaces import SpaceSpec
from .arenas import Arenas
from .keys import Family, Owner, runs_of, spec_of
from .sizes import RECORD_BYTES, Sizes

logger = logging.getLogger("lmcache.terrace")

T = TypeVar("T")
Completion = tuple[int, bool, str, list[bool] | None]
Work = Callable[[], tuple[bool, list[bool] | None]]


class TerraceConnector:
    def __init__(
        self,
        socket: str | None = None,
        revision: Any = None,
        salt: Any = "",
        name: str = "lmcache",
        lookup_seconds: float = Limits.lookup,
        load_seconds: float = Limits.load,
        store_seconds: float = Limits.store,
    ) -> None:
        """`socket`: path of the daemon's socket; by default TERRACE_SOCKET, or the system's. `revision`: revision of
        the model's weights; by default its files determine it. `salt`: servers share objects only with those of an
        equal salt."""
        self._path, self._name = socket or default_socket(), options.text("name", name)
        self._limits = Limits(lookup_seconds, load_seconds, store_seconds)
        self._owner = Owner(None if revision is None else options.text("revision", revision), options.text("salt", salt))
        self._sizes = Sizes(self._owner, self._load_record, self._store_record)
        self._record = Memory(RECORD_BYTES, name="terrace-lmcache")
        self._questions = self._open("lookups", HostPool(os.dup(self._record.fileno()), RECORD_BYTES))
        self._asking = threading.Lock()  # guards the record's memory and the connection for lookups
        self._loads, self._stores = (
            Arenas(functools.partial(self._open, role), logger) for role in ("loads", "stores")
        )
        self._done: list[Completion] = []
        self._finishing = threading.Lock()
        self._event = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._number = itertools.count(1)
        self._closed = False
        self._threads = {kind: _Worker(kind) for kind in ("exists", "get", "set")}

    # ---- what LMCache calls ----

    def event_fd(self) -> int:
        return self._event

    def submit_batch_exists(self, keys: Sequence[str]) -> int:
        return self._submit("exists", lambda: (True, self._exists(keys)))

    def submit_batch_get(self, keys: Sequence[str], memoryviews: Sequence[memoryview]) -> int:
        return self._submit("get", lambda: (True, self._get(keys, memoryviews)))

    def submit_batch_set(self, keys: Sequence[str], memoryviews: Sequence[memoryview]) -> int:
        return self._submit("set", lambda: (self._set(keys, memoryviews), None))

    def drain_completions(self) -> list[Completion]:
        """Returns the batches that have ended since the last call: number, success, reason of a failure, and for each
        key whether it is present."""
        if self._closed:
            return []
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._event)
        with self._finishing:
            done, self._done = self._done, []
        return done

    def close(self) -> None:
        """Batches in progress end; waiting ones fail. A second call does nothing."""
        if self._closed:
            return
        self._closed = True
        self._questions.close()
        self._loads.close()
        self._stores.close()
        for worker in self._threads.values():
            worker.stop()
        os.close(self._event)

    @property
    def connected(self) -> bool:
        """True if the daemon answers lookups."""
        return self._questions.connected

    # ---- the threads ----

    def _submit(self, kind: str, work: Work) -> int:
        if self._closed:
            raise RuntimeError("the connector is closed")
        number = next(self._number)

        def run() -> None:
            why = ""
            try:
                self._questions.await_attempt()
                if self._closed:
                    raise RuntimeError("the connector is closed")
                ok, results = work()
                if not ok:
                    why = "the daemon did not take it"
            except Exception as problem:  # LMCache waits for each batch, so it must end
                ok, results, why = False, None, f"{type(problem).__name__}: {problem}"
                logger.warning("a batch of %s failed: %s", kind, why)
            with self._finishing:
                self._done.append((number, ok, why, results))
            os.eventfd_write(self._event, 1)

        self._threads[kind].run(run)
        return number

    def _exists(self, keys: Sequence[str]) -> list[bool]:
        results = [False] * len(keys)
        for family, places, digests in self._usable(keys):
            asked: set[int] = set()
            for sizes in (self._sizes.known, self._sizes.of):  # others may have added some meanwhile
                for nbytes in sizes(family):
                    if nbytes in asked or all(results[place] for place in places):
                        continue
                    asked.add(nbytes)
                    spec = spec_of(family, nbytes, self._owner)
                    for number in _present(places, digests, lambda rest: self._found(spec, rest)):
                        results[number] = True
                if all(results[place] for place in places):
                    break
        return results

    def _usable(self, keys: Sequence[str]) -> list[tuple[Family, list[int], list[bytes]]]:
        return [run for run in runs_of(keys) if self._owner.revision_of(run[0].model) is not None]

    def _get(self, keys: Sequence[str], views: Sequence[memoryview]) -> list[bool]:
        results = [False] * len(keys)
        for family, places, digests in self._usable(keys):
            for nbytes, numbers in _by_size(places, views):
                spec = spec_of(family, nbytes, self._owner)
                of_size = [views[places[number]] for number in numbers]
                for piece in self._loads.pieces(of_size):
                    asked = [digests[numbers[number]] for number in piece.numbers]
                    rows = [(places[numbers[number]], row) for row, number in enumerate(piece.numbers)]
                    runs = piece.runs

                    def load(rest: Sequence[bytes]) -> int:
                        return piece.pages.load(spec, rest, runs[len(runs) - len(rest):], [1] * len(rest))

                    for place, row in _present(rows, asked, load):
                        results[place] = True
                        if piece.staging is not None:
                            views[place].cast("B")[:] = piece.staging[row * nbytes:(row + 1) * nbytes]
        return results

    def _set(self, keys: Sequence[str], views: Sequence[memoryview]) -> bool:
        all_stored = True
        for family, places, digests in runs_of(keys):
            if self._owner.revision_of(family.model) is None:
                return False
            for nbytes, numbers in _by_size(places, views):
                if nbytes == 0:
                    all_stored = False  # the others are stored
                    continue
                self._sizes.add(family, nbytes)
                spec = spec_of(family, nbytes, self._owner)
                for piece in self._stores.pieces([views[places[number]] for number in numbers]):
                    if piece.staging is not None:
                        for row, number in enumerate(piece.numbers):
                            view = views[places[numbers[number]]]
                            piece.staging[row * nbytes:(row + 1) * nbytes] = view.cast("B")
                    stored = [digests[numbers[number]] for number in piece.numbers]
                    if not piece.pages.store(spec, stored, piece.runs, [1] * len(stored)):
                        return False
        return all_stored

    # ---- questions ----

    def _found(self, spec: SpaceSpec, digests: Sequence[bytes]) -> int:
        with self._asking:
            return self._questions.found(spec, digests)

    def _load_record(self, digest: bytes) -> bytes | None:
        with self._asking:  # asks first: that wait is short, and afterwards there is none until the daemon answers
            if self._questions.found(self._sizes.space, [digest]) == 0:
                return None
            came = self._questions.load(self._sizes.space, [digest], [(0, RECORD_BYTES)], [1])
            return bytes(memoryview(self._record)) if came == 1 else None

    def _store_record(self, digest: bytes, record: bytes) -> None:
        with self._asking:
            memoryview(self._record)[:] = record
            self._questions.store(self._sizes.space, [digest], [(0, RECORD_BYTES)], [1])

    def _open(self, role: str, pool: HostPool) -> Pages:
        return Pages(self._path, pool, name=f"{self._name} {role}", limits=self._limits, log=logger,
                     changed=gauge.connected("lmcache"))


def _present(things: Sequence[T], digests: Sequence[bytes], leading: Callable[[Sequence[bytes]], int]) -> list[T]:
    """Returns those of `things` whose digests are present. `leading` counts how many of some digests are, up to the
    first that is not."""
    found: list[T] = []
    begin = 0
    while begin < len(digests):
        count = leading(digests[begin:])
        found.extend(things[begin:begin + count])
        begin += count + 1
    return found


def _by_size(places: Sequence[int], views: Sequence[memoryview]) -> list[tuple[int, list[int]]]:
    """Groups positions in `places` by the size of their objects."""
    sizes: dict[int, list[int]] = {}
    for number, place in enumerate(places):
        sizes.setdefault(views[place].nbytes, []).append(number)
    return list(sizes.items())


class _Worker:
    """A thread that runs given tasks one after the other."""

    def __init__(self, kind: str) -> None:
        self._work: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=f"terrace-{kind}", daemon=True)
        self._thread.start()

    def run(self, work: Callable[[], None]) -> None:
        self._work.put(work)

    def stop(self) -> None:
        self._work.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            work()

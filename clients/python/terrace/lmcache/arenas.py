"""Finds the memory of LMCache's objects for the daemon's copies: the first level (L1) itself if that is shared memory,
otherwise staging memory."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from .._libterrace import Memory, address_of
from ..errors import BadRequest
from ..link import HostPool
from ..pages import Pages
from ..shared import memory_of

STAGING_BYTES = 16 << 20

OpenPages = Callable[[HostPool], Pages]


@dataclass(frozen=True)
class Piece:
    """Objects of a batch that one connection moves at once."""

    pages: Pages
    numbers: range  #: positions in the batch
    runs: list[tuple[int, int]]
    staging: memoryview | None  #: None: the objects are moved in place; otherwise their bytes are copied from or to
                                #: this memory


@dataclass(frozen=True)
class _Arena:
    base: int
    nbytes: int
    pages: Pages


@dataclass(frozen=True)
class _Staging:
    memory: Memory
    rows: int
    pages: Pages


class Arenas:
    """The arenas of one thread. Each piece of memory has a connection."""

    def __init__(self, open_pages: OpenPages, log: logging.Logger) -> None:
        self._open_pages, self._log = open_pages, log
        self._arenas: list[_Arena] = []
        self._staging: dict[int, _Staging] = {}  # by the size of an object
        self._private = False  # L1 is not shared memory; logged once

    def pieces(self, views: Sequence[memoryview]) -> Iterator[Piece]:
        """Divides objects of one size into pieces, in their order."""
        places = [address_of(view) for view in views]
        begin = 0
        while begin < len(views):
            arena = self._arena_of(views[begin], *places[begin])
            if arena is None:
                piece = self._staged(begin, len(views), places[begin][1])
            else:
                end = begin + 1
                while end < len(views) and _within(arena, *places[end]):
                    end += 1
                runs = [(address - arena.base, nbytes) for address, nbytes in places[begin:end]]
                piece = Piece(arena.pages, range(begin, end), runs, None)
            yield piece
            begin = piece.numbers.stop

    def close(self) -> None:
        for arena in self._arenas:
            arena.pages.close()
        for staging in self._staging.values():
            staging.pages.close()

    def _arena_of(self, view: memoryview, address: int, nbytes: int) -> _Arena | None:
        for arena in self._arenas:
            if _within(arena, address, nbytes):
                return arena
        if self._private:
            return None
        try:
            with memory_of(view) as place:
                pages = self._opened(HostPool(os.dup(place.descriptor), place.nbytes))
                self._arenas.append(_Arena(place.base, place.nbytes, pages))
                return self._arenas[-1]
        except BadRequest as problem:
            self._private = True
            given = "--no-l1-use-lazy" in sys.argv or "--shm-name" in sys.argv or any(
                word.startswith("--shm-name=") for word in sys.argv)
            advice = ("LMCache was started with --no-l1-use-lazy or --shm-name, and its first level is not shared memory all the same"
                      if given else "LMCache's --no-l1-use-lazy avoids it")
            self._log.warning("objects are copied once more: %s. %s", problem, advice)
            return None

    def _opened(self, pool: HostPool) -> Pages:
        pages = self._open_pages(pool)
        pages.await_attempt()
        return pages

    def _staged(self, begin: int, end: int, nbytes: int) -> Piece:
        if nbytes not in self._staging:
            rows = max(1, STAGING_BYTES // nbytes)
            memory = Memory(rows * nbytes, name="terrace-lmcache")
            pool = HostPool(os.dup(memory.fileno()), memory.nbytes)
            self._staging[nbytes] = _Staging(memory, rows, self._opened(pool))
        staging = self._staging[nbytes]
        numbers = range(begin, min(end, begin + staging.rows))
        runs = [(row * nbytes, nbytes) for row in range(len(numbers))]
        return Piece(staging.pages, numbers, runs, memoryview(staging.memory))


def _within(arena: _Arena, address: int, nbytes: int) -> bool:
    return arena.base <= address and address + nbytes <= arena.base + arena.nbytes

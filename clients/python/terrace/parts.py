"""Reads under a lease part by part if host memory has no room for all of it at once."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._libterrace import BytesLike, Located


class Parts:
    """The chunks to read next, and their destinations: `while parts.more: parts.copy(read(...))`."""

    def __init__(self, into: Iterable[BytesLike], first_chunk: int, chunks: int, timeout: float | None) -> None:
        self._into = list(into)
        self._per_chunk = len(self._into) // chunks if chunks else 0
        self._until = None if timeout is None else time.monotonic() + timeout
        self.first_chunk = first_chunk
        self.chunks = chunks
        self.give_up_earlier = False  #: true from the second part on
        self.nbytes = 0
        self.more = True

    @property
    def timeout(self) -> float | None:
        return None if self._until is None else max(0.0, self._until - time.monotonic())

    def copy(self, located: Located) -> None:
        """Raises BadRequest if the destinations do not match the objects' number and sizes."""
        came = len(located)
        part = self._per_chunk > 0 and 0 < came < len(self._into) and came % self._per_chunk == 0
        self.nbytes += located.copy_into(self._into[:came] if part or came == 0 else self._into)
        self.more = part
        if part:
            self._into = self._into[came:]
            self.first_chunk += came // self._per_chunk
            self.chunks -= came // self._per_chunk
            self.give_up_earlier = True

"""Moves an engine's KV between its blocks and staging memory that the daemon knows. Each kind of memory has its own
mover."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol


class KvMover(Protocol):
    """A mover of KV. There is one block per chunk; chunk i lies in slot `slot + i`."""

    def rows(self, blocks: Sequence[int]) -> Any:
        """Returns the blocks in the form that the copies below take: its length is their number, and `[:n]` are the
        first n of them."""

    def gather(self, rows: Sequence[Any], slot: int) -> None:
        """Copies all layers' KV from each group's blocks to slots."""

    def scatter(self, layer: str, rows: Any, slot: int) -> None:
        """Copies a layer's KV from slots to blocks."""


class Mark(Protocol):
    """A place in a stream."""

    @property
    def passed(self) -> bool: ...
    def wait(self) -> None: ...


class StreamMover(KvMover, Protocol):
    """A mover of KV in memory of a GPU: it queues its copies in its own stream, and the methods return at once."""

    @property
    def stream(self) -> int:
        """The stream as PyTorch's `cuda_stream`."""

    def follow(self) -> None:
        """Makes the stream wait for what the engine has queued in its own."""

    def lead(self) -> None:
        """Makes everything that the engine queues from now on wait for the copies."""

    def mark(self) -> Mark:
        """Returns a mark behind everything queued in the stream."""

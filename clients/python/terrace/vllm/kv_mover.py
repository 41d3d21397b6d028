"""What moves an engine's KV between its blocks and staging memory that the daemon knows. Each kind of memory has its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol


class KvMover(Protocol):
    """Blocks are one for each chunk; chunk i lies in slot `slot + i`."""

    def rows(self, blocks: Sequence[int]) -> Any:
        """The blocks as the copies below take them: its length is their number, and `[:n]` are the first of them."""

    def gather(self, rows: Sequence[Any], slot: int) -> None:
        """All layers' KV into slots, out of each group's blocks."""

    def scatter(self, layer: str, rows: Any, slot: int) -> None:
        """A layer's KV out of slots."""


class Mark(Protocol):
    """A place in a stream."""

    @property
    def passed(self) -> bool: ...
    def wait(self) -> None: ...


class StreamMover(KvMover, Protocol):
    """Of KV in memory of a GPU: its copies are put into a stream of its own, and the methods return at once."""

    @property
    def stream(self) -> int:
        """As PyTorch's `cuda_stream`."""

    def follow(self) -> None:
        """The stream waits for what the engine has put into its own."""

    def lead(self) -> None:
        """What the engine puts into its stream from now on waits for the copies."""

    def mark(self) -> Mark:
        """Behind everything that was put into the stream."""

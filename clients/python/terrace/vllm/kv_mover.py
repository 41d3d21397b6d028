"""What moves an engine's KV between its blocks and staging memory that the daemon knows. Each kind of memory has its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from .orders import Blocks


class KvMover(Protocol):
    """Blocks are those of each group, one for each chunk; chunk i lies in slot `slot + i`."""

    def gather(self, blocks: Blocks, slot: int) -> None:
        """All layers' KV into slots, whose bytes may be read when it returns. The blocks may be written again then, or when
        `flush` says so."""

    def scatter(self, layer: str, blocks: Sequence[int], slot: int) -> None:
        """A layer's KV out of slots. What the engine runs afterwards sees it."""

    def flush(self) -> None:
        """Returns when no earlier copy touches a block any more."""

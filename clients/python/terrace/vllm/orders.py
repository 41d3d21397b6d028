"""What the connector's scheduler side tells its workers to move, and what they tell it of that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

NULL_BLOCK = 0  # vLLM's, where a group needs no KV

Blocks = Sequence[Sequence[int]]  # of each group, one for each chunk


@dataclass(frozen=True, slots=True)
class LoadOrder:
    number: int
    request: str
    lease: bytes
    first_chunk: int  #: of the lease
    blocks: Blocks
    layered: bool  #: in this step, layer by layer; otherwise between steps

    @property
    def chunks(self) -> int:
        return len(self.blocks[0])


@dataclass(frozen=True, slots=True)
class StoreOrder:
    request: str
    parent: bytes  #: the digest of the chunk before; empty: these are the first
    digests: Sequence[bytes]
    blocks: Blocks
    tags: Sequence[str] = ()


@dataclass(slots=True)
class Report:
    """Of one worker, or of several together: of a step, in which who reports nothing is connected."""

    ended: dict[int, int] = field(default_factory=dict)  #: by the number of a load: workers that need its lease no longer
    failed: set[str] = field(default_factory=set)  #: requests whose KV did not arrive
    failures: int = 0  #: steps so far in which a layered load failed
    unusable: bool = False  #: a worker can move nothing
    away: bool = False  #: a worker has no connection to the daemon, so it fails all loads
    changed: bool = False  #: which was not so, or was so, when that worker reported last

    def add(self, other: Report) -> Report:
        for number, workers in other.ended.items():
            self.ended[number] = self.ended.get(number, 0) + workers
        self.failed |= other.failed
        self.failures = max(self.failures, other.failures)
        self.unusable = self.unusable or other.unusable
        self.away = self.away or other.away
        self.changed = self.changed or other.changed
        return self

    def __bool__(self) -> bool:
        return bool(self.ended or self.failed or self.unusable or self.away or self.changed)

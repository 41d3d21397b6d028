"""The orders of the connector's scheduler side to its workers, and the workers' reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..spaces import FinishReason

NULL_BLOCK = 0  # vLLM's block for places where a group needs no KV

Blocks = Sequence[Sequence[int]]  # the blocks of each group, one for each chunk


@dataclass(frozen=True, slots=True)
class LoadOrder:
    number: int
    request: str
    lease: bytes
    first_chunk: int  #: first chunk in the lease
    blocks: Blocks
    layered: bool  #: loaded in this step, layer by layer; otherwise between steps
    inference: int = 0  #: number of the request for the daemon's policies; 0: it has none

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
    inference: int = 0  #: as of a LoadOrder


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of a request that is a turn of a conversation. Reported once what the request has stored is in the daemon, for
    what comes later would not belong to it."""

    request: str
    inference: int
    reason: FinishReason
    output_tokens: int
    closed: bool  #: there is no further turn
    think_seconds: float | None  #: expected until the next turn


@dataclass(slots=True)
class Report:
    """A worker's report on a step, or that of several together. A worker that reports nothing is connected."""

    ended: dict[int, int] = field(default_factory=dict)  #: by number of the load: how many workers no longer need its
                                                         #: lease
    failed: set[str] = field(default_factory=set)  #: requests whose KV did not arrive
    failures: int = 0  #: number of steps so far in which a layered load failed
    unusable: bool = False  #: a worker can move nothing
    away: bool = False  #: a worker has no connection to the daemon, so it fails all loads
    keeps: bool = False  #: a worker has KV to copy from its blocks when there is room, so more steps are needed
    changed: bool = False  #: `away` or `keeps` differs from that worker's last report
    not_stored: set[str] = field(default_factory=set)  #: requests of which chunks were not stored

    def add(self, other: Report) -> Report:
        for number, workers in other.ended.items():
            self.ended[number] = self.ended.get(number, 0) + workers
        self.failed |= other.failed
        self.not_stored |= other.not_stored
        self.failures = max(self.failures, other.failures)
        self.unusable = self.unusable or other.unusable
        self.away = self.away or other.away
        self.keeps = self.keeps or other.keeps
        self.changed = self.changed or other.changed
        return self

    def __bool__(self) -> bool:
        return bool(self.ended or self.failed or self.not_stored or self.unusable or self.away or self.keeps or self.changed)

"""What the servers that are compared have in common."""

from __future__ import annotations

import contextlib
import os
import random
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

CHUNK_TOKENS = 256
BLOCK_TOKENS = 16
LAYERS = 4
DISK_BYTES = 4 << 30


@dataclass(frozen=True)
class Shape:
    """KV of a client in blocks: per layer [2, blocks, 16 tokens, heads, head size] of bfloat16."""

    heads: int
    head_size: int
    blocks: int

    @property
    def piece_bytes(self) -> int:
        """Of K or V of a block in a layer: what lies together."""
        return BLOCK_TOKENS * self.heads * self.head_size * 2

    @property
    def chunk_bytes(self) -> int:
        return 2 * LAYERS * self.piece_bytes * (CHUNK_TOKENS // BLOCK_TOKENS)


SMALL = Shape(2, 64, 2304)  # chunks of 512 KiB
LARGE = Shape(8, 128, 2304)  # chunks of 4 MiB


def tokens_of(prompt: int, chunks: int) -> list[int]:
    source = random.Random(prompt)
    return [source.randrange(128_256) for _ in range(chunks * CHUNK_TOKENS)]


def processor_seconds(pid: int) -> float:
    """Of the threads that a process has."""
    nanoseconds = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{thread}/schedstat") as file:
            nanoseconds += int(file.read().split()[0])
    return nanoseconds / 1e9


class Peer(ABC):
    """A server and a client of it, with KV of one shape; made with a folder, it has a disk of DISK_BYTES there."""

    name: str
    pid: int  #: of the server

    @abstractmethod
    def request(self, tokens: list[int]) -> Any:
        """For one use, made ahead of time: an engine has its tokens already. They are whole chunks."""

    def request_of_vllm(self, tokens: list[int]) -> Any:
        """What the server's connector in vLLM sends for them."""
        return self.request(tokens)

    @abstractmethod
    def store(self, request: Any) -> bool:
        """Whether the server says that it has them."""

    @abstractmethod
    def lookup(self, request: Any) -> int:
        """Leading chunks that are there, locked or leased until `release` or `load`. The tokens are sent."""

    @abstractmethod
    def release(self) -> None:
        """What the last lookup has found."""

    @abstractmethod
    def load(self) -> None:
        """All that the last lookup has found, into the client's KV; and releases it."""

    @abstractmethod
    def forget(self) -> None:
        """Everything that is in memory, and of a server without a disk all."""

    @abstractmethod
    def await_disk(self, prompts: int, chunks: int) -> None:
        """Returns when so many prompts of so many chunks are on disk: all that were stored."""

    @abstractmethod
    def forget_memory(self, request: Any) -> None:
        """What is on disk stays."""

    @abstractmethod
    def close(self) -> None: ...

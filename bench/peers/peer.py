"""The common interface of the compared servers."""

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
    """A client's KV in blocks: per layer [2, blocks, 16 tokens, heads, head size] of bfloat16."""

    heads: int
    head_size: int
    blocks: int

    @property
    def piece_bytes(self) -> int:
        """Bytes of K or V of a block in a layer, which are contiguous."""
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
    """Returns the processor time of all threads of a process."""
    nanoseconds = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{thread}/schedstat") as file:
            nanoseconds += int(file.read().split()[0])
    return nanoseconds / 1e9


class Peer(ABC):
    """A server and its client, with KV of one shape. If made with a folder, it has a disk of DISK_BYTES
    there."""

    name: str
    pid: int  # : process of the server

    @abstractmethod
    def request(self, tokens: list[int]) -> Any:
        """Makes a request in advance, for one use: an engine has its tokens already. They are whole chunks."""

    def request_of_vllm(self, tokens: list[int]) -> Any:
        """Makes the request that the server's connector in vLLM sends for these tokens."""
        return self.request(tokens)

    @abstractmethod
    def store(self, request: Any) -> bool:
        """Stores the chunks. Returns when the server says that it has them."""

    @abstractmethod
    def lookup(self, request: Any) -> int:
        """Returns the number of leading chunks that are present, and locks or leases them until `release` or
        `load`. Sends the tokens."""

    @abstractmethod
    def release(self) -> None:
        """Releases what the last lookup has found."""

    @abstractmethod
    def load(self) -> None:
        """Loads all that the last lookup has found into the client's KV, and releases it."""

    @abstractmethod
    def forget(self) -> None:
        """Forgets everything in memory, and for a server without a disk everything."""

    @abstractmethod
    def await_disk(self, prompts: int, chunks: int) -> None:
        """Returns when this many prompts of this many chunks, all that were stored, are on disk."""

    @abstractmethod
    def forget_memory(self, request: Any) -> None:
        """Forgets what is in memory; the disk keeps everything."""

    @abstractmethod
    def close(self) -> None: ...

"""The common interface of the compared servers."""

from __future__ import annotations

import random
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy

CHUNK_TOKENS = 256
BLOCK_TOKENS = 16
LAYERS = 4
DISK_BYTES = 4 << 30
CHUNKS = 128  # 32,768 tokens

Figures = dict[str, float]


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
    """Returns the processor time of all threads that a process has, or has had."""
    return time.clock_gettime(~pid << 3 | 2)  # clock_getcpuclockid(3)


Words = numpy.ndarray[Any, numpy.dtype[numpy.uint64]]


class Contents:
    """KV whose blocks all differ, for prompts with a number. Few bytes are written for each prompt, so that one can be
    stored directly after the other."""

    def __init__(self, shape: Shape) -> None:
        source = numpy.random.default_rng(1)
        self._blocks = source.integers(0, 1 << 63, (shape.blocks, shape.piece_bytes // 8), numpy.uint64)

    def write(self, kv: list[Words]) -> None:
        for plane in kv:
            plane[:] = self._blocks

    def number(self, kv: list[Words], prompt: int, chunks: int) -> None:
        for at, plane in enumerate(kv):
            plane[: _blocks_of(chunks), 0] = prompt << 8 | at

    def equal_chunks(self, kv: list[Words], prompt: int, chunks: int) -> int:
        """Returns the number of chunks that have all bytes of this prompt."""
        blocks = _blocks_of(chunks)
        equal = numpy.ones(blocks, bool)
        for at, plane in enumerate(kv):
            equal &= (plane[:blocks, 0] == prompt << 8 | at) & (plane[:blocks, 1:] == self._blocks[:blocks, 1:]).all(axis=1)
        return int(equal.reshape(chunks, -1).all(axis=1).sum())


def wipe(kv: list[Words]) -> None:
    for plane in kv:
        plane[:] = 0


def _blocks_of(chunks: int) -> int:
    return chunks * (CHUNK_TOKENS // BLOCK_TOKENS)


class Peer(ABC):
    """A server and its client, with KV of one shape. If made with a folder, it has a disk of DISK_BYTES
    there; if made with a store, it has that below its memory, and writes everything to it."""

    name: str
    pid: int  # : process of the server
    values_per_chunk = 1  # : in a store

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

    def count(self, request: Any) -> int:
        """Returns the number of leading chunks that are present, and locks nothing. A server that cannot answer before
        it has brought them to its memory does so."""
        found = self.lookup(request)
        self.release()
        return found

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
        """Forgets what is in memory; the disk or the store keeps everything."""

    @abstractmethod
    def kv(self) -> list[Words]:
        """Returns the client's KV: K and V of each layer, by block."""

    @abstractmethod
    def close(self) -> None: ...

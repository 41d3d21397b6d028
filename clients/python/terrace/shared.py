"""Finds the shared memory that contains an object's bytes, so that the daemon can use it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ._libterrace import address_of
from .errors import BadRequest


@dataclass(frozen=True)
class Place:
    """A shared-memory file that is mapped here."""

    descriptor: int
    nbytes: int  #: size of the whole file
    base: int  #: the address that the file's first byte has, or would have


@dataclass(frozen=True)
class _Mapping:
    begin: int
    end: int
    offset: int
    device: int
    inode: int
    path: str


@contextmanager
def memory_of(thing: Any) -> Iterator[Place]:
    """Yields the memory of a descriptor, of an object with `fileno()`, or of any object whose bytes lie in shared
    memory: multiprocessing's SharedMemory or its buffer, a NumPy array over it, a tensor after `share_memory_()`,
    an mmap. It is open while the block runs."""
    if isinstance(thing, int):
        yield Place(thing, os.fstat(thing).st_size, 0)
        return
    buffer = getattr(thing, "buf", thing)  # a multiprocessing.shared_memory.SharedMemory has its bytes in `buf`
    address, nbytes = address_of(buffer)
    mapping = _mapping_at(address, nbytes)
    base = mapping.begin - mapping.offset
    descriptor = _open(mapping)
    try:
        yield Place(descriptor, os.fstat(descriptor).st_size, base)
    finally:
        os.close(descriptor)


def _mapping_at(address: int, nbytes: int) -> _Mapping:
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        for line in maps:
            fields = line.rstrip("\n").split(maxsplit=5)
            begin, end = (int(number, 16) for number in fields[0].split("-"))
            if not begin <= address < end:
                continue
            if fields[1][3] != "s" or fields[4] == "0" or address + nbytes > end:
                break
            major, minor = (int(number, 16) for number in fields[3].split(":"))
            path = fields[5] if len(fields) > 5 else ""
            return _Mapping(begin, end, int(fields[2], 16), os.makedev(major, minor), int(fields[4]), path)
    raise BadRequest(
        "expected shared memory, got memory of this process alone: use terrace.Memory, a tensor after share_memory_(), or"
        " multiprocessing's SharedMemory"
    )


def _open(mapping: _Mapping) -> int:
    """Opens the file by its path if it still has one, otherwise through a descriptor that this process has of it."""
    candidates = [mapping.path] if mapping.path.startswith("/") else []
    candidates += [f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd")]
    for path in candidates:
        try:
            found = os.stat(path)
            if (found.st_dev, found.st_ino) == (mapping.device, mapping.inode):
                return os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            continue
    raise BadRequest(f"expected shared memory that can be opened, got {mapping.path!r} without a path or a descriptor")

"""Stores for the remote tier of the daemon (docs/remote.md, "Plugins").

A plugin is a module with a class `Store`. `[[remote]]` names the module, with options for the class:

    address = "plugin://fs?path=/mnt/kv&bytes=1TiB"

The daemon runs it as `python3 -m terrace.remote fs "path=/mnt/kv&bytes=1TiB"`, three times: for questions, reads and writes. Each process
has one call at a time, and is killed if the call takes too long.
"""

import ctypes
from collections.abc import Sequence
from typing import Protocol

ABSENT = -1


class NoRoom(Exception):
    """The store takes no more, or may not be written to. The daemon tells the operator, and goes on reading."""


class Store(Protocol):
    """What a plugin has to have. `__init__` takes its options as keywords, each a text; what it raises is shown to the operator.

    Keys are printable ASCII without spaces, of at most 512 bytes, and contain "/", "{" and "}". Values have at most 8 MiB and 256 bytes;
    the daemon verifies them. A method `attach(buffer)`, if there is one, is called once with the memory that all buffers are parts of.
    What a method raises is a miss for all its keys; after several in a row the process is started again.
    """

    def exists(self, keys: Sequence[str]) -> Sequence[bool]: ...

    def get_into(self, keys: Sequence[str], buffers: Sequence[memoryview]) -> Sequence[int]:
        """Writes each value to the begin of its buffer; returns their lengths, and -1 for one that is not there.

        One that is longer than its buffer is not written, and its length is returned.
        """
        ...

    def put_from(self, keys: Sequence[str], buffers: Sequence[memoryview]) -> None:
        """Stores copies of all of them, or raises. A value is there whole or not at all, also after a crash."""
        ...

    def remove(self, keys: Sequence[str]) -> None:
        """One that is not there is no error."""
        ...


def address_of(buffer: memoryview) -> int:
    """For libraries that take addresses. It holds as long as the process lives."""
    return ctypes.addressof(ctypes.c_char.from_buffer(buffer))


def parse_bytes(text: str) -> int:
    """Returns the bytes of a text such as "64GiB". Raises ValueError."""
    units = {"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
    digits = text.rstrip("BKMGTi")
    unit = text[len(digits) :]
    if not digits.isascii() or not digits.isdigit() or unit not in units:
        raise ValueError(f'"{text}": expected bytes such as 64GiB (B, KiB, MiB, GiB, TiB)')
    return int(digits) * units[unit]

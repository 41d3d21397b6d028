"""Damages what a daemon that does not run has on disk."""

from __future__ import annotations

import struct
from pathlib import Path


def damage(extents: Path) -> None:
    """A byte of each page that holds objects."""
    with open(extents, "r+b") as file:
        (begin,) = struct.unpack_from("<Q", file.read(4096), 192)  # docs/disk-format.md
        file.seek(begin)
        content = bytearray(file.read())
        for page in range(0, len(content), 4096):
            if any(content[page:page + 4096]):
                content[page + 100] ^= 0xFF
        file.seek(begin)
        file.write(content)

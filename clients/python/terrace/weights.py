"""Which weights a model has: part of what must match for KV to be interchangeable."""

from __future__ import annotations

import hashlib
import json
import os


def revision_of(model: str) -> str:
    """Of a model in a folder: its files' names, sizes and times, so that other weights at the same path share nothing. Empty
    for a name, which does not tell: then the user names a revision."""
    if not os.path.isdir(model):
        return ""
    files = sorted(
        (entry.name, entry.stat().st_size, entry.stat().st_mtime_ns) for entry in os.scandir(model) if entry.is_file()
    )
    return hashlib.sha256(json.dumps(files).encode()).hexdigest()[:32]

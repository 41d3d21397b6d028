"""Identifies a model's weights by its files: part of what must match for KV to be interchangeable. A name says
nothing, because it may stand for other weights tomorrow."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import struct
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

CONTENT_BYTES = 4 << 20  # smaller files are read as a whole
# Bytes read at either end of a larger file: a .bin has its members' checksums at its end, a .gguf its header in front.
EDGE_BYTES = 64 << 10
HEADER_BYTES = 100 << 20  # largest header of a safetensors file, according to its format
MODEL_BYTES = 256  # limit of a space's `model`

_WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".gguf", ".ckpt", ".npz", ".npcache")
# files that do not affect the KV of given tokens
_IRRELEVANT = re.compile(
    r"\..*|.*\.(md|jinja|txt|model|tiktoken|png|jpg|pdf|lock|log|tmp|incomplete)|"
    r"(tokenizer|vocab|merges|special_tokens|added_tokens|chat_template|generation_config|license|notice|readme|trainer_state).*",
    re.IGNORECASE,
)
_BLOB = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


class Unidentified(Exception):
    """Raised with the reason why it cannot be said which weights these are."""


@dataclass(frozen=True)
class Identity:
    digest: str  #: digest of the files
    changed: int  #: time when one of them last changed, in nanoseconds; 0: they are named after their content


@dataclass(frozen=True)
class Weights:
    """Identifies the KV that an engine computes for given tokens."""

    revision: str  #: revision of the space: from the files, from the user, or of this engine alone
    factors: dict[str, Any]  #: factors of the engine's configuration
    private: str = ""  #: the reason why no other engine may have its KV


# By path: size, times and inode of a file, and what was read of it then.
_known: dict[str, tuple[tuple[int, ...], list[object]]] = {}


def identity_of(
    model: str, revision: str | None = None, cache: str | None = None, *, needs_weights: bool = True
) -> Identity:
    """Identifies a folder, a file, or a name in the cache of Hugging Face (`cache`: another folder than its usual
    one). Reads the small files, and headers and ends of the large ones; the result is remembered until a file
    changes. Raises Unidentified."""
    place = place_of(model, revision, cache)
    try:
        files = sorted(_files_of(place))
        if needs_weights and not any(name.lower().endswith(_WEIGHTS) for name, _ in files):
            raise Unidentified(f"expected files of weights ({', '.join(_WEIGHTS)}) in {_shown(place)}, found none")
        described, changed = [], 0
        for name, path in files:
            told, when = _describe(path)
            described.append([name, *told])
            changed = max(changed, when)
    except OSError as problem:
        raise Unidentified(f"{_shown(place)} cannot be read: {problem.strerror}") from problem
    return Identity(hashlib.sha256(json.dumps(described).encode()).hexdigest()[:32], changed)


def loaded_identity_of(model: str, revision: str | None = None, cache: str | None = None, *, needs_weights: bool = True) -> Identity:
    """Identifies files that this process has loaded at some time since its start. Raises Unidentified if they have
    changed since then."""
    found = identity_of(model, revision, cache, needs_weights=needs_weights)
    if found.changed >= process_started():
        raise Unidentified(f"files of {_shown(model)} have changed since the engine was started, which may have loaded those before")
    return found


def process_started() -> int:
    """Returns when the process was started, in nanoseconds since 1970."""
    with open("/proc/self/stat") as status:
        ticks = int(status.read().rpartition(")")[2].split()[19])
    booted = time.time_ns() - time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    return booted + ticks * 10**9 // os.sysconf("SC_CLK_TCK")


def place_of(model: str, revision: str | None = None, cache: str | None = None) -> str:
    """Returns the folder or the file of a model. Raises Unidentified for a name without local files."""
    if os.path.exists(model):
        return model
    hub = os.path.join(cache or _hub_cache(), "models--" + model.replace("/", "--"))
    wanted = revision or "main"
    snapshot = os.path.join(hub, "snapshots", wanted)
    try:
        if not os.path.isdir(snapshot):
            with open(os.path.join(hub, "refs", wanted)) as commit:
                snapshot = os.path.join(hub, "snapshots", commit.read().strip())
    except OSError:
        pass
    if not model or not os.path.isdir(snapshot):
        raise Unidentified(f"{_shown(model) or 'the model'} has no files on this machine that could be looked at")
    return snapshot


def process_identity() -> str:
    """Returns an identity that no other process has."""
    return f"{_PROCESS}-{os.getpid()}"  # includes the process id, because processes fork


_PROCESS = uuid.uuid4().hex


def model_name(model: str) -> str:
    """Shortens a model's name to what a space can have."""
    raw = os.fsencode(model)
    try:
        raw.decode()
    except UnicodeDecodeError:
        return hashlib.sha256(raw).hexdigest()
    return model if len(raw) <= MODEL_BYTES else hashlib.sha256(raw).hexdigest()


def _hub_cache() -> str:
    given = os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE")
    if given:
        return given
    home = os.environ.get("HF_HOME")
    if not home:
        home = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "huggingface")
    return os.path.join(home, "hub")


def _shown(path: str) -> str:
    return path.encode(errors="backslashreplace").decode()


def _files_of(place: str) -> Iterator[tuple[str, str]]:
    """Returns names and paths of the files that affect KV."""
    if not os.path.isdir(place):
        yield os.path.basename(place), place
        return
    for entry in os.scandir(place):
        if not entry.is_file():
            continue
        if entry.name.lower().endswith(_WEIGHTS) or not _IRRELEVANT.fullmatch(entry.name):
            yield entry.name, entry.path


def _describe(path: str) -> tuple[list[object], int]:
    """Returns what a file says about its content, and when it changed."""
    real = os.path.realpath(path)
    folder, blob = os.path.split(real)
    if os.path.basename(folder) == "blobs" and _BLOB.fullmatch(blob):
        return [blob], 0  # Hugging Face's cache names files by the hash of their content
    with open(real, "rb", opener=_open_without_waiting) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise Unidentified(f"expected a file, got something else at {_shown(path)}")
        state = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_dev)
        known = _known.get(real)
        if known is None or known[0] != state:
            _known[real] = known = (state, _read(file.fileno(), real, status))
    return known[1], max(status.st_mtime_ns, status.st_ctime_ns)


def _open_without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)  # without O_NONBLOCK a pipe would wait for a writer


def _read(descriptor: int, path: str, status: os.stat_result) -> list[object]:
    size = status.st_size
    if size <= CONTENT_BYTES:
        return [size, _digest(descriptor, [(0, size)])]
    front = EDGE_BYTES
    if path.endswith(".safetensors"):
        (header,) = struct.unpack("<Q", os.pread(descriptor, 8, 0))
        front = min(8 + header, HEADER_BYTES, size)
    return [size, status.st_mtime_ns, _digest(descriptor, [(0, front), (size - EDGE_BYTES, EDGE_BYTES)])]


def _digest(descriptor: int, pieces: list[tuple[int, int]]) -> str:
    digest = hashlib.sha256()
    for begin, count in pieces:
        while count > 0 and (came := os.pread(descriptor, min(count, 1 << 20), begin)):
            digest.update(came)
            begin, count = begin + len(came), count - len(came)
    return digest.hexdigest()

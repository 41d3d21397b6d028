"""A folder of a file system that the machines share, such as NFS, Lustre or CephFS: `plugin://fs?path=/mnt/kv&bytes=1TiB`.

    path    an absolute folder, which has to be there
    bytes   what its values may take together, at least 64MiB; the oldest ones are removed first. Each machine keeps to it as far as it sees

A value is a file, `<two digits>/<name>`, which is written under another name, closed and then renamed: it is there whole or not at all, also
for other clients of NFS, which sees what is closed. Behind the value are 12 bytes, its CRC-32 and its length; what does not fit is removed.
Values of up to 4 KiB, such as tokens, need no room and are not removed for it. A value that cannot be read is not there. If another folder
is at `path` than at the start, as when it is no longer mounted, nothing is read or written.
"""

import contextlib
import errno
import hashlib
import itertools
import os
import secrets
import struct
import threading
import time
import zlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from . import ABSENT, NoRoom, parse_bytes

_END = struct.Struct("<IQ")
_PREFIX = "v-"  # of values; others are being written
_SMALL = 4 << 10
_UNSAFE = {ord(c): f"%{ord(c):02x}" for c in '%/\\{}:*?"<>|'}
_ABANDONED_S = 3600  # a file that is being written so long was left behind by a crash
_WAIT_S = 1.0  # that a write waits for room
_numbers = itertools.count()
_process = secrets.token_hex(8)  # in the names of its files: machines may have one name, and processes one number
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM)
_GONE = (errno.ENOENT, errno.ESTALE)
BYTES_MIN = 64 << 20  # more than what one call writes


def escaped(key: str) -> str:
    """A name of a file that is one key's alone; file systems take up to 255 bytes."""
    name = _PREFIX + key.translate(_UNSAFE)
    return name if len(name) <= 255 else _PREFIX + hashlib.sha256(key.encode()).hexdigest()


class _Room:
    """What may still be written. A thread counts what is there and removes the oldest, because that may take long."""

    def __init__(self, path: str, limit: int) -> None:
        self._path = path
        self._limit = limit
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._left: int | None = None  # None: not counted yet
        self._taken = 0  # since it was counted
        self._writing = 0  # of these, what may not be in files yet
        self._wanted = 0  # bytes, for which the oldest are to be removed; 0: nothing is to be done
        self._failure = ""

    @contextlib.contextmanager
    def taken(self, bytes_more: int) -> Iterator[None]:
        """For a write, one at a time. Raises NoRoom."""
        if bytes_more:
            self._take(bytes_more)
        try:
            yield
        finally:
            with self._changed:
                self._writing = 0

    def _take(self, bytes_more: int) -> None:
        if bytes_more > self._limit:
            raise NoRoom(f"{bytes_more} bytes are more than {self._path} may have: {self._limit}")
        with self._changed:
            if self._left is None and self._thread is not None and self._taken + bytes_more <= self._limit // 100:
                self._taken += bytes_more  # counting many files takes long
                self._writing = bytes_more
                return
            lacking = self._left is None or self._left < bytes_more
            if lacking or self._taken > self._limit // 100:  # others write as well, so it is counted again
                self._wanted = bytes_more
                if self._thread is None:
                    self._thread = threading.Thread(target=self._work, daemon=True)
                    self._thread.start()
                self._changed.notify_all()
            if lacking:
                self._changed.wait_for(lambda: self._wanted == 0, _WAIT_S)
            if self._left is None and not self._failure:
                raise NoRoom(f"what is in {self._path} is still being counted")
            if self._left is None or self._left < bytes_more:
                raise NoRoom(self._failure or f"{self._path} is full: {self._limit} bytes; the oldest values are being removed")
            self._left -= bytes_more
            self._taken += bytes_more
            self._writing = bytes_more

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._wanted != 0)
                wanted, self._taken = self._wanted, self._writing
            try:
                left, failure = self._limit - self._swept(wanted), ""
            except OSError as why:
                left, failure = 0, str(why)
            with self._changed:
                self._left = max(left - self._taken, 0)
                self._failure = failure
                self._wanted = 0
                self._changed.notify_all()

    def _swept(self, wanted: int) -> int:
        """Removes the oldest until `wanted` bytes fit, and some more. Returns the bytes that are there."""
        found = sorted(_values(self._path))
        there = sum(size for _, size, _ in found)
        if there + wanted <= self._limit:
            return there
        for _, size, file in found:
            if size > _SMALL and _remove(file):
                there -= size
            if there + wanted <= self._limit - self._limit // 50:
                break
        return there


def _values(path: str) -> list[tuple[int, int, str]]:
    """Time, size and path of all values. Files that a crash has left behind are removed."""
    found = []
    for folder in os.scandir(path):
        if len(folder.name) != 2 or not folder.is_dir(follow_symlinks=False):
            continue
        for entry in os.scandir(folder.path):
            try:
                about = entry.stat(follow_symlinks=False)
            except OSError as failure:
                if failure.errno not in _GONE:
                    raise
                continue  # another machine has removed it
            if entry.name.startswith(_PREFIX):
                found.append((about.st_mtime_ns, about.st_size, entry.path))
            elif entry.name.startswith("w-") and time.time() - about.st_mtime > _ABANDONED_S:
                _remove(entry.path)
    return found


def _remove(file: str) -> bool:
    """Returns whether it is gone."""
    try:
        os.unlink(file)
    except OSError as failure:
        return failure.errno in _GONE
    return True


class _Found(NamedTuple):
    file: str
    descriptor: int  # -1: there is no value
    length: int
    fits: bool  # into the buffer


class Store:
    version = "1"

    def __init__(self, path: str = "", bytes: str = "1TiB") -> None:
        if parse_bytes(bytes) < BYTES_MIN:
            raise ValueError(f'bytes "{bytes}": expected at least {BYTES_MIN >> 20}MiB; all machines remove values beyond it')
        self._room = _Room(path, parse_bytes(bytes))
        if not os.path.isabs(path) or not os.path.isdir(path):
            raise ValueError(f'path "{path}": expected the absolute path of a folder that is there')
        self._path = path
        self._folder = self._identity()

    def _identity(self) -> tuple[int, int]:
        about = os.stat(self._path)
        return about.st_dev, about.st_ino

    def _check(self) -> None:
        if self._identity() != self._folder:
            raise NoRoom(f"{self._path} is another folder than at the start: is its file system still mounted?")

    def exists(self, keys: Sequence[str]) -> list[bool]:
        self._check()
        return [os.path.exists(self._file(key)) for key in keys]

    def get_into(self, keys: Sequence[str], buffers: Sequence[memoryview]) -> list[int]:
        self._check()
        with contextlib.ExitStack() as opened:
            found = [self._find(key, buffer, opened) for key, buffer in zip(keys, buffers, strict=True)]
            self._try_move([(one.descriptor, buffer[: one.length]) for one, buffer in zip(found, buffers, strict=True) if one.fits])
            return [self._checked(one, buffer) for one, buffer in zip(found, buffers, strict=True)]

    def _try_move(self, pieces: Sequence[tuple[int, memoryview]]) -> None:
        """Reads all values together, or, if that fails, those that can be read; the checksums of the others do not fit."""
        try:
            self._move(False, pieces)
        except OSError:
            for piece in pieces:
                with contextlib.suppress(OSError):
                    self._move(False, [piece])

    def put_from(self, keys: Sequence[str], buffers: Sequence[memoryview]) -> None:
        self._check()
        large = sum(len(buffer) + _END.size for buffer in buffers if len(buffer) + _END.size > _SMALL)
        with self._room.taken(large):
            self._write(keys, buffers)

    def _write(self, keys: Sequence[str], buffers: Sequence[memoryview]) -> None:
        written: list[tuple[int, str]] = []
        closed = 0
        try:
            for key in keys:
                written.append(self._create(self._file(key)))
            self._move(True, [(descriptor, buffer) for (descriptor, _), buffer in zip(written, buffers, strict=True)])
            for (descriptor, name), key, buffer in zip(written, keys, buffers, strict=True):
                end = _END.pack(zlib.crc32(buffer), len(buffer))
                if os.pwrite(descriptor, end, len(buffer)) != len(end):
                    raise OSError(errno.ENOSPC, "the file system has no room", name)
                closed += 1
                os.close(descriptor)  # NFS may say only now that there is no room
                os.rename(name, self._file(key))
        except OSError as failure:
            if failure.errno in _FULL:
                raise NoRoom(str(failure)) from failure
            raise
        finally:
            for descriptor, _ in written[closed:]:
                with contextlib.suppress(OSError):
                    os.close(descriptor)
            for _, name in written:
                _remove(name)  # what was not renamed

    def remove(self, keys: Sequence[str]) -> None:
        for key in keys:
            _remove(self._file(key))

    def _move(self, writes: bool, pieces: Sequence[tuple[int, memoryview]]) -> None:
        """Moves memory to the begin of each file, or back."""
        for descriptor, memory in pieces:
            moved = 0
            while moved < len(memory):
                part = memory[moved:]
                some = os.pwrite(descriptor, part, moved) if writes else os.preadv(descriptor, [part], moved)
                if some == 0:
                    break  # it has become shorter, and its checksum tells
                moved += some

    def _file(self, key: str) -> str:
        name = escaped(key)
        return os.path.join(self._path, f"{zlib.crc32(name.encode()) & 0xFF:02x}", name)

    def _find(self, key: str, buffer: memoryview, opened: contextlib.ExitStack) -> "_Found":
        file = self._file(key)
        try:
            descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
            opened.callback(os.close, descriptor)
            length = os.fstat(descriptor).st_size - _END.size
        except OSError:
            return _Found(file, -1, ABSENT, False)
        return _Found(file, descriptor, length, 0 <= length <= len(buffer))

    @staticmethod
    def _checked(found: "_Found", buffer: memoryview) -> int:
        if found.fits:
            try:
                end = os.pread(found.descriptor, _END.size, found.length)
            except OSError:
                return ABSENT
            if end == _END.pack(zlib.crc32(buffer[: found.length]), found.length):
                return found.length
        elif found.descriptor < 0 or found.length > len(buffer):
            return found.length
        _remove(found.file)
        return ABSENT

    @staticmethod
    def _create(file: str) -> tuple[int, str]:
        folder = os.path.dirname(file)
        name = os.path.join(folder, f"w-{_process}-{next(_numbers)}")
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            return os.open(name, flags, 0o600), name
        except FileNotFoundError:
            with contextlib.suppress(FileExistsError):
                os.mkdir(folder, mode=0o700)
            return os.open(name, flags, 0o600), name

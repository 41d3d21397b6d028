"""The process of a plugin: finds it, says hello to the daemon, and answers its requests.

Frames are described in src/remote/plugin_frames.hpp. Descriptor 3 is a socket to the daemon, 4 the buffer for values.
"""

import importlib
import mmap
import os
import signal
import socket
import struct
import sys
import traceback
import urllib.parse
from collections.abc import Callable, Sequence
from typing import NoReturn

from . import NoRoom, Store

SOCKET, BUFFER = 3, 4
FRAME_BYTES = 64 << 10
TEXT_BYTES = 1024
MAGIC = b"TPL1"
HELLO, EXISTS, GET, PUT, MAKE, REMOVE = range(1, 7)
FAILED, NO_ROOM = -2, -3
_REQUEST = struct.Struct("<4sBBHQ")
_ITEM = struct.Struct("<HHII")
_ANSWER = struct.Struct("<4sBBHQH6x")
_METHODS = ("exists", "get_into", "put_from", "remove")


class Unusable(Exception):
    """The plugin cannot be used; the text is for the operator."""


def encode_answer(verb: int, number: int, numbers: Sequence[int], text: str = "", failed: bool = False) -> bytes:
    said = text.encode("utf-8", "replace")[:TEXT_BYTES].decode("utf-8", "ignore").encode()
    head = _ANSWER.pack(MAGIC, verb, failed, len(numbers), number, len(said))
    return head + struct.pack(f"<{len(numbers)}q", *numbers) + said


def decode_request(frame: bytes) -> tuple[int, int, list[str], list[tuple[int, int]]]:
    """Returns verb, number, keys, and where their values are in the buffer."""
    magic, verb, _, items, number = _REQUEST.unpack_from(frame)
    if magic != MAGIC:
        raise Unusable("the daemon speaks another version; install the Python package of its version")
    at = _REQUEST.size
    keys, places = [], []
    for _ in range(items):
        key_bytes, _, offset, value_bytes = _ITEM.unpack_from(frame, at)
        at += _ITEM.size
        keys.append(frame[at : at + key_bytes].decode("ascii"))
        places.append((offset, value_bytes))
        at += key_bytes
    return verb, number, keys, places


def _shipped() -> list[str]:
    folder = os.path.dirname(__file__)
    ours = ("__init__.py", "__main__.py", "host.py")
    return sorted(name[:-3] for name in os.listdir(folder) if name.endswith(".py") and name not in ours)


def load_plugin(name: str, options: str) -> Store:
    """Makes the store. Raises Unusable."""
    module_name = f"{__package__}.{name}" if name in _shipped() else name
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as missing:
        if missing.name == module_name:
            raise Unusable(
                f"there is no plugin {name}: expected {', '.join(_shipped())}, or a module of yours that Python finds (PYTHONPATH)"
            ) from missing
        raise Unusable(f"it needs the module {missing.name}: install it for {sys.executable}") from missing
    except Exception as failure:
        raise Unusable(f"it cannot be imported: {type(failure).__name__}: {failure}") from failure
    make = getattr(module, "Store", None)
    if make is None:
        raise Unusable(f"the module {module_name} has no class Store")
    try:
        given = dict(urllib.parse.parse_qsl(options, keep_blank_values=True, strict_parsing=True)) if options else {}
        made: Store = make(**given)
    except Exception as failure:
        raise Unusable(f"its options do not fit: {failure}") from failure
    for method in _METHODS:
        if not callable(getattr(made, method, None)):
            raise Unusable(f"the class Store of {module_name} has no method {method}")
    return made


class Host:
    """One store, its socket and its buffer."""

    def __init__(self, store: Store, connected: socket.socket, buffer: memoryview) -> None:
        self._store = store
        self._socket = connected
        self._buffer = buffer
        self._verbs: dict[int, Callable[[list[str], list[memoryview]], list[int]]] = {
            EXISTS: self._exists,
            GET: self._get,
            PUT: self._put,
            MAKE: self._make,
            REMOVE: self._remove,
        }

    def serve(self) -> None:
        """Answers until the daemon closes the socket."""
        while frame := self._socket.recv(FRAME_BYTES):
            self._socket.sendall(self._answer(frame))

    def _answer(self, frame: bytes) -> bytes:
        verb, number, keys, places = decode_request(frame)
        views = [self._buffer[offset : offset + length] for offset, length in places]
        try:
            return encode_answer(verb, number, self._verbs[verb](keys, views))
        except NoRoom as full:
            return encode_answer(verb, number, [NO_ROOM] * len(keys), str(full))
        except Exception as failure:
            traceback.print_exc()
            return encode_answer(verb, number, [FAILED] * len(keys), f"{type(failure).__name__}: {failure}", failed=True)
        finally:
            for view in views:
                view.release()

    def _exists(self, keys: list[str], _: list[memoryview]) -> list[int]:
        return [int(bool(there)) for there in self._all(keys, self._store.exists(keys))]

    def _get(self, keys: list[str], views: list[memoryview]) -> list[int]:
        return [max(int(length), -1) for length in self._all(keys, self._store.get_into(keys, views))]

    def _put(self, keys: list[str], views: list[memoryview]) -> list[int]:
        self._store.put_from(keys, views)
        return [1] * len(keys)

    def _make(self, keys: list[str], views: list[memoryview]) -> list[int]:
        there = self._exists(keys, views)
        lacking = [i for i, found in enumerate(there) if not found]
        if lacking:
            self._store.put_from([keys[i] for i in lacking], [views[i] for i in lacking])
        return [1 - found for found in there]

    def _remove(self, keys: list[str], _: list[memoryview]) -> list[int]:
        self._store.remove(keys)
        return [1] * len(keys)

    @staticmethod
    def _all(keys: list[str], numbers: Sequence[int]) -> Sequence[int]:
        if len(numbers) != len(keys):
            raise ValueError(f"{len(numbers)} answers for {len(keys)} keys")
        return numbers


def _refuse(connected: socket.socket, why: str) -> NoReturn:
    connected.sendall(encode_answer(HELLO, 0, [], why, failed=True))
    sys.exit(2)


def main() -> None:
    if len(sys.argv) not in (2, 3):
        sys.exit("usage: python3 -m terrace.remote NAME [OPTIONS]; the daemon starts it (docs/remote.md)")
    for number in (SOCKET, BUFFER):  # what the plugin starts does not have them
        os.set_inheritable(number, False)
    for number in (signal.SIGINT, signal.SIGTERM):  # a terminal or systemd sends them to the daemon as well, which ends us
        signal.signal(number, signal.SIG_IGN)
    connected = socket.socket(fileno=SOCKET)
    name = sys.argv[1]
    try:
        store = load_plugin(name, sys.argv[2] if len(sys.argv) == 3 else "")
    except Unusable as why:
        _refuse(connected, str(why))
    version = str(getattr(store, "version", "")).replace(" ", "-")
    buffer = memoryview(mmap.mmap(BUFFER, 0))
    os.close(BUFFER)
    if hasattr(store, "attach"):
        try:
            store.attach(buffer)
        except Exception as failure:
            _refuse(connected, str(failure))
    connected.sendall(encode_answer(HELLO, 0, [], f"{name} {version}".strip()))
    try:
        Host(store, connected, buffer).serve()
    except ConnectionError:
        pass  # the daemon has ended
    os._exit(0)  # threads and what they access end with the process

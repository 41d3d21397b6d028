"""A Redis server of the bench on loopback, which both servers use in turns."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import tempfile
import time

SECONDS = 120.0
BYTES = 4 << 30


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Store:
    """redis-server with its default settings, but without persistence and with a bound of its memory that the bench does
    not reach."""

    def __init__(self) -> None:
        self.port = free_port()
        self._folder = tempfile.TemporaryDirectory(prefix="terrace-peers-store-")
        command = ["redis-server", "--bind", "127.0.0.1", "--port", str(self.port), "--save", "", "--appendonly", "no",
                   "--maxmemory", str(BYTES), "--maxmemory-policy", "allkeys-lru", "--dir", self._folder.name,
                   "--logfile", "log"]
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        self.pid = self._process.pid
        self._socket = self._connect()
        self._answers = self._socket.makefile("rb")
        self.version = self._line_of("redis_version")

    def keys(self) -> int:
        return int(self._call("DBSIZE")[1:])

    def values_read(self) -> int:
        """Returns the number of GETs since the start."""
        return int(self._line_of("cmdstat_get", "calls=0,").removeprefix("calls=").partition(",")[0])

    def empty(self) -> None:
        """Removes everything, and returns when its memory is free."""
        self._call("FLUSHALL", "SYNC")

    def close(self) -> None:
        self._answers.close()
        self._socket.close()
        self._process.terminate()
        self._process.wait()
        self._folder.cleanup()

    def _line_of(self, name: str, default: str = "") -> str:
        size = int(self._call("INFO", "everything")[1:])
        text = self._answers.read(size + 2).decode()
        return next((line.partition(":")[2] for line in text.splitlines() if line.startswith(f"{name}:")), default)

    def _call(self, *words: str) -> bytes:
        self._socket.sendall(f"{' '.join(words)}\r\n".encode())  # the inline form of a command
        answer = self._answers.readline().strip()
        if answer.startswith(b"-"):
            raise RuntimeError(f"redis-server answered {words[0]} with {answer.decode()}")
        return answer

    def _connect(self) -> socket.socket:
        end = time.monotonic() + SECONDS
        while True:
            with contextlib.suppress(OSError):
                return socket.create_connection(("127.0.0.1", self.port), timeout=SECONDS)
            if self._process.poll() is not None or time.monotonic() > end:
                raise RuntimeError("redis-server does not serve")
            time.sleep(0.01)

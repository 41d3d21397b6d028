"""A store that the daemons of several machines share: a real redis-server, and daemons that use it."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest
from pathlib import Path
from typing import Any

import terrace
from daemon import PATIENCE, Daemon

SERVER = shutil.which("redis-server") or shutil.which("valkey-server")
without_server = unittest.skipUnless(SERVER, "no redis-server on this machine; install the package `redis-server`")


class SharedStore:
    """The server runs from the construction, which returns when it accepts connections, until `stop`."""

    def __init__(self, *options: str, bind: tuple[str, int] | None = None) -> None:
        """`options`: of the server. `bind`: where it listens for daemons; None: at a socket in a folder."""
        self._bind = bind
        self.folder = Path(tempfile.mkdtemp(prefix="terrace-python-"))
        self.socket = str(self.folder / "redis.sock")
        self.key = self.folder / "realm"
        self.key.write_text("00" * 32 + "\n")
        self.key.chmod(0o600)
        self.process = subprocess.Popen(
            [str(SERVER), *(("--bind", bind[0], "--port", str(bind[1])) if bind else ("--port", "0")), "--protected-mode", "no",
             "--unixsocket", self.socket, "--save", "", "--dir", str(self.folder), *options],
            stdout=subprocess.DEVNULL,
        )
        end = time.monotonic() + PATIENCE
        while not self._accepts():
            if time.monotonic() > end:
                raise AssertionError("the store does not start")
            time.sleep(0.01)

    def _accepts(self) -> bool:
        with socket.socket(socket.AF_UNIX) as tried:
            return tried.connect_ex(self.socket) == 0

    @property
    def address(self) -> str:
        return f"{self._bind[0]}:{self._bind[1]}" if self._bind else self.socket

    def machine(self, host_bytes: int = 32 << 20, lookup_budget: str = "1s", inside: tuple[str, ...] = (), at: str = "") -> Daemon:
        """A daemon that writes all it gets to the store, and by default waits long for it. `at`: another address than the store's."""
        return Daemon(host_bytes=host_bytes, inside=inside, more=f"""[[remote]]
address = "{at or self.address}"
realm_key_file = "{self.key}"
demotion = "write_through"
lookup_budget = "{lookup_budget}"
""")

    def suspend(self) -> None:
        """The server does nothing any more when this returns."""
        self.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED)

    def resume(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        self.resume()
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder)


def remote_tier(daemon: Daemon) -> Any:
    with terrace.connect(daemon.socket, observes=True, timeout=PATIENCE) as observer:
        (group,) = observer.status(timeout=PATIENCE).groups
        return next(tier for tier in group.tiers if tier.tier == "remote")


def objects_in_store(daemon: Daemon) -> int:
    """How many objects the daemon believes to be in the store."""
    return int(remote_tier(daemon).objects)

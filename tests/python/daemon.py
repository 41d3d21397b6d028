"""Runs a real terraced with a configuration and a folder of its own."""

from __future__ import annotations

import contextlib
import os
import random
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import unittest
import urllib.request
from pathlib import Path

import terrace

PATIENCE = 120.0  # seconds, as in tests/support/programs.hpp; only turns a hang into a failure
OBJECT_BYTES = 64 << 10
CHUNK_TOKENS = 16


class Daemon:
    """A daemon that runs from its construction, which returns when it is ready, until `stop`."""

    def __init__(
        self, host_bytes: int = 32 << 20, more: str = "", connection: str = "", disk_bytes: int = 0, host: str = "",
        workers: int = 2, metrics: bool = False, gpu: str = "", disk: str = "", environment: dict[str, str] | None = None,
        inside: tuple[str, ...] = (),
    ) -> None:
        """`more`, `connection`, `host`, `gpu`, `disk`: lines of [[listen]], [connection], [host], [gpu] and [disk]. Without
        `disk_bytes` there is no disk. `environment`: added to this process's environment. `inside`:
        the words of a command that runs it, such as one for a namespace."""
        self.environment = environment or {}
        self._inside = inside
        self._children: list[int] = []
        self.folder = Path(tempfile.mkdtemp(prefix="terrace-python-"))
        self.socket = str(self.folder / "terrace.sock")
        (self.folder / "state").mkdir()
        (self.folder / "terraced.toml").write_text(
            f"""[daemon]
workers = {workers}
[[listen]]
path = "{self.socket}"
{more}
[connection]
staging_bytes = "8MiB"
{connection}
[host]
bytes = {host_bytes}
{host}
[disk]
path = "{self.folder / "state"}"
bytes = {disk_bytes}
{disk}
[metrics]
address = "{'127.0.0.1:0' if metrics else ''}"
[gpu]
{gpu}
"""
        )
        self.start()

    def start(self) -> None:
        notify = self.folder / "notify.sock"
        notify.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ready:
            ready.bind(str(notify))
            ready.settimeout(PATIENCE)
            with open(self.folder / "log", "ab") as log:
                self.process = subprocess.Popen(
                    [*self._inside, os.environ["TERRACED"], "--config", str(self.folder / "terraced.toml")],
                    env={**os.environ, "STATE_DIRECTORY": str(self.folder / "own-state"), **self.environment, "NOTIFY_SOCKET": str(notify)},
                    stdout=log, stderr=log,
                )
            while b"READY=1" not in ready.recv(4096):
                pass

    def _open_children(self) -> None:
        """Opens the daemon's GPU processes. They are killed when the daemon ends, and end after it; until then memory
        of this process that they have open must not be released."""
        for children in Path(f"/proc/{self.process.pid}/task").glob("*/children"):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread that just ended has none
                for pid in children.read_text().split():
                    with contextlib.suppress(ProcessLookupError):
                        self._children.append(os.pidfd_open(int(pid)))

    def kill(self) -> None:
        self._open_children()
        self.process.kill()
        self.process.wait()

    def terminate(self) -> None:
        """Ends the daemon in order: afterwards everything stored is on disk."""
        self._open_children()
        self.process.terminate()
        self.process.wait(PATIENCE)

    def pause(self) -> None:
        """Stops the daemon: it does nothing any more when this returns."""
        self.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED)

    def resume(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def metrics(self) -> str:
        """A scrape. The metrics' port is the daemon's only TCP socket that listens."""
        own = {os.readlink(link) for link in Path(f"/proc/{self.process.pid}/fd").iterdir()}
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and f"socket:[{words[9]}]" in own:
                with urllib.request.urlopen(f"http://127.0.0.1:{int(words[1].split(':')[1], 16)}/metrics", timeout=PATIENCE) as page:
                    return str(page.read().decode())
        raise AssertionError("the daemon has no port")

    def stop(self) -> None:
        """When this returns, the daemon's GPU processes have ended as well."""
        self.resume()
        self.kill()
        for child in self._children:
            if not select.select([child], [], [], PATIENCE)[0]:
                raise TimeoutError("a process of a GPU outlives its daemon")
            os.close(child)
        self._children.clear()
        shutil.rmtree(self.folder, ignore_errors=True)


SPEC = terrace.SpaceSpec(
    model="test", dtype="u8", layout="opaque", chunk_tokens=CHUNK_TOKENS,
    pools=[terrace.Pool("kv", object_bytes=OBJECT_BYTES)],
)


def chain_of(seed: int, count: int) -> list[bytes]:
    source = random.Random(seed)
    return [source.randbytes(32) for _ in range(count)]


def content_of(digest: bytes) -> bytes:
    return digest * (OBJECT_BYTES // len(digest))


class DaemonTest(unittest.TestCase):
    """One daemon for the tests of a class; each test has a connection with an open space of its own name."""

    host_bytes = 32 << 20
    server: Daemon

    @classmethod
    def setUpClass(cls) -> None:
        cls.server = Daemon(cls.host_bytes)
        cls.addClassCleanup(cls.server.stop)

    def setUp(self) -> None:
        self.daemon = terrace.connect(self.server.socket, name=self._testMethodName, timeout=PATIENCE)
        self.addCleanup(self.daemon.close)
        self.space = self.daemon.open_space(SPEC, timeout=PATIENCE)

    def store(self, chain: list[bytes], daemon: terrace.Connection | None = None) -> None:
        """Stores the chain's contents from a region."""
        daemon = daemon or self.daemon
        memory = terrace.Memory(len(chain) * OBJECT_BYTES)
        view = memoryview(memory)
        for i, digest in enumerate(chain):
            view[i * OBJECT_BYTES:(i + 1) * OBJECT_BYTES] = content_of(digest)
        space = daemon.open_space(SPEC, timeout=PATIENCE)
        with daemon.register_region(memory, timeout=PATIENCE) as region:
            runs = [(i * OBJECT_BYTES, OBJECT_BYTES) for i in range(len(chain))]
            daemon.store(space, terrace.Prefix.of_digests(chain), region, runs, timeout=PATIENCE)

    def lease(self, chain: list[bytes]) -> terrace.Lease:
        lease = self.daemon.lookup(self.space, terrace.Prefix.of_digests(chain), lease=True, timeout=PATIENCE).lease
        assert lease is not None
        return lease

    def leases_of(self, connection: terrace.Connection) -> int:
        """Returns how many leases a connection holds according to the daemon."""
        number = connection.daemon.connection
        (found,) = [client for client in self.daemon.status(timeout=PATIENCE).clients if client.connection == number]
        return found.leases

"""LMCache's server with Terrace as its second level: what it has stored comes back byte by byte, whatever happens."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import unittest
from pathlib import Path

import terrace
from daemon import PATIENCE, Daemon
from disk_case import OverDisk
from shared_store import SharedStore, remote_tier, without_server
from volume import damage
from waiting import until

if importlib.util.find_spec("lmcache") is None:
    raise unittest.SkipTest("LMCache is not installed here")

from lmcache_case import OverTerrace
from lmcache_server import CHUNK_BYTES, CHUNKS, LmcacheServer, connector


class LmcacheSecondLevel(OverTerrace):
    @classmethod
    def setUpClass(cls) -> None:
        cls.server = Daemon(host_bytes=64 << 20, disk_bytes=256 << 20)
        cls.addClassCleanup(cls.server.stop)
        cls.await_disk()
        cls.first = LmcacheServer(connector(cls.server.socket, lookup_seconds=PATIENCE))  # a late answer is a miss
        cls.addClassCleanup(lambda: cls.first.kill())
        cls.first.ready()
        cls.stored(0)
        cls.first.forget()
        cls.first.load(0)  # from Terrace: it has all its connections now

    def test_what_left_the_first_level_comes_from_terrace(self) -> None:
        right = self.stored(1)
        self.assertEqual(len(set(right)), CHUNKS, "each chunk has bytes of its own")
        self.first.forget()
        before = self.tiers()["host"].bytes_read
        self.assertEqual(self.first.load(1), (CHUNKS, right))
        self.assertGreaterEqual(self.tiers()["host"].bytes_read - before, CHUNKS * CHUNK_BYTES)

    def test_what_nobody_stored_is_not_found_and_other_bytes_are_seen(self) -> None:
        """The control: buffers that nothing was read into have other checksums, so equal ones prove something."""
        right = self.stored(2)
        self.first.forget()
        found, sums = self.first.load(3)
        self.assertEqual(found, 0)
        assert sums is not None
        self.assertFalse(set(sums) & set(right))

    def test_another_server_and_one_that_is_started_again_find_it(self) -> None:
        right = self.stored(4)
        second = LmcacheServer(connector(self.server.socket))
        self.addCleanup(second.kill)
        self.assertEqual(second.load(4), (CHUNKS, right))
        second.end()

    def test_after_the_daemons_restart_the_disk_has_it(self) -> None:
        right = self.stored(5)
        self.server.terminate()
        self.server.start()
        self.await_disk()
        self.first.forget()
        self.await_connections()
        self.assertEqual(self.first.load(5), (CHUNKS, right))
        self.assertGreater(self.tiers()["disk"].bytes_read, 0)

    def test_damaged_bytes_on_disk_are_not_found(self) -> None:
        right = self.stored(6)
        self.server.terminate()
        damage(self.server.folder / "state/terrace.extents")
        self.server.start()
        self.await_disk()
        self.await_connections()
        self.first.forget()
        found, sums = self.first.load(6)
        self.assertEqual(found, 0)
        assert sums is not None
        self.assertFalse(set(sums) & set(right))

    def test_without_the_daemon_the_server_goes_on(self) -> None:
        right = self.stored(7)
        self.server.kill()
        self.first.forget()
        self.assertEqual(self.first.load(7)[0], 0)
        self.assertEqual(self.first.store(7), right)
        self.assertEqual(self.first.load(7), (CHUNKS, right), "its first level works")
        self.server.start()
        self.await_disk()
        self.await_connections()
        newer = self.stored(8)
        self.first.forget()
        self.assertEqual(self.first.load(8), (CHUNKS, newer))

    def await_connections(self) -> None:
        """The server's: for questions, loads and stores. Each is used once it has registered its memory."""
        with terrace.connect(self.server.socket, observes=True, timeout=PATIENCE) as observer:

            def of_the_server() -> int:
                clients = observer.status(timeout=PATIENCE).clients
                return sum(one.regions for one in clients if one.pid == self.first.process.pid)

            until(lambda: of_the_server() == 3)


class LmcacheTwoWorkers(OverDisk):
    """Two workers of an engine, each with KV of its own, behind one server."""

    WORKERS = 2

    @classmethod
    def setUpClass(cls) -> None:
        cls.server = Daemon(host_bytes=128 << 20)
        cls.addClassCleanup(cls.server.stop)
        cls.first = LmcacheServer(connector(cls.server.socket, lookup_seconds=PATIENCE), cls.WORKERS)
        cls.addClassCleanup(lambda: cls.first.kill())
        cls.first.ready()

    def spaces(self) -> list[int]:
        """Numbers of the spaces with KV: each worker's objects are one."""
        with terrace.connect(self.server.socket, observes=True, timeout=PATIENCE) as observer:
            (group,) = observer.status(timeout=PATIENCE).groups
        return [space.space for space in group.open_spaces if space.pools[0].object_bytes == CHUNK_BYTES]

    def stored(self, prompt: int) -> list[str]:
        before = self.tiers()["host"].bytes_written
        sums = self.first.store(prompt)
        until(lambda: self.tiers()["host"].bytes_written >= before + self.missing * CHUNK_BYTES)
        return sums

    def test_what_one_worker_has_lost_is_found_for_none(self) -> None:
        self.missing = self.WORKERS * CHUNKS
        right = self.stored(1)
        self.assertEqual(len(set(right)), self.WORKERS * CHUNKS, "each worker's chunks have bytes of their own")
        self.first.forget()
        self.assertEqual(self.first.load(1), (CHUNKS, right))
        spaces = self.spaces()
        self.assertEqual(len(spaces), self.WORKERS)
        program = Path(os.environ["TERRACED"]).resolve().parents[2] / "src/cli/terrace"
        subprocess.run([program, "--socket", self.server.socket, "clear", "--space", str(spaces[-1])], check=True, timeout=PATIENCE)
        self.first.forget()
        found, sums = self.first.load(1)
        self.assertEqual(found, 0)
        self.first.forget()
        self.missing = CHUNKS
        self.assertEqual(self.stored(1), right)
        self.first.forget()
        self.assertEqual(self.first.load(1), (CHUNKS, right))
        second = LmcacheServer(connector(self.server.socket), self.WORKERS)
        self.addCleanup(second.kill)
        self.first.kill()
        self.assertEqual(second.load(1), (CHUNKS, right), "what a server that was killed has stored")


@without_server
class LmcacheOnTwoMachines(unittest.TestCase):
    """Two machines that share a store, each with a server."""

    def machine(self, store: SharedStore) -> tuple[Daemon, LmcacheServer]:
        daemon = store.machine(64 << 20)
        self.addCleanup(daemon.stop)
        server = LmcacheServer(connector(daemon.socket, lookup_seconds=PATIENCE))
        self.addCleanup(server.kill)
        return daemon, server

    def test_what_one_has_stored_the_other_finds(self) -> None:
        store = SharedStore()
        self.addCleanup(store.stop)
        (here, one), (_, two) = self.machine(store), self.machine(store)
        right = one.store(1)
        until(lambda: int(remote_tier(here).bytes_written) >= CHUNKS * CHUNK_BYTES)
        here.terminate()
        self.assertEqual(two.load(1), (CHUNKS, right))


if __name__ == "__main__":
    unittest.main()

"""LMCache's own adapter for Redis at Terrace's door for Redis clients: what its server has stored comes back byte by byte."""

from __future__ import annotations

import importlib.util
import tempfile
import unittest
from typing import Any

from daemon import Daemon
from volume import damage

if importlib.util.find_spec("lmcache") is None:
    raise unittest.SkipTest("LMCache is not installed here")

from lmcache_case import OverTerrace
from lmcache_server import CHUNK_BYTES, CHUNKS, LmcacheServer, free_port

PASSWORD = "secret of a test"


class LmcacheOverResp(OverTerrace):
    adapter: dict[str, Any]

    @classmethod
    def setUpClass(cls) -> None:
        port = free_port()
        cls.adapter = {"type": "resp", "host": "127.0.0.1", "port": port, "num_workers": 2, "password": PASSWORD}
        secret = tempfile.NamedTemporaryFile("w", prefix="terrace-password-")  # for its owner alone
        cls.addClassCleanup(secret.close)
        secret.write(PASSWORD)
        secret.flush()
        door = f'[[resp]]\naddress = "127.0.0.1:{port}"\npassword_file = "{secret.name}"\n'
        cls.server = Daemon(host_bytes=64 << 20, disk_bytes=256 << 20, more=door)
        cls.addClassCleanup(cls.server.stop)
        cls.await_disk()
        cls.first = LmcacheServer(cls.adapter).ready()
        cls.addClassCleanup(lambda: cls.first.kill())

    def test_what_left_the_first_level_comes_back(self) -> None:
        right = self.stored(1)
        self.assertEqual(len(set(right)), CHUNKS, "each chunk has bytes of its own")
        self.first.forget()
        self.assertEqual(self.first.load(1), (CHUNKS, right))
        self.assertGreaterEqual(self.tiers()["host"].used_bytes, CHUNKS * CHUNK_BYTES)

    def test_what_nobody_stored_is_not_found(self) -> None:
        right = self.stored(2)
        self.first.forget()
        found, sums = self.first.load(3)
        self.assertEqual(found, 0)
        assert sums is not None
        self.assertFalse(set(sums) & set(right))

    def test_another_server_finds_it_and_so_it_does_after_the_daemons_restart(self) -> None:
        right = self.stored(4)
        for restarts in (False, True):
            if restarts:
                self.server.terminate()
                self.server.start()
                self.await_disk()
            second = LmcacheServer(self.adapter)
            self.addCleanup(second.kill)
            self.assertEqual(second.load(4), (CHUNKS, right))
            second.end()
        self.replace_server()

    def test_damaged_bytes_on_disk_are_not_found(self) -> None:
        right = self.stored(6)
        self.server.terminate()
        damage(self.server.folder / "state/terrace.extents")
        self.server.start()
        self.await_disk()
        self.replace_server()
        self.addCleanup(self.replace_server)
        found, sums = self.first.load(6)
        self.assertEqual(found, 0)
        assert sums is not None
        self.assertFalse(set(sums) & set(right))

    def replace_server(self) -> None:
        """Its adapter does not connect again to a daemon that was away, and a thread of it asks nothing more after it did not
        get a value that was there when it asked for it."""
        self.first.kill()
        type(self).first = LmcacheServer(self.adapter).ready()


if __name__ == "__main__":
    unittest.main()

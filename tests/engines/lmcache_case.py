"""What the tests of LMCache's server over Terrace have in common."""

from __future__ import annotations

from disk_case import OverDisk
from lmcache_server import CHUNKS, LmcacheServer
from waiting import until


class OverTerrace(OverDisk):
    """`setUpClass` of a subclass starts the server as well."""

    first: LmcacheServer

    @classmethod
    def stored(cls, prompt: int) -> list[str]:
        """By the server, and on Terrace's disk."""
        before = cls.tiers()["disk"].objects
        sums = cls.first.store(prompt)
        until(lambda: cls.tiers()["disk"].objects >= before + CHUNKS)
        return sums

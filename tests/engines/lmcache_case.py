"""What the tests of LMCache's server over Terrace have in common."""

from __future__ import annotations

import unittest

import terrace
from daemon import PATIENCE, Daemon
from lmcache_server import CHUNKS, LmcacheServer
from waiting import until


class OverTerrace(unittest.TestCase):
    """`setUpClass` of a subclass starts both."""

    server: Daemon
    first: LmcacheServer

    @classmethod
    def await_disk(cls) -> None:
        until(lambda: all(tier.state == "ready" for tier in cls.tiers().values()))

    @classmethod
    def tiers(cls) -> dict[str, terrace.status.TierStatus]:
        with terrace.connect(cls.server.socket, observes=True, timeout=PATIENCE) as observer:
            return {tier.tier: tier for tier in observer.status(timeout=PATIENCE).groups[0].tiers}

    @classmethod
    def stored(cls, prompt: int) -> list[str]:
        """By the server, and on Terrace's disk."""
        before = cls.tiers()["disk"].objects
        sums = cls.first.store(prompt)
        until(lambda: cls.tiers()["disk"].objects >= before + CHUNKS)
        return sums

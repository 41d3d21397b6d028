"""What tests of engines over a daemon with a disk have in common."""

from __future__ import annotations

import contextlib
import unittest
from collections.abc import Iterator

import terrace
from daemon import PATIENCE, Daemon
from engine import Engine
from waiting import until


class OverDisk(unittest.TestCase):
    """`setUpClass` of a subclass starts the daemon."""

    connections = 1  #: of an engine to the daemon
    server: Daemon

    @classmethod
    def tiers(cls) -> dict[str, terrace.status.TierStatus]:
        with terrace.connect(cls.server.socket, observes=True, timeout=PATIENCE) as observer:
            return {tier.tier: tier for tier in observer.status(timeout=PATIENCE).groups[0].tiers}

    @classmethod
    def await_disk(cls) -> None:
        until(lambda: all(tier.state == "ready" for tier in cls.tiers().values()))

    @contextlib.contextmanager
    def reconnecting(self, *engines: Engine) -> Iterator[None]:
        """The daemon ends inside and starts again; afterwards these engines use all their connections to the new one."""
        before = [engine.times_connected for engine in engines]
        yield
        self.await_disk()
        for engine, times in zip(engines, before):
            until(lambda: engine.times_connected >= times + self.connections)

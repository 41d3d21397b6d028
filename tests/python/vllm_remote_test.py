"""The vLLM connector where several machines share a store: on two real daemons with a real redis-server."""

from __future__ import annotations

import unittest
from typing import Any

import terrace
from daemon import PATIENCE, Daemon
from shared_store import SharedStore, objects_in_store, remote_tier, without_server
from vllm_connector_test import CHUNK, Engine, Request, plan_with, until


@without_server
class Machines(unittest.TestCase):
    def setUp(self) -> None:
        self.store = SharedStore()
        self.addCleanup(self.store.stop)
        self.first, self.second = self.machine(), self.machine()

    def machine(self) -> Daemon:
        daemon = self.store.machine()
        self.addCleanup(daemon.stop)
        until(lambda: remote_tier(daemon).state == "ready")  # before, it neither writes there nor looks there
        return daemon

    def engine(self, daemon: Daemon, **settings: Any) -> Engine:
        made = Engine(daemon.socket, **settings)
        self.addCleanup(made.close)
        made.connect()
        return made

    def compute_on_the_first(self, request: Request) -> None:
        one = self.engine(self.first)
        chunks = len(request.block_hashes)
        one.compute(request, list(range(1, chunks + 1)))
        until(lambda: objects_in_store(self.first) == chunks * len(one.plan.parts))
        self.first.terminate()

    def test_what_one_machine_computes_another_loads(self) -> None:
        request = Request("r", 5)
        self.compute_on_the_first(request)
        two = self.engine(self.second)
        self.assertEqual(two.matched(request)[0], 5 * CHUNK)
        two.scheduler.allocated(request, [[10, 9, 8, 7, 6, 5]], 5 * CHUNK)
        two.step(request, [[10, 9, 8, 7, 6, 5]], 5 * CHUNK, 1)
        self.assertTrue(all(two.has(request, i, block) for i, block in enumerate([10, 9, 8, 7, 6])))

    def learn(self, request: Request) -> None:
        """The second daemon learns that the store has the request's chunks, and brings none of them."""
        with terrace.connect(self.second.socket, timeout=PATIENCE) as client:
            space = client.open_space(plan_with().spec)
            what = terrace.Prefix.of_digests(request.block_hashes)
            until(lambda: client.lookup(space, what, timeout=PATIENCE).found_chunks == len(request.block_hashes))

    def second_lookup(self, engine: Engine, request: Request) -> None:
        """The store stands still: the first lookup has been answered without it, and another one is under way."""

        def sent() -> bool:
            self.assertEqual(engine.scheduler.matched(request, 0), (None, False))
            return engine.scheduler.counters.lookups == 2

        until(sent)

    def engine_beside_a_silent_store(self, request: Request) -> Engine:
        """The request's first lookup has been answered with nothing of what the store has."""
        self.compute_on_the_first(request)
        self.learn(request)
        two = self.engine(self.second, lookup=2.0)
        self.store.suspend()
        self.second_lookup(two, request)
        return two

    def test_a_request_waits_for_what_comes_late(self) -> None:
        request = Request("r", 5)
        two = self.engine_beside_a_silent_store(request)
        self.store.resume()
        self.assertEqual(two.matched(request)[0], 5 * CHUNK)
        self.assertEqual(two.scheduler.counters.lookups_failed, 0)

    def test_nobody_waits_for_a_store_from_which_nothing_comes(self) -> None:
        request = Request("r", 5)
        two = self.engine_beside_a_silent_store(request)
        self.assertEqual(two.matched(request), (0, False))
        self.assertEqual(two.scheduler.counters.lookups, 2)


if __name__ == "__main__":
    unittest.main()

"""vLLM on two machines that share a store: what one has computed, the other loads, and gets the same tokens."""

from __future__ import annotations

import time
import unittest

from daemon import PATIENCE, Daemon
from engine import Engine
from shared_store import SharedStore, objects_in_store, without_server
from vllm_door import BLOCK
from waiting import prompts_of

CHUNKS = 1000 // BLOCK


class Machines(unittest.TestCase):
    door: str
    options = "{}"

    def engine(self, daemon: Daemon) -> Engine:
        engine = Engine(daemon.socket, TERRACE_TEST_DOOR=self.door, TERRACE_TEST_OPTIONS=self.options)
        self.addCleanup(engine.kill)
        return engine

    def machine(self, store: SharedStore) -> Daemon:
        daemon = store.machine(64 << 20)
        self.addCleanup(daemon.stop)
        return daemon

    def await_objects(self, daemon: Daemon, count: int) -> None:
        end = time.monotonic() + PATIENCE
        while objects_in_store(daemon) < count:
            self.assertLess(time.monotonic(), end, "the store does not get what was computed")
            time.sleep(0.05)

    def test_what_one_computes_the_other_loads(self) -> None:
        store = SharedStore()
        self.addCleanup(store.stop)
        here, there = self.machine(store), self.machine(store)
        one, two = self.engine(here), self.engine(there)
        one.ready()
        two.ready()
        prompts = prompts_of(1, 2, 1000)
        computed = one.call("generate", prompts=prompts)
        self.assertEqual(computed["cached"], [0, 0])
        self.assertFalse(one.call("settle")["pending"])
        self.await_objects(here, 2 * CHUNKS)
        here.terminate()
        loaded = two.call("generate", prompts=prompts)
        self.assertEqual((loaded["tokens"], loaded["cached"]), (computed["tokens"], [CHUNKS * BLOCK] * 2))


@without_server
class ConnectorOnTwoMachines(Machines):
    door = "connector"
    options = '{"prefill_tokens_per_s": 1}'  # so slow that it computes nothing which it can load


@without_server
class TierOnTwoMachines(Machines):
    door = "tier"


del Machines

if __name__ == "__main__":
    unittest.main()

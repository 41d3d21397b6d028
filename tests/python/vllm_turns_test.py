"""Requests that are turns of a conversation: the daemon's policies learn of each one, whoever has its KV, and how it ended."""

from __future__ import annotations

import re
import unittest
from dataclasses import replace
from typing import Any

from daemon import Daemon
from terrace import FinishReason
from terrace.vllm.scheduler_side import _Turn
from vllm_connector_test import CHUNK, Cases, Engine, Request, plan_with, until
from vllm_handover_test import go_on

CHUNKS = 4
PLACES = [5, 6, 7, 8]


def turn(name: str, chunks: int = CHUNKS, seed: int = 1, **parameters: Any) -> Request:
    request = Request(name, chunks, seed)
    request.kv_transfer_params = {f"terrace_{key}": value for key, value in parameters.items()}  # type: ignore[attr-defined]
    return request


class Turns(Cases):
    def start(self) -> Daemon:
        return Daemon(metrics=True)

    def asked(self, verb: str) -> int:
        """How many requests of this kind the daemon has answered."""
        pattern = rf'^terrace_requests_total{{[^}}]*verb="{verb}"[^}}]*}} (\d+)'
        return sum(int(count) for count in re.findall(pattern, self.daemon.metrics(), re.MULTILINE))

    def serve(self, engine: Engine, request: Request, computed: int = 0, reason: str = "stop") -> None:
        """Computes and stores what is behind `computed` tokens, and ends the request."""
        engine.matched(request, computed)
        count = len(request.block_hashes)
        blocks = list(range(1, count + 1))
        engine.fill(request, blocks)
        engine.scheduler.allocated(request, [blocks], 0)
        engine.step(request, [blocks], computed, count * CHUNK - computed + 1)
        engine.scheduler.finished(request.request_id, reason, 9)

    def settle(self, engine: Engine) -> None:
        self.assertTrue(engine.worker.drain(60))
        engine.empty_step()

    def test_the_end_of_a_turn_is_told_and_that_of_another_request_is_not(self) -> None:
        engine = self.engine()
        self.serve(engine, turn("a", session="c"))
        self.assertTrue(engine.scheduler.keeps, "the workers are to be told")
        self.settle(engine)
        self.assertFalse(engine.scheduler.keeps)
        self.serve(engine, turn("b", think_seconds=3, seed=2))
        self.serve(engine, turn("c", seed=3))
        self.settle(engine)
        self.assertEqual(engine.worker.counters.turns_reported, 2)
        until(lambda: self.asked("end_inference") == 2)

    def test_the_end_waits_for_what_the_turn_stores(self) -> None:
        engine = self.engine(slots=2)
        self.daemon.pause()
        self.addCleanup(self.daemon.resume)
        engine.scheduler._turns["a"] = _Turn(1, used=True)  # its lookup would wait for the daemon
        request = turn("a")
        engine.fill(request, PLACES)
        engine.scheduler.allocated(request, [PLACES], 0)
        engine.step(request, [PLACES], 0, CHUNKS * CHUNK + 1)
        engine.scheduler.finished("a", "stop", 9)
        for _ in range(3):
            engine.empty_step()
        self.assertEqual((engine.worker.counters.turns_reported, engine.worker.report().keeps), (0, True))
        self.daemon.resume()
        self.settle(engine)
        self.assertEqual((engine.worker.counters.turns_reported, engine.worker.counters.stored_chunks), (1, CHUNKS))

    def test_a_turn_of_which_the_engine_has_all_itself_is_a_use(self) -> None:
        engine = self.engine()
        self.serve(engine, turn("a", session="c"))
        self.settle(engine)
        before = self.asked("lookup")
        again = turn("b", session="c")
        for _ in range(3):
            self.assertEqual(engine.scheduler.matched(again, CHUNKS * CHUNK), (0, False))
        unnamed = turn("d")
        self.assertEqual(engine.scheduler.matched(unnamed, CHUNKS * CHUNK), (0, False))
        until(lambda: self.asked("lookup") == before + 1)
        engine.scheduler.allocated(again, [PLACES], 0)
        go_on(engine, again, CHUNKS * CHUNK, 1)
        def released() -> bool:
            engine.scheduler._poll()
            return self.leases() == 0

        until(released)
        engine.scheduler.finished("b", "length", 1)
        self.settle(engine)
        self.assertEqual(engine.worker.counters.turns_reported, 2)

    def test_one_of_several_ranks_tells_it(self) -> None:
        plan = plan_with()
        both = replace(plan, spec=replace(plan.spec, world_size=2), workers=2)
        first, second = (self.engine(both.of_rank(rank)) for rank in (0, 1))
        for engine in (first, second):
            self.serve(engine, turn("a", session="c"))
            self.settle(engine)
        self.assertEqual((first.worker.counters.turns_reported, second.worker.counters.turns_reported), (1, 0))

    def test_a_daemon_that_is_away_is_not_told_later(self) -> None:
        engine = self.engine()
        self.serve(engine, turn("a", session="c"))
        self.settle(engine)
        self.serve(engine, turn("b", session="c", seed=2))
        self.daemon.kill()
        engine.empty_step()
        until(lambda: not engine.worker.connected and not engine.scheduler.connected)
        self.serve(engine, turn("c", session="c", seed=3))
        engine.empty_step()
        self.daemon.start()
        engine.connect()
        told = engine.worker.counters.turns_reported
        engine.empty_step()
        self.assertEqual(engine.worker.counters.turns_reported, told)
        self.serve(engine, turn("d", session="c", seed=4))
        self.settle(engine)
        self.assertEqual(engine.worker.counters.turns_reported, told + 1)

    def test_vllms_reasons_become_the_daemons(self) -> None:
        engine = self.engine()
        reasons = {"stop": FinishReason.STOP, "repetition": FinishReason.STOP, "length": FinishReason.LENGTH, "abort": FinishReason.ABORTED,
                   "error": FinishReason.ABORTED, "None": FinishReason.UNKNOWN}
        told = {}
        for seed, reason in enumerate(reasons):
            self.serve(engine, turn(reason, session="c", session_ends=True, think_seconds=2, seed=seed), reason=reason)
            (told[reason],) = engine.scheduler.endings()
        self.assertEqual({name: one.reason for name, one in told.items()}, reasons)
        self.assertEqual({(one.closed, one.think_seconds, one.output_tokens) for one in told.values()}, {(True, 2.0, 9)})
        self.assertEqual(len({one.inference for one in told.values()}), len(reasons))


if __name__ == "__main__":
    unittest.main()

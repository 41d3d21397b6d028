"""A request that one engine computes and another one continues: the second waits for what the first has announced."""

from __future__ import annotations

import unittest
from types import SimpleNamespace
from typing import Any

from terrace.vllm import handover
from terrace.vllm.parameters import NOTHING, Parameters, parameters_of
from vllm_connector_test import CHUNK, Cases, Engine, Request, until

CHUNKS = 6
FIRST = [1, 2, 3, 4, 5, 6, 7]
SECOND = [17, 16, 15, 14, 13, 12, 11]


def asking(name: str, **parameters: Any) -> Request:
    request = Request(name, CHUNKS)
    request.kv_transfer_params = {f"terrace_{key}": value for key, value in parameters.items()}  # type: ignore[attr-defined]
    return request


def go_on(engine: Engine, request: Request, computed: int, scheduled: int) -> None:
    """A further step of the request."""
    cached = SimpleNamespace(req_ids=[request.request_id], resumed_req_ids=set(), new_block_ids=[None],
                             num_computed_tokens=[computed])
    output = SimpleNamespace(scheduled_new_reqs=[], scheduled_cached_reqs=cached,
                             num_scheduled_tokens={request.request_id: scheduled})
    loads, stores = engine.scheduler.orders(output)
    engine.worker.prepare(*engine.scheduler.overwritten())
    engine.worker.begin(loads, engine.scheduler.endings())
    engine.worker.save(stores, engine.scheduler.failures_seen)
    engine.worker.received()
    engine.report()


class Handover(Cases):
    def begin(self, prefill: Engine, request: Request, chunks: int) -> None:
        """Computes the first chunks."""
        self.assertEqual(prefill.matched(request), (0, False))
        prefill.fill(request, FIRST)
        prefill.scheduler.allocated(request, [FIRST], 0)
        prefill.step(request, [FIRST], 0, chunks * CHUNK)
        self.assertTrue(prefill.worker.drain(60))

    def still_waits(self, decode: Engine, request: Request) -> None:
        for _ in range(20):
            self.assertEqual(decode.scheduler.matched(request, 0), (None, False))
            decode.report()

    def test_the_second_engine_waits_until_the_first_has_stored_all(self) -> None:
        prefill, decode = self.engine(), self.engine()
        computed, continued = asking("p", announce="x"), asking("d", follow="x", follow_seconds=60)
        self.still_waits(decode, continued)  # also before anything is announced
        self.begin(prefill, computed, 2)
        self.still_waits(decode, continued)
        go_on(prefill, computed, 2 * CHUNK, 4 * CHUNK + 1)
        prefill.scheduler.finished("p")
        self.assertEqual(decode.matched(continued)[0], CHUNKS * CHUNK)
        decode.scheduler.allocated(continued, [SECOND], CHUNKS * CHUNK)
        decode.step(continued, [SECOND], CHUNKS * CHUNK, 1)
        self.assertTrue(all(decode.has(continued, i, SECOND[i]) for i in range(CHUNKS)))
        decode.scheduler.finished("d")
        until(lambda: self.leases() == 0)

    def test_an_engine_that_ends_in_the_middle_leaves_what_it_has_stored(self) -> None:
        prefill, decode = self.engine(), self.engine()
        computed, continued = asking("p", announce="x"), asking("d", follow="x", follow_seconds=60)
        self.begin(prefill, computed, 2)
        self.still_waits(decode, continued)
        prefill.close()
        self.assertEqual(decode.matched(continued)[0], 2 * CHUNK)

    def test_a_request_is_announced_once(self) -> None:
        prefill, decode = self.engine(), self.engine()
        computed = asking("p", announce="x")
        self.begin(prefill, computed, CHUNKS)
        waits = asking("d", follow="x", follow_seconds=60)
        self.assertEqual(decode.matched(waits)[0], CHUNKS * CHUNK)
        until(lambda: self.ended(prefill))
        prefill.scheduler.matched(computed, 0)  # as after a preemption
        self.assertEqual(len(prefill.scheduler._handover), 0)
        prefill.scheduler.finished("p")
        self.assertFalse(prefill.scheduler._handover.announces("p"))

    def ended(self, engine: Engine) -> bool:
        engine.scheduler.orders(SimpleNamespace(
            scheduled_new_reqs=[], num_scheduled_tokens={},
            scheduled_cached_reqs=SimpleNamespace(req_ids=[], resumed_req_ids=set(), new_block_ids=[], num_computed_tokens=[])))
        return len(engine.scheduler._handover) == 0

    def test_an_aborted_request_is_not_waited_for(self) -> None:
        prefill, decode = self.engine(), self.engine()
        computed, continued = asking("p", announce="x"), asking("d", follow="x", follow_seconds=60)
        self.begin(prefill, computed, 2)
        self.still_waits(decode, continued)
        prefill.scheduler.finished("p")
        self.assertEqual(decode.matched(continued)[0], 2 * CHUNK)

    def test_chunks_that_are_not_stored_are_not_waited_for(self) -> None:
        prefill, decode = self.engine(slots=2, keeps=False), self.engine()
        computed, continued = asking("p", announce="x"), asking("d", follow="x", follow_seconds=60)
        with self.assertLogs("terrace.vllm", "WARNING"):
            self.begin(prefill, computed, CHUNKS)  # staging memory has room for two
        self.assertEqual(decode.matched(continued)[0], 2 * CHUNK)

    def test_a_request_that_follows_nobody_is_served_after_its_time(self) -> None:
        decode = self.engine()
        with self.assertLogs("terrace.vllm", "WARNING") as said:
            self.assertEqual(decode.matched(asking("d", follow="x", follow_seconds=0.05)), (0, False))
        self.assertIn("announce", said.output[0])

    def test_a_daemon_that_is_lost_ends_the_wait(self) -> None:
        decode = self.engine()
        continued = asking("d", follow="x", follow_seconds=3000)
        self.still_waits(decode, continued)
        with self.assertLogs("terrace.vllm", "WARNING"):
            self.daemon.kill()
            self.assertEqual(decode.matched(continued), (0, False))

    def test_what_is_followed_by_a_request_that_ends_is_forgotten(self) -> None:
        decode = self.engine()
        for _ in range(handover.IN_PROGRESS_MAX + 2):
            self.still_waits(decode, asking("d", follow="x", follow_seconds=3000))
            decode.scheduler.finished("d")
        self.assertEqual(len(decode.scheduler._handover), 0)

    def test_more_than_so_many_do_without(self) -> None:
        decode = self.engine()
        for i in range(handover.IN_PROGRESS_MAX):
            self.assertIsNone(decode.scheduler.matched(asking(f"d{i}", follow="x", follow_seconds=3000), 0)[0])
        with self.assertLogs("terrace.vllm", "WARNING") as said:
            self.assertEqual(decode.matched(asking("one more", follow="x", follow_seconds=3000)), (0, False))
        self.assertIn("at once", said.output[0])


class ParametersOfRequests(unittest.TestCase):
    def read(self, given: Any) -> tuple[Parameters, list[str]]:
        said: list[str] = []
        return parameters_of(SimpleNamespace(kv_transfer_params=given), said.append), said

    def test_names_become_ids(self) -> None:
        one, said = self.read({"terrace_announce": "a", "do_remote_decode": True})
        self.assertEqual((len(one.announce), one.follow, said), (16, b"", []))
        two, _ = self.read({"terrace_follow": "a", "terrace_follow_seconds": 3})
        self.assertEqual((two.follow, two.follow_seconds), (one.announce, 3.0))
        turn, said = self.read({"terrace_session": "a", "terrace_session_ends": True, "terrace_think_seconds": 86_400})
        self.assertEqual((turn.session > 0, turn.session_ends, turn.think_seconds, said), (True, True, 86_400.0, []))
        other, _ = self.read({"terrace_session": "b"})
        self.assertNotEqual(turn.session, other.session)

    def test_what_cannot_be_understood_is_left_out(self) -> None:
        for wrong in ({"terrace_follow": 7}, {"terrace_follow": ""}, {"terrace_follow_seconds": -1},
                      {"terrace_follow_seconds": True}, {"terrace_follow_seconds": float("nan")}, {"terrace_fellow": "a"},
                      {"terrace_session": 7}, {"terrace_session": ""}, {"terrace_session_ends": 1}, {"terrace_session_ends": "no"},
                      {"terrace_think_seconds": 0}, {"terrace_think_seconds": "5"}, {"terrace_think_seconds": 1e9}):
            asks, said = self.read(wrong)
            self.assertEqual((asks, len(said)), (NOTHING, 1), wrong)
            self.assertIn(next(iter(wrong)), said[0])
        asks, said = self.read({"terrace_follow": "a", "terrace_announce": []})
        self.assertEqual((len(asks.follow), len(said)), (16, 1))

    def test_other_engines_parameters_are_not_looked_at(self) -> None:
        others: list[Any] = [None, {}, [], "terrace_follow", {"do_remote_prefill": True, 7: 7}, {"terrace_follow": None}]
        for given in others:
            self.assertEqual(self.read(given), (NOTHING, []))
        self.assertEqual(parameters_of(SimpleNamespace(), print), NOTHING)


if __name__ == "__main__":
    unittest.main()

"""terrace.vllm.cache with a real daemon and a host pool as vLLM makes it: a file in /dev/shm."""

from __future__ import annotations

import array
import mmap
import os
import time
import unittest
from collections.abc import Callable

import terrace
from daemon import PATIENCE, Daemon
from kills import PLACES, Messages
from terrace.options import Limits
from terrace.vllm.cache import OBJECTS_OF_A_REQUEST, PoolCache
from terrace.vllm.jobs import Finished
from terrace.link import HostPool

ROW_BYTES = 16 << 10
ROWS = 64
SPECS = [
    terrace.SpaceSpec(model="m", dtype="u8", layout=f"group {group}", chunk_tokens=16,
                      pools=[terrace.Pool("rows", object_bytes=ROW_BYTES)])
    for group in range(2)
]


def key(number: int, group: int = 0) -> bytes:
    return number.to_bytes(32, "big") + group.to_bytes(4, "big")


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("not within the patience of a test")
        time.sleep(0.001)


class Engine:
    """A pool with its cache, as one engine process has them."""

    def __init__(self, socket: str, limits: Limits = Limits(lookup=PATIENCE), rows: int = ROWS) -> None:
        self.changes: list[int] = []
        self.path = f"/dev/shm/terrace-test-{os.getpid()}-{id(self)}"
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        os.ftruncate(descriptor, rows * ROW_BYTES)
        self.memory = mmap.mmap(descriptor, rows * ROW_BYTES)
        pool = HostPool(descriptor, rows * ROW_BYTES, 0, ROW_BYTES)
        self.cache = PoolCache(socket, SPECS, pool, name="test", limits=limits, changed=self.changes.append)
        self.job = 0

    def close(self) -> None:
        self.cache.close()
        os.unlink(self.path)

    def connect(self) -> None:
        until(lambda: self.cache.connected)

    def fill(self, row: int, text: bytes) -> None:
        self.memory[row * ROW_BYTES:(row + 1) * ROW_BYTES] = text.ljust(ROW_BYTES, b".")

    def text(self, row: int) -> bytes:
        return self.memory[row * ROW_BYTES:(row + 1) * ROW_BYTES].rstrip(b".")

    def begin(self, what: Callable[..., None], keys: list[bytes], rows: list[int], request: str = "r") -> None:
        self.job += 1
        what(self.job, keys, array.array("i", rows), request)

    def finish(self) -> Finished:
        done: list[Finished] = []

        def came() -> bool:
            done.extend(self.cache.finished())
            return bool(done)

        until(came)
        (one,) = done
        return one

    def store(self, keys: list[bytes], rows: list[int]) -> Finished:
        self.begin(self.cache.store, keys, rows)
        return self.finish()

    def load(self, keys: list[bytes], rows: list[int]) -> Finished:
        self.begin(self.cache.load, keys, rows)
        return self.finish()

    def ask(self, keys: list[bytes], request: str = "r") -> list[bool | None]:
        """Asks as the scheduler does, step by step, until all is known; a forward search ends at a miss."""
        told: dict[bytes, bool] = {}
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            self.cache.finished()
            known = True  # all keys before this one are known
            for one in keys:
                answer = told.get(one)
                if answer is None:
                    answer = self.cache.lookup(one, request)
                if answer is not None:
                    told[one] = answer
                known = known and answer is not None
                if answer is False and known:
                    return [told.get(each) for each in keys]
            if len(told) == len(keys):
                return [told[one] for one in keys]
            self.cache.flush()
        raise AssertionError(f"no answer for {len(keys) - len(told)} keys")


class Cases(unittest.TestCase):
    disk_bytes = 0

    def setUp(self) -> None:
        self.daemon = Daemon(disk_bytes=self.disk_bytes)
        self.addCleanup(self.daemon.stop)
        if self.disk_bytes:  # objects stored before the volume is open are not on disk
            with terrace.connect(self.daemon.socket, observes=True, timeout=PATIENCE) as observer:
                until(lambda: [tier.state for tier in observer.status(timeout=PATIENCE).groups[0].tiers] == ["ready"] * 2)

    def engine(self, **settings: object) -> Engine:
        made = Engine(self.daemon.socket, **settings)  # type: ignore[arg-type]
        self.addCleanup(made.close)
        made.connect()
        return made


class Present(Cases):
    def test_what_one_engine_stores_another_finds_and_loads(self) -> None:
        one, two = self.engine(), self.engine()
        keys = [key(1), key(2), key(3, 1)]
        for row, text in ((5, b"five"), (2, b"two"), (9, b"nine")):
            one.fill(row, text)
        self.assertEqual(two.ask(keys[:1]), [False])
        two.cache.forget("r")
        stored = one.store(keys, [5, 2, 9])
        self.assertEqual((stored.success, stored.nbytes), (True, 3 * ROW_BYTES))
        self.assertEqual(two.ask(keys), [True] * 3)
        loaded = two.load(keys, [0, 1, 60])
        self.assertEqual((loaded.success, set(loaded.arrived), loaded.nbytes), (True, set(keys), 3 * ROW_BYTES))
        self.assertEqual([two.text(row) for row in (0, 1, 60)], [b"five", b"two", b"nine"])
        self.assertFalse(two.cache.busy)

    def test_groups_do_not_share_keys(self) -> None:
        one = self.engine()
        one.store([key(1, 0)], [0])
        self.assertEqual(one.ask([key(1, 1)]), [False])
        self.assertEqual(one.ask([key(1, 2)]), [False])  # there is no such group
        self.assertFalse(one.store([key(1, 2)], [0]).success)

    def test_a_load_delivers_up_to_the_first_that_is_missing(self) -> None:
        one = self.engine()
        one.fill(0, b"zero")
        one.store([key(1)], [0])
        loaded = one.load([key(1), key(2), key(3)], [4, 5, 6])
        self.assertEqual((loaded.success, loaded.arrived, loaded.lost), (False, [key(1)], [key(2), key(3)]))
        self.assertEqual(one.text(4), b"zero")
        self.assertIsNone(one.cache.lookup(key(2), "r"))
        self.assertEqual(one.load([key(1), key(2)], [4, 5]).lost, [key(2)])
        self.assertEqual(one.cache.lookup(key(2), "r"), False)  # at once, or its request would retry for ever

    def test_more_than_one_request_holds(self) -> None:
        count = OBJECTS_OF_A_REQUEST * 10 + 3
        one = self.engine()
        keys = [key(i) for i in range(count)]
        rows = [i % ROWS for i in range(count)]
        for row in range(ROWS):
            one.fill(row, b"%d" % row)
        stored = one.store(keys[:500], rows[:500])
        self.assertTrue(stored.success)
        self.assertEqual(one.ask(keys[:500]), [True] * 500)
        found = one.ask(keys)
        self.assertEqual(found[:501], [True] * 500 + [False])
        self.assertTrue(one.load(keys[448:500], rows[448:500][::-1]).success)
        self.assertEqual(one.text(rows[448]), b"%d" % rows[499])

    def test_a_lookup_from_the_end_finds_what_lies_before_a_gap(self) -> None:
        one = self.engine()
        keys = [key(i) for i in range(20)]
        one.store(keys[:10], list(range(10)))
        asked = keys[::-1]
        answers: dict[bytes, bool | None] = {}

        def all_known() -> bool:
            one.cache.finished()
            for each in asked:
                if answers.get(each) is None:
                    answers[each] = one.cache.lookup(each, "r")
            one.cache.flush(lambda request, each: int.from_bytes(each[:32], "big"))
            return None not in answers.values()

        until(all_known)
        self.assertEqual([answers[each] for each in keys], [True] * 10 + [False] * 10)

    def test_drain_waits_for_what_is_under_way(self) -> None:
        one = self.engine()
        for i in range(20):
            one.begin(one.cache.store, [key(i)], [i])
        self.assertTrue(one.cache.drain())
        self.assertTrue(one.cache.busy)  # not reported yet
        jobs = one.cache.finished()
        self.assertEqual([job.job for job in sorted(jobs, key=lambda job: job.job)], list(range(1, 21)))
        sent = [job for job in jobs if job.success]
        self.assertGreaterEqual(len(sent), 8)
        self.assertFalse(one.cache.busy)


class Away(Cases):
    disk_bytes = 64 << 20

    def test_without_a_daemon_everything_misses_and_nothing_waits(self) -> None:
        with self.assertLogs("terrace.vllm", "WARNING") as log:
            one = Engine("/nowhere/terrace.sock")
            self.addCleanup(one.close)
            until(lambda: bool(log.output))
        self.assertIn("cannot use the Terrace daemon at /nowhere/terrace.sock", log.output[0])
        self.assertEqual(one.ask([key(1)]), [False])
        self.assertFalse(one.store([key(1)], [0]).success)
        self.assertFalse(one.load([key(1)], [0]).success)

    def test_an_engine_that_starts_waits_for_the_daemon(self) -> None:
        self.daemon.pause()
        self.addCleanup(self.daemon.resume)
        one = Engine(self.daemon.socket)
        self.addCleanup(one.close)
        self.assertFalse(one.cache.connected)
        self.daemon.resume()
        one.cache.await_attempt(PATIENCE)
        self.assertTrue(one.cache.connected)

    def test_a_daemon_that_is_killed_and_comes_back(self) -> None:
        one = self.engine()
        one.fill(0, b"zero")
        self.assertTrue(one.store([key(1)], [0]).success)
        with self.assertLogs("terrace.vllm", "WARNING") as log:
            self.daemon.terminate()
            self.assertEqual(one.ask([key(1)]), [False])
            self.assertFalse(one.store([key(2)], [0]).success)
            until(lambda: bool(log.output))  # another thread logs it, possibly later
        self.assertRegex(log.output[0], "is lost|has ended")
        until(lambda: sum(one.changes) == 0)  # what a gauge shows
        self.daemon.start()
        one.connect()
        until(lambda: sum(one.changes) == 1)

        def found() -> bool:
            one.cache.forget("r")
            return one.ask([key(1)]) == [True]

        until(found)  # true once the volume is open
        self.assertTrue(one.load([key(1)], [3]).success)
        self.assertEqual(one.text(3), b"zero")

    def test_a_daemon_that_is_killed_at_any_message_of_a_load(self) -> None:
        """Rows contain garbage before: each key's row has its bytes, or the key is reported as lost."""
        one = self.engine()
        keys = [key(number, group) for number in range(3) for group in range(2)]
        texts = [b"%d" % number for number in range(len(keys))]
        for place in PLACES:
            for number in (1, 2):  # one request for each group
                for row, text in enumerate(texts):
                    one.fill(row, text)
                self.assertTrue(one.store(keys, list(range(len(keys)))).success)
                rows = list(range(20, 20 + len(keys)))
                for row in rows:
                    one.fill(row, b"garbage")
                with Messages(self.daemon, self.daemon.kill, number, place) as messages:
                    done = one.load(keys, rows)
                self.assertGreaterEqual(messages.requests, number)
                self.assertEqual((sorted(done.arrived + done.lost), done.success), (sorted(keys), not done.lost))
                for row, text, each in zip(rows, texts, keys):
                    self.assertTrue(each in done.lost or one.text(row) == text, f"{place} {number}")
                self.assertTrue(done.lost or place == PLACES[2])
                until(lambda: not one.cache.connected)
                self.daemon.start()
                one.connect()

    def test_an_engine_without_requests_connects_again(self) -> None:
        one = self.engine()
        before = one.cache._link.session
        self.daemon.kill()
        until(lambda: not one.cache.connected)
        self.daemon.start()
        one.connect()
        self.assertIsNot(one.cache._link.session, before)
        self.assertTrue(one.store([key(1)], [0]).success)
        self.assertEqual(one.ask([key(1)]), [True])

    def test_a_transfer_of_a_daemon_that_stands_still_ends_when_it_can_no_longer_touch_its_rows(self) -> None:
        one = self.engine(limits=Limits(lookup=1.0))
        one.store([key(1)], [0])
        self.daemon.pause()
        self.addCleanup(self.daemon.resume)
        one.begin(one.cache.load, [key(1)], [1])
        self.assertEqual(one.ask([key(2)]), [False])
        one.cache._limits = Limits(lookup=PATIENCE)  # a second wait would take that long
        began = time.monotonic()
        self.assertEqual(one.ask([key(3)]), [False])  # at once, because one late answer is enough to know
        self.assertLess(time.monotonic() - began, PATIENCE / 2)
        self.assertEqual(one.cache.finished(), [])
        self.assertTrue(one.cache.busy)
        self.assertFalse(one.cache.drain(0.1))
        self.daemon.kill()
        self.assertFalse(one.finish().success)
        self.assertFalse(one.cache.busy)

    def test_no_call_waits_for_a_daemon_that_stands_still(self) -> None:
        one = self.engine(rows=256)  # its lookups may take long
        self.daemon.pause()
        self.addCleanup(self.daemon.resume)
        slowest = 0.0
        for turn in range(40):  # many more than may be in flight
            keys = [key(256 * turn + i) for i in range(256)]
            began = time.monotonic()
            self.assertEqual([one.cache.lookup(each, "r") for each in keys], [None] * 256)
            one.cache.flush()
            one.begin(one.cache.store, keys, list(range(256)))
            one.begin(one.cache.load, keys, list(range(256)))
            self.assertEqual(one.cache.finished(), [])
            slowest = max(slowest, time.monotonic() - began)
        self.assertLess(slowest, PATIENCE / 2)  # a call that waited would wait for that long
        self.daemon.resume()
        done: list[Finished] = []

        def all_done() -> bool:
            done.extend(one.cache.finished())
            return len(done) == 80

        until(all_done)
        self.assertEqual([job.success for job in done if not job.is_load], [True] * 40)

    def test_a_late_answer_brings_the_daemon_back(self) -> None:
        one = self.engine(limits=Limits(lookup=0.05))
        one.store([key(1)], [0])
        self.daemon.pause()
        self.assertEqual(one.ask([key(2)]), [False])
        self.daemon.resume()

        def found() -> bool:
            one.cache.forget("r")
            return one.ask([key(1)]) == [True]

        until(found)

    def test_closing_ends_the_connection(self) -> None:
        one = Engine(self.daemon.socket)
        one.connect()
        one.begin(one.cache.store, [key(1)], [0])
        one.close()
        with terrace.connect(self.daemon.socket, observes=True, timeout=PATIENCE) as observer:
            until(lambda: not [c for c in observer.status(timeout=PATIENCE).clients if c.name == "test"])
        self.assertTrue(one.cache.finished()[0].success)


if __name__ == "__main__":
    unittest.main()

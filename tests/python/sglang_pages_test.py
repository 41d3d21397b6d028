"""terrace.sglang without SGLang: pages of a host pool, with a real daemon, and their spaces."""

from __future__ import annotations

import hashlib
import logging
import os
import threading
import time
import unittest
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from unittest import mock

import terrace
from daemon import PATIENCE, Daemon
from kills import PLACES, Messages
from terrace import pages
from terrace.link import HostPool
from terrace.options import Limits
from terrace.pages import Pages
from terrace.sglang.identity import Owner, digests_of, spec_of
from terrace.weights import Weights

RUN_BYTES = 4096  # bytes of K, and of V, of a page
PAGES = 64
V = PAGES * RUN_BYTES  # offset where V begins
LOG = logging.getLogger("terrace.test")


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("not within the patience of a test")
        time.sleep(0.001)


def config(**changed: Any) -> SimpleNamespace:
    """Returns an object like HiCacheStorageConfig."""
    given = dict(tp_rank=0, tp_size=1, pp_rank=0, pp_size=1, attn_cp_rank=0, attn_cp_size=1, is_mla_model=False,
                 model_name="m", dcp_size=1, dcp_rank=0)
    return SimpleNamespace(**{**given, **changed})


def host_pool(**changed: Any) -> SimpleNamespace:
    given = dict(layout="page_first_direct", page_size=32, layer_num=2, head_num=2, head_dim=64, dtype="torch.bfloat16")
    return SimpleNamespace(**{**given, **changed})


SPEC = spec_of(config(), host_pool(), "kv", [RUN_BYTES, RUN_BYTES], Owner("sglang test", Weights("", {})))


def digest(number: int) -> bytes:
    return hashlib.sha256(b"%d" % number).digest()


class Door:
    """A host pool with its pages in the daemon, as one of an engine's threads has it."""

    def __init__(self, socket: str, limits: Limits = Limits(lookup=PATIENCE)) -> None:
        self.memory = terrace.Memory(2 * V)
        self.view = memoryview(self.memory)
        pool = HostPool(os.dup(self.memory.fileno()), self.memory.nbytes)
        self.pages = Pages(socket, pool, name="test", limits=limits, log=LOG, specs=[SPEC])

    def connect(self) -> None:
        until(lambda: self.pages.connected)

    def fill(self, page: int, text: bytes) -> None:
        for begin, part in ((0, b"K"), (V, b"V")):
            at = begin + page * RUN_BYTES
            self.view[at:at + RUN_BYTES] = (part + text).ljust(RUN_BYTES, b".")

    def text(self, page: int) -> list[bytes]:
        return [bytes(self.view[at:at + RUN_BYTES]).rstrip(b".") for at in (page * RUN_BYTES, V + page * RUN_BYTES)]

    def runs(self, pages: list[int]) -> tuple[list[tuple[int, int]], list[int]]:
        runs = [(begin + page * RUN_BYTES, RUN_BYTES) for page in pages for begin in (0, V)]
        return runs, [2] * len(pages)

    def store(self, numbers: list[int], pages: list[int], parent: bytes = b"") -> bool:
        return self.pages.store(SPEC, [digest(one) for one in numbers], *self.runs(pages), parent)

    def load(self, numbers: list[int], pages: list[int]) -> int:
        return self.pages.load(SPEC, [digest(one) for one in numbers], *self.runs(pages))

    def found(self, numbers: list[int]) -> int:
        return self.pages.found(SPEC, [digest(one) for one in numbers])


class Cases(unittest.TestCase):
    disk_bytes = 0

    def setUp(self) -> None:
        self.daemon = Daemon(disk_bytes=self.disk_bytes)
        self.addCleanup(self.daemon.stop)

    def door(self, limits: Limits = Limits(lookup=PATIENCE)) -> Door:
        made = Door(self.daemon.socket, limits)
        self.addCleanup(made.pages.close)
        made.connect()
        return made


class Present(Cases):
    def test_what_one_stores_another_finds_and_loads(self) -> None:
        one, two = self.door(), self.door()
        for page, text in ((5, b"five"), (2, b"two")):
            one.fill(page, text)
        self.assertEqual(two.found([1, 2]), 0)
        self.assertTrue(one.store([1, 2], [5, 2]))
        self.assertEqual(two.found([1, 2, 3]), 2)
        self.assertEqual(two.load([1, 2], [0, 63]), 2)
        self.assertEqual([two.text(0), two.text(63)], [[b"Kfive", b"Vfive"], [b"Ktwo", b"Vtwo"]])

    def test_pages_after_others_are_stored_without_them(self) -> None:
        one = self.door()
        one.fill(7, b"seven")
        self.assertTrue(one.store([2], [7], parent=digest(1)))
        self.assertEqual((one.found([2]), one.found([1, 2])), (1, 0))
        self.assertEqual(one.load([2], [8]), 1)
        self.assertEqual(one.text(8), [b"Kseven", b"Vseven"])

    def test_each_page_of_many_is_known(self) -> None:
        one = self.door()
        stored = [1, 2, 4, 5, 6, 9, 12, 13, 20]
        one.store(stored, list(range(len(stored))))
        for asked in ([], [1], [3], list(range(1, 3)), list(range(30)), [20, 3, 1, 3, 5, 3, 7, 3, 9, 3, 12]):
            for alone in (64, 4):  # lookups in flight
                with self.subTest(asked=asked, alone=alone), mock.patch.object(pages, "ALONE_MAX", alone):
                    present = one.pages.present(SPEC, [digest(number) for number in asked])
                    self.assertEqual(present, [number in stored for number in asked])

    def test_batches_beyond_a_requests_bound_go_in_parts(self) -> None:
        one = self.door()
        with mock.patch.object(pages, "PAGES_MAX", 2):
            for page in range(5):
                one.fill(page, b"%d" % page)
            self.assertTrue(one.store([1, 2, 3, 4, 5], [0, 1, 2, 3, 4]))
            self.assertEqual([one.found(asked) for asked in ([1, 2, 3, 4, 5, 6], [1, 2, 3, 9, 4], [1, 2], [9])], [5, 3, 2, 0])
            self.assertEqual(one.load([1, 2, 3, 4, 5, 6], [10, 11, 12, 13, 14, 15]), 5)
            self.assertEqual([one.text(10 + page)[0] for page in range(5)], [b"K%d" % page for page in range(5)])
            self.assertEqual(one.load([1, 2, 9, 4], [20, 21, 22, 23]), 2)

    def test_an_empty_batch_is_answered(self) -> None:
        one = self.door()
        self.assertEqual((one.found([]), one.load([], []), one.store([], [])), (0, 0, True))

    def test_without_a_daemon_nothing_is_present(self) -> None:
        one = self.door()
        one.store([1], [0])
        self.daemon.kill()
        until(lambda: not one.pages.connected)
        self.assertEqual(one.pages.present(SPEC, [digest(1)] * 9), [False] * 9)

    def test_a_load_ends_at_the_first_page_that_is_missing(self) -> None:
        one = self.door()
        one.fill(0, b"zero")
        one.store([1], [0])
        self.assertEqual(one.load([1, 2, 3], [4, 5, 6]), 1)
        self.assertEqual(one.text(4), [b"Kzero", b"Vzero"])
        self.assertEqual(one.load([9], [4]), 0)
        self.assertEqual(one.found([]), 0)

    def test_a_refused_store_is_no_success_and_the_next_one_is(self) -> None:
        one = self.door()
        with self.assertLogs(LOG, "WARNING") as log:
            outside = one.pages.store(SPEC, [digest(1)], [(0, RUN_BYTES), (2 * V, RUN_BYTES)], [2])
        self.assertFalse(outside)
        self.assertIn("a store of 1 pages failed", log.output[0])
        self.assertEqual(one.found([1]), 0)
        self.assertTrue(one.store([1], [0]))

    def test_of_more_pages_than_a_request_may_name_the_first_are_found(self) -> None:
        one = self.door()
        self.assertTrue(one.store([0, 1, 2], [0, 1, 2]))
        self.assertEqual(one.found([0, 1, 2] + [7] * 65536), 3)

    def test_cleared_pages_are_gone(self) -> None:
        one = self.door()
        one.store([1], [0])
        one.pages.clear(SPEC)
        self.assertEqual(one.found([1]), 0)


class Away(Cases):
    disk_bytes = 64 << 20

    def test_without_a_daemon_everything_misses(self) -> None:
        with self.assertLogs(LOG, "WARNING") as log:
            one = Door("/nowhere/terrace.sock")
            self.addCleanup(one.pages.close)
            until(lambda: bool(log.output))
        self.assertEqual((one.found([1]), one.load([1], [0]), one.store([1], [0])), (0, 0, False))
        one.pages.clear(SPEC)  # nothing is there

    def test_a_daemon_that_is_killed_and_comes_back(self) -> None:
        one = self.door()
        one.store([1], [0])
        with self.assertLogs(LOG, "WARNING") as log:
            self.daemon.kill()
            self.assertFalse(one.store([2], [0]))
            self.assertEqual((one.found([1]), one.load([1], [0])), (0, 0))
            until(lambda: bool(log.output))  # another thread logs it, possibly later
        self.daemon.start()
        one.connect()
        self.assertTrue(one.store([3], [0]))
        self.assertEqual(one.found([3]), 1)

    def test_a_daemon_that_is_killed_at_any_message_of_a_load(self) -> None:
        """Pages contain garbage before: those that are reported as arrived have their bytes."""
        one = self.door()
        for place in PLACES:
            for number in range(3):
                one.fill(number, b"%d" % number)
            self.assertTrue(one.store([0, 1, 2], [0, 1, 2]))
            for page in range(20, 23):
                one.fill(page, b"garbage")
            with Messages(self.daemon, self.daemon.kill, 1, place):
                arrived = one.load([0, 1, 2], [20, 21, 22])
            self.assertTrue(arrived == 0 or place == PLACES[2])
            for number in range(arrived):
                self.assertEqual(one.text(20 + number), [b"K%d" % number, b"V%d" % number])
            until(lambda: not one.pages.connected)
            self.daemon.start()
            one.connect()

    def test_one_late_answer_is_waited_for_once(self) -> None:
        one = self.door(Limits(lookup=0.2))
        self.daemon.pause()
        self.addCleanup(self.daemon.resume)
        with self.assertLogs(LOG, "WARNING") as log:
            self.assertEqual(one.found([1]), 0)
        self.assertIn("everything misses until it comes", log.output[0])
        one.pages._limits = Limits(lookup=PATIENCE)  # a second wait would exceed the test's time limit
        for _ in range(20):
            self.assertEqual(one.found([1]), 0)
        self.daemon.resume()
        one.store([1], [0])
        until(lambda: one.found([1]) == 1)

    def test_a_space_that_does_not_open_in_time_costs_one_wait(self) -> None:
        one = self.door(Limits(lookup=0.2))
        self.daemon.pause()
        self.addCleanup(self.daemon.resume)
        other = spec_of(config(model_name="other"), host_pool(), "kv", [RUN_BYTES, RUN_BYTES], Owner("sglang test", Weights("", {})))
        with self.assertLogs(LOG, "WARNING") as log:
            self.assertEqual(one.pages.found(other, [digest(1)]), 0)
        self.assertIn("did not open a space", log.output[0])
        self.assertFalse(one.pages.connected)
        one.pages._limits = Limits(lookup=PATIENCE)  # a second wait would exceed the test's time limit
        for _ in range(20):
            self.assertEqual(one.pages.found(other, [digest(1)]), 0)
        self.daemon.resume()
        one.connect()
        self.assertTrue(one.store([1], [0]))

    def test_a_load_of_a_daemon_that_stands_still_ends_when_it_can_no_longer_touch_the_pool(self) -> None:
        one = self.door()
        one.store([1], [0])
        self.daemon.pause()
        self.addCleanup(self.daemon.resume)
        arrived: list[int] = []
        loading = threading.Thread(target=lambda: arrived.append(one.load([1], [1])))
        loading.start()
        loading.join(0.2)
        self.assertTrue(loading.is_alive())
        self.daemon.kill()
        loading.join(PATIENCE)
        self.assertEqual(arrived, [0])


class Spaces(unittest.TestCase):
    def test_what_decides_about_the_bytes_makes_another_space(self) -> None:
        owner = Owner("sglang 1", Weights("revision", {}), "salt")
        made = spec_of(config(), host_pool(), "kv", [8], owner)
        self.assertEqual(made, spec_of(config(), host_pool(), "kv", [8], owner))
        others = [
            spec_of(config(model_name="n"), host_pool(), "kv", [8], owner),
            spec_of(config(pp_rank=1, pp_size=2), host_pool(), "kv", [8], owner),
            spec_of(config(attn_cp_size=2), host_pool(), "kv", [8], owner),
            spec_of(config(), host_pool(layer_num=3), "kv", [8], owner),
            spec_of(config(), host_pool(layout="page_first"), "kv", [8], owner),
            spec_of(config(), host_pool(dtype="torch.float16"), "kv", [8], owner),
            spec_of(config(), host_pool(), "swa", [8], owner),
            spec_of(config(), host_pool(), "kv", [4, 4], owner),
            spec_of(config(), host_pool(), "kv", [8], Owner("sglang 2", Weights("revision", {}), "salt")),
            spec_of(config(), host_pool(), "kv", [8], Owner("sglang 1", Weights("", {}), "salt")),
            spec_of(config(), host_pool(), "kv", [8], Owner("sglang 1", Weights("revision", {"dtype": "half"}), "salt")),
            spec_of(config(), host_pool(), "kv", [8], Owner("sglang 1", Weights("revision", {}))),
        ]
        self.assertNotIn(made, others)
        self.assertEqual(len({repr(one) for one in others}), len(others))

    def test_ranks_are_those_of_the_space(self) -> None:
        owner = Owner("sglang 1", Weights("", {}))
        made = [spec_of(config(tp_size=2, tp_rank=rank), host_pool(), "kv", [8], owner) for rank in range(2)]
        self.assertEqual([(one.world_size, one.rank, one.pools[0].replicated) for one in made], [(2, 0, False), (2, 1, False)])
        self.assertEqual(made[0].layout, made[1].layout)
        mla = config(tp_size=2, is_mla_model=True)
        self.assertTrue(spec_of(mla, host_pool(), "kv", [8], owner).pools[0].replicated)
        self.assertFalse(spec_of(mla, host_pool(), "mamba", [8], owner).pools[0].replicated)

    def test_long_names_are_hashed(self) -> None:
        self.assertEqual(len(spec_of(config(model_name="n" * 300), host_pool(), "kv", [8], Owner("1", Weights("", {}))).model), 64)

    def test_keys(self) -> None:
        name = digest(1).hex()
        self.assertEqual(digests_of([name]), [digest(1)])
        for text in ("", "z" * 64, " " * 64, name.upper(), f"{name[:62]}  "):  # keys that are no digests
            (odd,) = digests_of([text])
            self.assertEqual(odd, hashlib.sha256(text.encode()).digest())
        (other,) = digests_of([name + "_L0-2"])
        self.assertEqual((len(other), other == digest(1)), (32, False))


if __name__ == "__main__":
    unittest.main()

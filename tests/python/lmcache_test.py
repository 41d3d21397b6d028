"""terrace.lmcache without LMCache: the calls of its server, with a real daemon."""

from __future__ import annotations

import hashlib
import logging
import mmap
import os
import select
import tempfile
import threading
import time
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import terrace
from daemon import PATIENCE, Daemon
from kills import PLACES, Messages
from terrace.lmcache import keys as keys_of
from terrace.lmcache.connector import TerraceConnector
from terrace.lmcache.keys import Family, Owner, family_of, runs_of, spec_of
from terrace.lmcache.sizes import RECORD_BYTES, SIZES_MAX, Sizes
from terrace.options import Limits
from terrace.spaces import SpaceSpec

OBJECT_BYTES = 24 << 10
LOG = "lmcache.terrace"


def key(number: int, model: str = "a/model", rank: str = "01000100", group: int = 0, salt: str = "") -> str:
    text = f"{model}@{rank}@{group}@{hashlib.sha256(b'%d' % number).hexdigest()}"
    return f"{text}@{salt}" if salt else text


def content(number: int, nbytes: int = OBJECT_BYTES) -> bytes:
    return hashlib.sha256(b"content %d" % number).digest() * (nbytes // 32)


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("not within the patience of a test")


class Level1:
    """LMCache's first level: memory that its objects are views of."""

    def __init__(self, shared: bool, nbytes: int = 4 << 20) -> None:
        self.shared = terrace.Memory(nbytes) if shared else None
        self.private = bytearray(0 if shared else nbytes)
        self.bytes = memoryview(self.shared if self.shared is not None else self.private)

    def objects(self, count: int, nbytes: int = OBJECT_BYTES, first: int = 0) -> list[memoryview]:
        return [self.bytes[at:at + nbytes] for at in range(first * nbytes, (first + count) * nbytes, nbytes)]

    def filled(self, numbers: list[int], nbytes: int = OBJECT_BYTES) -> list[memoryview]:
        views = self.objects(len(numbers), nbytes)
        for view, number in zip(views, numbers):
            view[:] = content(number, nbytes)
        return views


class Server:
    """Uses a connector as LMCache's server does: submits, waits for the eventfd and drains."""

    def __init__(self, connector: TerraceConnector) -> None:
        self.connector = connector
        self.done: dict[int, tuple[bool, str, list[bool] | None]] = {}

    def wait(self, number: int) -> tuple[bool, str, list[bool] | None]:
        while number not in self.done:
            ready, _, _ = select.select([self.connector.event_fd()], [], [], PATIENCE)
            assert ready, "the batch has not ended within the patience of a test"
            for completed, ok, why, results in self.connector.drain_completions():
                self.done[completed] = (ok, why, results)
        return self.done.pop(number)

    def exists(self, keys: list[str]) -> list[bool]:
        ok, why, results = self.wait(self.connector.submit_batch_exists(keys))
        assert ok and results is not None, why
        return results

    def get(self, keys: list[str], views: list[memoryview]) -> list[bool]:
        ok, why, results = self.wait(self.connector.submit_batch_get(keys, views))
        assert ok and results is not None, why
        return results

    def set(self, keys: list[str], views: list[memoryview]) -> bool:
        ok, _, results = self.wait(self.connector.submit_batch_set(keys, views))
        assert results is None
        return ok


class Cases(unittest.TestCase):
    shared = True

    def setUp(self) -> None:
        self.daemon = Daemon(disk_bytes=64 << 20)
        self.addCleanup(self.daemon.stop)
        self.await_disk()
        self.level1 = Level1(self.shared)

    def await_disk(self) -> None:
        """Waits for the disk: objects stored before that are not written there."""
        with terrace.connect(self.daemon.socket, observes=True, timeout=PATIENCE) as observer:
            until(lambda: all(tier.state == "ready" for tier in observer.status(timeout=PATIENCE).groups[0].tiers))

    def server(self, **options: Any) -> Server:
        return Server(self.connector(**options))

    def connector(self, **options: Any) -> TerraceConnector:
        limits = {"lookup_seconds": PATIENCE, "load_seconds": PATIENCE, "revision": ""}
        connector = TerraceConnector(socket=self.daemon.socket, **{**limits, **options})
        self.addCleanup(connector.close)
        return connector


class InPlace(Cases):
    """Tests with L1 in shared memory."""

    def test_what_one_server_stores_another_finds_and_loads(self) -> None:
        one, two = self.server(), self.server()
        keys = [key(number) for number in range(6)]
        self.assertEqual(one.exists(keys), [False] * 6)
        self.assertTrue(one.set(keys, self.level1.filled(list(range(6)))))
        self.assertEqual(two.exists(keys + [key(9)]), [True] * 6 + [False])
        views = self.level1.objects(7, first=20)
        self.assertEqual(two.get(keys + [key(9)], views), [True] * 6 + [False])
        self.assertEqual([bytes(view) for view in views[:6]], [content(number) for number in range(6)])

    def test_operators_see_what_each_connection_is_for(self) -> None:
        one = self.server(name="chat")
        self.assertTrue(one.set([key(1)], self.level1.filled([1])))
        self.assertEqual(one.get([key(1)], self.level1.objects(1)), [True])
        with terrace.connect(self.daemon.socket, observes=True, timeout=PATIENCE) as observer:
            names = [client.name for client in observer.status(timeout=PATIENCE).clients]
        self.assertLessEqual({"chat lookups", "chat loads", "chat stores"}, set(names))

    def test_a_daemon_that_is_killed_at_any_message_of_a_load(self) -> None:
        """Objects contain garbage before: those that are reported as present have their bytes."""
        numbers = list(range(6))
        keys = [key(one, rank=f"0{one % 2}000100") for one in numbers]  # two families, which are loaded one after the other
        for place in PLACES:
            for number in (1, 2):
                one = self.server()
                self.assertTrue(one.set(keys, self.level1.filled(numbers)))
                views = self.level1.objects(len(keys), first=20)
                for view in views:
                    view[:] = bytes([0xA5]) * OBJECT_BYTES
                with Messages(self.daemon, self.daemon.kill, number, place) as messages:
                    there = one.get(keys, views)
                self.assertGreaterEqual(messages.requests, number)
                self.assertTrue(not all(there) or (number, place) == (2, PLACES[2]), place)
                for each, came in enumerate(there):
                    self.assertTrue(not came or bytes(views[each]) == content(each), f"{place} {number}")
                one.connector.close()
                self.daemon.start()
                self.await_disk()

    def test_each_key_is_answered_for_itself(self) -> None:
        one = self.server()
        one.set([key(1), key(4)], self.level1.filled([1, 4]))
        asked = [key(number) for number in (0, 1, 2, 3, 4, 5)]
        there = [False, True, False, False, True, False]
        self.assertEqual(one.exists(asked), there)
        views = self.level1.objects(6, first=20)
        self.assertEqual(one.get(asked, views), there)
        self.assertEqual((bytes(views[1]), bytes(views[4])), (content(1), content(4)))
        self.assertEqual(bytes(views[0]), bytes(OBJECT_BYTES), "what is not there is not written")

    def test_families_of_one_batch(self) -> None:
        one = self.server()
        keys = [key(1), key(1, model="b"), key(1, rank="02000200"), key(1, group=1), key(1, salt="user")]
        self.assertTrue(one.set(keys[:3], self.level1.filled([10, 11, 12])))
        self.assertEqual(one.exists(keys), [True, True, True, False, False])
        views = self.level1.objects(3, first=20)
        self.assertEqual(one.get(keys[:3], views), [True] * 3)
        self.assertEqual([bytes(view) for view in views], [content(10), content(11), content(12)])

    def test_objects_of_several_sizes(self) -> None:
        one, two = self.server(), self.server()
        small, large = self.level1.filled([1], 8 << 10), self.level1.objects(1, first=10)
        large[0][:] = content(2)
        self.assertTrue(one.set([key(1), key(2)], small + large))
        self.assertEqual(two.exists([key(1), key(2)]), [True, True])
        into = [self.level1.bytes[1 << 20:(1 << 20) + (8 << 10)], self.level1.bytes[2 << 20:(2 << 20) + OBJECT_BYTES]]
        self.assertEqual(two.get([key(1), key(2)], into), [True, True])
        self.assertEqual((bytes(into[0]), bytes(into[1])), (content(1, 8 << 10), content(2)))
        self.assertEqual(two.get([key(2)], [into[0]]), [False], "an object of another size is another object")

    def test_an_empty_object_spoils_nothing(self) -> None:
        one, two = self.server(), self.server()
        empty = [self.level1.bytes[0:0]]
        self.assertFalse(one.set([key(1), key(2)], empty + self.level1.filled([2])))
        self.assertEqual(two.exists([key(1), key(2)]), [False, True])
        self.assertTrue(two.set([key(3)], self.level1.filled([3])))
        self.assertEqual(one.exists([key(3)]), [True])

    def test_a_size_that_another_server_adds_later_is_learned(self) -> None:
        one, two = self.server(), self.server()
        one.set([key(1)], self.level1.filled([1]))
        self.assertEqual(two.exists([key(1)]), [True])
        one.set([key(2)], self.level1.filled([2], 8 << 10))
        self.assertEqual(two.exists([key(2)]), [True])

    def test_salts_and_revisions_share_nothing(self) -> None:
        one, other, newer = self.server(), self.server(salt="other"), self.server(revision="2")
        one.set([key(1)], self.level1.filled([1]))
        self.assertEqual((other.exists([key(1)]), newer.exists([key(1)])), ([False], [False]))
        self.assertEqual(other.get([key(1)], self.level1.objects(1, first=20)), [False])

    def restarted(self) -> Server:
        """Returns a server that, as far as weights are concerned, is another process."""
        keys_of._first.clear()
        keys_of._told.clear()
        return self.server(revision=None)

    def test_a_model_in_a_folder_is_known_by_its_files(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            weights = Path(folder, "model.safetensors")
            weights.write_bytes(b"first")
            mine = key(1, model=folder)
            self.restarted().set([mine], self.level1.filled([1]))
            one = self.restarted()
            self.assertEqual(one.exists([mine]), [True])
            weights.write_bytes(b"other")
            with self.assertLogs(LOG, "WARNING") as log:
                self.assertEqual((one.exists([mine]), one.get([mine], self.level1.objects(1))), ([False], [False]))
                self.assertFalse(one.set([mine], self.level1.filled([1])))
            self.assertEqual(sum("not cached until this server is started again" in line for line in log.output), 1)
            self.assertEqual(self.restarted().exists([mine]), [False])
            weights.write_bytes(b"first")
            self.assertEqual(self.restarted().exists([mine]), [True])

    def test_a_model_without_files_is_not_shared_beyond_its_process(self) -> None:
        mine = key(1, model="no/files")
        one = self.restarted()
        with self.assertLogs(LOG, "WARNING") as log:
            one.set([mine], self.level1.filled([1]))
        self.assertIn("KV of 'no/files' is not shared beyond this server: no/files has no files on this machine", log.output[0])
        self.assertEqual(one.exists([mine]), [True])
        with mock.patch.object(os, "getpid", return_value=-1):
            self.assertEqual(one.exists([mine]), [False])

    def test_salts_of_the_server_and_of_a_request_are_not_taken_for_each_other(self) -> None:
        self.server(salt="s").set([key(1)], self.level1.filled([1]))
        self.assertEqual(self.server().exists([key(1, salt="s")]), [False])

    def test_options_are_read_as_what_they_mean(self) -> None:
        self.server(revision=3, lookup_seconds="60").set([key(1)], self.level1.filled([1]))
        self.assertEqual(self.server(revision="3").exists([key(1)]), [True])
        for wrong in ({"revision": 1.1}, {"lookup_seconds": 0}, {"load_seconds": "soon"}, {"salt": True}):
            with self.subTest(wrong=wrong), self.assertRaisesRegex(ValueError, "expected .*, got"):
                self.connector(**wrong)

    def test_keys_that_are_none_fail_and_say_what_was_expected(self) -> None:
        one = self.server()
        with self.assertLogs(LOG, "WARNING"):
            ok, why, results = one.wait(one.connector.submit_batch_exists(["model@1@0"]))
        self.assertEqual((ok, results), (False, None))
        self.assertIn("expected MODEL@RANK@GROUP@HASH", why)
        self.assertEqual(one.exists([key(1)]), [False], "the next batch is answered")

    def test_a_restart_of_both_finds_what_is_on_disk(self) -> None:
        one = self.server()
        keys = [key(number) for number in range(4)]
        self.assertTrue(one.set(keys, self.level1.filled(list(range(4)))))
        one.connector.close()
        self.daemon.terminate()
        self.daemon.start()
        two = self.server()
        self.await_disk()
        self.assertEqual(two.exists(keys), [True] * 4)
        views = self.level1.objects(4, first=20)
        self.assertEqual(two.get(keys, views), [True] * 4)
        self.assertEqual([bytes(view) for view in views], [content(number) for number in range(4)])

    def test_batches_of_all_kinds_at_once(self) -> None:
        one = self.server()
        keys = [key(number) for number in range(8)]
        one.set(keys, self.level1.filled(list(range(8))))
        failures: list[str] = []

        def load(first: int) -> None:
            for _ in range(5):
                views = self.level1.objects(8, first=first)
                number = one.connector.submit_batch_get(keys, views)
                with waiting:
                    if one.wait(number)[2] != [True] * 8 or [bytes(view) for view in views] != [content(n) for n in range(8)]:
                        failures.append(f"from {first}")

        waiting = threading.Lock()
        threads = [threading.Thread(target=load, args=(20 + 10 * n,)) for n in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        self.assertEqual(failures, [])


class Copied(InPlace):
    """Tests with L1 in memory of the server's process alone."""

    shared = False

    def test_more_than_the_staging_memory_has(self) -> None:
        one = self.server()
        level1 = Level1(False, 40 << 20)
        keys = [key(number) for number in range(9)]
        nbytes = 4 << 20
        with self.assertLogs(LOG, "WARNING") as log:
            self.assertTrue(one.set(keys, level1.filled(list(range(9)), nbytes)))
        self.assertIn("LMCache's --no-l1-use-lazy avoids it", log.output[0])
        with mock.patch("sys.argv", ["lmcache", "server", "--no-l1-use-lazy"]):
            with self.assertLogs(LOG, "WARNING") as log:
                self.assertTrue(self.server().set(keys[:1], level1.filled([0], nbytes)))
        self.assertIn("was started with --no-l1-use-lazy or --shm-name", log.output[0])
        self.assertNotIn("avoids it", log.output[0])
        views = level1.objects(9, nbytes)
        present = one.exists(keys)
        level1.bytes[:] = bytes(len(level1.bytes))
        self.assertEqual(one.get(keys, views), present)
        self.assertIn(True, present)
        for number, view in enumerate(views):
            if present[number]:
                self.assertEqual(bytes(view), content(number, nbytes))


class SharedFile(Cases):
    def test_a_segment_by_its_name(self) -> None:
        """Opens a segment as --shm-name does."""
        path = f"/dev/shm/terrace-lmcache-{os.getpid()}"
        with open(path, "w+b") as file:
            self.addCleanup(os.unlink, path)
            file.truncate(1 << 20)
            mapped = mmap.mmap(file.fileno(), 1 << 20)
        one = self.server()
        with memoryview(mapped) as view:
            first, second = view[8192:8192 + OBJECT_BYTES], view[65536:65536 + OBJECT_BYTES]
            first[:] = content(1)
            self.assertTrue(one.set([key(1)], [first]))
            self.assertEqual(one.get([key(1)], [second]), [True])
            self.assertEqual(bytes(second), content(1))
            first.release()
            second.release()


class Away(Cases):
    def test_without_a_daemon_everything_misses(self) -> None:
        with self.assertLogs(LOG, "WARNING"):
            connector = TerraceConnector(socket="/nowhere/terrace.sock")
            self.addCleanup(connector.close)
            one = Server(connector)
            views = self.level1.filled([1])
            self.assertEqual(one.exists([key(1)]), [False])
            self.assertEqual(one.get([key(1)], views), [False])
            self.assertFalse(one.set([key(1)], views))
        self.assertFalse(connector.connected)

    def test_a_daemon_that_is_killed_and_comes_back(self) -> None:
        one = self.server()
        views = self.level1.filled([1])
        self.assertTrue(one.set([key(1)], views))
        with self.assertLogs(LOG, "WARNING") as log:
            self.daemon.kill()
            self.assertEqual(one.exists([key(1)]), [False])
            self.assertEqual(one.get([key(1)], views), [False])
            self.assertFalse(one.set([key(2)], views))
            until(lambda: bool(log.output))  # another thread logs it, possibly later
        self.daemon.start()
        until(lambda: one.set([key(3)], views))
        until(lambda: one.exists([key(3)]) == [True])

    def test_a_daemon_that_stands_still_delays_one_question(self) -> None:
        one = self.server()
        one.set([key(1)], self.level1.filled([1]))
        fresh = Server(self.connector(lookup_seconds=0.2))
        self.assertEqual(fresh.exists([key(1)]), [True])
        self.daemon.pause()
        self.addCleanup(self.daemon.resume)
        with self.assertLogs(LOG, "WARNING"):
            self.assertEqual(fresh.exists([key(1), key(2)]), [False, False])
        fresh.connector._questions._limits = Limits(lookup=PATIENCE)  # a second wait would exceed the time limit
        for _ in range(20):
            self.assertEqual(fresh.exists([key(1), key(2)]), [False, False])
        self.daemon.resume()
        until(lambda: fresh.exists([key(1), key(2)]) == [True, False])

    def test_nothing_is_submitted_after_close(self) -> None:
        connector = TerraceConnector(socket=self.daemon.socket)
        connector.close()
        with self.assertRaisesRegex(RuntimeError, "closed"):
            connector.submit_batch_exists([key(1)])

    def test_close_ends_batches_that_wait_and_may_be_repeated(self) -> None:
        connector = TerraceConnector(socket=self.daemon.socket)
        for number in range(20):
            connector.submit_batch_exists([key(number)])
        connector.close()
        connector.close()
        self.assertEqual(connector.drain_completions(), [])


class Keys(unittest.TestCase):
    def test_the_fields_of_a_key(self) -> None:
        family, digest = family_of("org/model@01000100@2@" + "ab" * 32)
        self.assertEqual((family, digest), (Family("org/model", "01000100-2", ""), bytes([0xAB]) * 32))
        self.assertEqual(family_of("m@1@0@" + "00" * 8 + "@salt")[0].salt, "salt")

    def test_hashes_of_other_forms_are_hashed(self) -> None:
        short, long, words = (family_of(f"m@1@0@{text}")[1] for text in ("ab", "ab" * 40, "words"))
        self.assertEqual({len(short), len(long), len(words)}, {32})
        self.assertEqual(len({short, long, words}), 3)

    def test_what_is_no_key_is_refused(self) -> None:
        for text in ("", "m@1@0", "m@1@0@ab@salt@more"):
            with self.assertRaisesRegex(ValueError, "expected MODEL@RANK@GROUP@HASH"):
                family_of(text)

    def test_runs_keep_the_places_of_their_keys(self) -> None:
        keys = [key(1), key(2, model="b"), key(3)]
        runs = runs_of(keys)
        self.assertEqual([(family.model, places) for family, places, _ in runs], [("a/model", [0, 2]), ("b", [1])])
        runs = runs_of(["m@1@0@" + "ab" * width for width in (32, 16, 32)])  # digests of one width each
        self.assertEqual([(places, {len(one) for one in digests}) for _, places, digests in runs], [([0, 2], {32}), ([1], {16})])

    def test_what_decides_about_the_bytes_makes_another_space(self) -> None:
        family, owner = Family("m", "1-0", "s"), Owner("r", "t")
        made = [
            spec_of(family, 8, owner), spec_of(family, 9, owner), spec_of(Family("n", "1-0", "s"), 8, owner),
            spec_of(Family("m", "2-0", "s"), 8, owner), spec_of(Family("m", "1-0", ""), 8, owner),
            spec_of(family, 8, Owner("", "t")), spec_of(family, 8, Owner("r", "")),
        ]
        self.assertEqual(len({repr(one) for one in made}), len(made))
        self.assertEqual(spec_of(family, 8, owner), made[0])
        self.assertEqual(len(spec_of(Family("n" * 300, "1-0", ""), 8, owner).model), 64)


class Records:
    """The daemon's records, as far as sizes need them: the first one of a digest stays."""

    def __init__(self) -> None:
        self.kept: dict[bytes, bytes] = {}
        self.stores = 0

    def sizes(self) -> Sizes:
        return Sizes(Owner(""), self.kept.get, self.store)

    def store(self, digest: bytes, record: bytes) -> None:
        self.stores += 1
        self.kept.setdefault(digest, record)


class SizesOfAFamily(unittest.TestCase):
    family = Family("m", "1-0", "")

    def test_are_known_to_all_who_read_the_records(self) -> None:
        records = Records()
        one, two = records.sizes(), records.sizes()
        self.assertEqual(two.of(self.family), [])
        one.add(self.family, 100)
        two.add(self.family, 200)
        one.add(self.family, 100)
        self.assertEqual((one.of(self.family), two.of(self.family), records.stores), ([100, 200], [100, 200], 2))
        self.assertEqual(records.sizes().of(Family("m", "2-0", "")), [])
        self.assertEqual({len(record) for record in records.kept.values()}, {RECORD_BYTES})

    def test_the_first_writer_of_a_number_decides(self) -> None:
        records = Records()
        one, two = records.sizes(), records.sizes()
        one.add(self.family, 100)
        two._store = lambda digest, record: records.store(digest, record)
        two.add(self.family, 300)
        self.assertEqual(two.of(self.family), [100, 300])

    def test_records_that_were_evicted_are_written_again(self) -> None:
        records = Records()
        one = records.sizes()
        one.add(self.family, 100)
        records.kept.clear()
        self.assertEqual(one.of(self.family), [100], "its objects may still be there")
        one.add(self.family, 100)
        self.assertEqual(records.sizes().of(self.family), [100])

    def test_without_a_daemon_nothing_is_recorded_and_nobody_waits(self) -> None:
        def lost(digest: bytes, record: bytes) -> None:
            pass

        sizes = Sizes(Owner(""), lambda digest: None, lost)
        sizes.add(self.family, 100)
        self.assertEqual(sizes.of(self.family), [])

    def test_have_a_bound(self) -> None:
        records = Records()
        sizes = records.sizes()
        for nbytes in range(1, SIZES_MAX + 9):
            sizes.add(self.family, nbytes)
        self.assertEqual((len(sizes.of(self.family)), records.stores), (SIZES_MAX, SIZES_MAX))

    def test_a_record_that_is_none_says_nothing_about_the_others(self) -> None:
        records = Records()
        sizes = records.sizes()
        for number, record in enumerate((b'"text"', b"0", b"-4", b"true", b"{", b"\xff")):
            records.kept[sizes._key(self.family, number)] = record.ljust(RECORD_BYTES)
        self.assertEqual(sizes.of(self.family), [])
        sizes.add(self.family, 100)
        self.assertEqual((sizes.of(self.family), records.sizes().of(self.family)), ([100], [100]))

    def test_their_space_is_that_of_no_family(self) -> None:
        space: SpaceSpec = Records().sizes().space
        self.assertNotEqual(space, spec_of(Family("lmcache", "sizes", ""), 8, Owner("")))


if __name__ == "__main__":
    logging.basicConfig()
    unittest.main()

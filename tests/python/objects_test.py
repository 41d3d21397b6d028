"""Lookups, stores, loads, leases, reservations."""

from __future__ import annotations

import array
import contextlib
import dataclasses
import gc
import os
import threading
import unittest
from typing import Any

import terrace
from daemon import CHUNK_TOKENS, OBJECT_BYTES, PATIENCE, SPEC, DaemonTest, chain_of, content_of

Prefix = terrace.Prefix


class Objects(DaemonTest):
    def test_what_is_stored_by_digests_is_found_and_loaded(self) -> None:
        chain = chain_of(1, 4)
        memory = terrace.Memory(8 * OBJECT_BYTES)
        region = self.daemon.register_region(memory, timeout=PATIENCE)
        self.assertTrue(region.mapped)
        view = memoryview(memory)
        for i, digest in enumerate(chain):
            view[i * OBJECT_BYTES:(i + 1) * OBJECT_BYTES] = content_of(digest)
        runs = [(i * OBJECT_BYTES, OBJECT_BYTES) for i in range(4)]
        prefix = Prefix.of_digests(chain)
        stored = self.daemon.store(self.space, prefix, region, runs, timeout=PATIENCE)
        self.assertEqual((stored.stored_chunks, stored.present_chunks, stored.nbytes), (4, 0, 4 * OBJECT_BYTES))
        again = self.daemon.store(self.space, prefix, region, runs, timeout=PATIENCE)
        self.assertEqual((again.stored_chunks, again.present_chunks), (0, 4))

        found = self.daemon.lookup(self.space, Prefix.of_digests(b"".join(chain) + bytes(32)), timeout=PATIENCE)
        self.assertEqual((found.requested_chunks, found.found_chunks), (5, 4))
        self.assertEqual(found.found_tokens, 4 * CHUNK_TOKENS)
        self.assertEqual(list(found.tiers), [terrace.Tier.HOST] * 4)
        self.assertIsNone(found.lease)

        half = view[4 * OBJECT_BYTES:]
        pieces = [half[i * OBJECT_BYTES:(i + 1) * OBJECT_BYTES] for i in range(4)]
        loaded = self.daemon.load(self.space, prefix, region, pieces, timeout=PATIENCE)
        self.assertEqual((loaded.requested_chunks, loaded.delivered_chunks), (4, 4))
        self.assertEqual(loaded.nbytes, 4 * OBJECT_BYTES)
        self.assertEqual(loaded.bytes_by_tier[terrace.Tier.HOST], 4 * OBJECT_BYTES)
        self.assertEqual([bytes(piece) for piece in pieces], [content_of(digest) for digest in chain])

    def test_a_list_of_tokens_may_change_while_it_is_read(self) -> None:
        class Token:
            def __index__(self) -> int:
                del tokens[2:]
                return 1

        tokens: list[Any] = [1, Token(), 3]
        with self.assertRaises(IndexError):
            Prefix.of_tokens(tokens)

    def test_tokens_of_any_kind_name_the_same_chunks(self) -> None:
        tokens = [7 * i + 70_000 for i in range(2 * CHUNK_TOKENS + 3)]
        memory = terrace.Memory(2 * OBJECT_BYTES)
        region = self.daemon.register_region(memory, timeout=PATIENCE)
        self.daemon.store(self.space, tokens, region, [(0, OBJECT_BYTES), (OBJECT_BYTES, OBJECT_BYTES)], timeout=PATIENCE)
        for same in (tokens, tuple(tokens), array.array("i", tokens), array.array("I", tokens), array.array("q", tokens),
                     memoryview(array.array("Q", tokens)), Prefix.of_tokens(iter(tokens))):
            found = self.daemon.lookup(self.space, same, timeout=PATIENCE)
            self.assertEqual((found.found_chunks, found.found_tokens), (2, 2 * CHUNK_TOKENS), type(same))
        self.assertEqual(self.daemon.lookup(self.space, tokens[1:], timeout=PATIENCE).found_chunks, 0)
        salted = Prefix.of_tokens(tokens, salt="another")
        self.assertEqual(self.daemon.lookup(self.space, salted, timeout=PATIENCE).found_chunks, 0)
        exact = self.daemon.lookup(self.space, tokens[:2 * CHUNK_TOKENS], timeout=PATIENCE)
        self.assertLess(exact.usable_tokens, 2 * CHUNK_TOKENS)

    def test_an_empty_prompt_finds_nothing_as_a_short_one_does(self) -> None:
        for prompt in ([], (), array.array("I"), [1], Prefix.of_digests([])):
            found = self.daemon.lookup(self.space, prompt, timeout=PATIENCE)
            self.assertEqual((found.found_chunks, found.found_tokens), (0, 0), prompt)
        with self.daemon.lookup(self.space, [], lease=True, timeout=PATIENCE).lease or contextlib.nullcontext():
            pass

    def test_rows_name_runs_of_one_size(self) -> None:
        chain = chain_of(30, 3)
        memory = terrace.Memory(9 * OBJECT_BYTES)
        region = self.daemon.register_region(memory, timeout=PATIENCE)
        view = memoryview(memory)
        for row, digest in zip((7, 0, 3), chain):
            view[(row + 1) * OBJECT_BYTES:(row + 2) * OBJECT_BYTES] = content_of(digest)
        rows = terrace.Rows(array.array("i", (7, 0, 3)), OBJECT_BYTES, offset=OBJECT_BYTES)
        self.assertEqual((len(rows), repr(rows)), (3, "<terrace.Rows: 3>"))
        prefix = Prefix.of_digests(chain)
        self.assertEqual(self.daemon.store(self.space, prefix, region, rows, timeout=PATIENCE).stored_chunks, 3)
        self.daemon.load(self.space, prefix, region, terrace.Rows([2, 1, 0], OBJECT_BYTES), timeout=PATIENCE)
        for row, digest in zip((2, 1, 0), chain):
            self.assertEqual(view[row * OBJECT_BYTES:(row + 1) * OBJECT_BYTES], content_of(digest))
        slots = terrace.Rows.in_slots(OBJECT_BYTES, 2 * OBJECT_BYTES, 3, [(OBJECT_BYTES, OBJECT_BYTES)])
        self.daemon.load(self.space, prefix, region, slots, timeout=PATIENCE)
        for row, digest in zip((2, 4, 6), chain):
            self.assertEqual(view[row * OBJECT_BYTES:(row + 1) * OBJECT_BYTES], content_of(digest))
        for wrong in (terrace.Rows([0, 1], OBJECT_BYTES), terrace.Rows([0, 1, 9], OBJECT_BYTES)):
            with self.assertRaises(terrace.BadRequest):
                self.daemon.load(self.space, prefix, region, wrong, timeout=PATIENCE)
        with self.assertRaises(TypeError):
            terrace.Rows(["one"], OBJECT_BYTES)  # type: ignore[list-item]

    def test_leased_objects_are_read_in_place(self) -> None:
        chain = chain_of(2, 3)
        self.store(chain)
        with self.lease(chain) as lease:
            located = self.daemon.read_lease(lease, timeout=PATIENCE)
            self.assertEqual(len(located), 3)
            for block, digest in zip(located, chain):
                view = memoryview(block)
                self.assertTrue(view.readonly)
                self.assertEqual(view, content_of(digest))
            with self.assertRaises(TypeError):
                memoryview(located[0])[0] = 1
            part = self.daemon.read_lease(lease.id, first_chunk=1, chunks=1, timeout=PATIENCE)
            self.assertEqual([bytes(block) for block in part], [content_of(chain[1])])
            self.assertEqual(part.first_token, CHUNK_TOKENS)

    def test_a_view_keeps_the_lease_after_its_release(self) -> None:
        chain = chain_of(3, 1)
        self.store(chain)
        lease = self.lease(chain)
        view = memoryview(self.daemon.read_lease(lease, timeout=PATIENCE)[0])
        lease.release()
        lease.release()  # does nothing
        self.assertTrue(lease.released)
        with self.assertRaises(terrace.BadRequest):
            self.daemon.read_lease(lease, timeout=PATIENCE)
        self.assertEqual(self.leases_of(self.daemon), 1)
        self.assertEqual(view, content_of(chain[0]))
        del view
        self.assertEqual(self.leases_of(self.daemon), 0)

    def test_a_lease_ends_with_its_last_reference(self) -> None:
        chain = chain_of(4, 1)
        self.store(chain)
        found = self.daemon.lookup(self.space, Prefix.of_digests(chain), lease=True, timeout=PATIENCE)
        self.assertEqual(self.leases_of(self.daemon), 1)
        del found
        gc.collect()
        self.assertEqual(self.leases_of(self.daemon), 0)

    def test_another_connection_loads_under_a_lease_by_its_id(self) -> None:
        chain = chain_of(5, 2)
        self.store(chain)
        lease = self.lease(chain)
        with terrace.connect(self.server.socket, timeout=PATIENCE) as other:
            memory = terrace.Memory(2 * OBJECT_BYTES)
            region = other.register_region(memory, timeout=PATIENCE)
            loaded = other.load(None, lease.id, region, [(OBJECT_BYTES, OBJECT_BYTES), (0, OBJECT_BYTES)], timeout=PATIENCE)
            self.assertEqual(loaded.delivered_chunks, 2)
            self.assertEqual(bytes(memory), content_of(chain[1]) + content_of(chain[0]))

    def test_arrivals_tell_what_a_load_has_brought_so_far(self) -> None:
        chain = chain_of(41, 3)
        self.store(chain)
        lease = self.lease(chain)
        memory = terrace.Memory(4096 + 3 * OBJECT_BYTES)
        region = self.daemon.register_region(memory, timeout=PATIENCE)
        arrivals = terrace.Arrivals(memory, region, 64, 1)
        self.assertFalse(arrivals.wait(0, 1, timeout=0.01))
        runs = [(4096 + i * OBJECT_BYTES, OBJECT_BYTES) for i in range(3)]
        ticket = self.daemon.submit_load(None, lease, region, runs, arrivals=arrivals, timeout=PATIENCE)
        self.assertTrue(arrivals.wait(0, 3, timeout=PATIENCE))
        self.assertEqual(bytes(memoryview(memory)[runs[2][0]:]), content_of(chain[2]))
        self.assertEqual((ticket.result(PATIENCE).delivered_chunks, arrivals.chunks(0), len(arrivals)), (3, 3, 1))
        waiting = threading.Thread(target=lambda: self.assertFalse(arrivals.wait(0, 4)))
        waiting.start()
        arrivals.end()
        waiting.join(PATIENCE)
        self.assertFalse(waiting.is_alive())
        self.daemon.load(None, lease, region, runs[:2], chunks=2, arrivals=arrivals, timeout=PATIENCE)
        self.assertEqual(arrivals.chunks(0), 2)
        self.assertFalse(arrivals.wait(0, 3))  # the blocking form ends them itself
        for offset, count in ((2, 1), (memory.nbytes, 1), (0, 0), (memory.nbytes - 4, 2)):
            with self.assertRaisesRegex(terrace.BadRequest, "expected counters"):
                terrace.Arrivals(memory, region, offset, count)
        with self.assertRaisesRegex(terrace.BadRequest, "expected a counter below 1"):
            arrivals.chunks(1)
        region.unregister()
        other = self.daemon.register_region(memory, timeout=PATIENCE)
        with self.assertRaisesRegex(terrace.BadRequest, "arrivals in a region that is registered"):
            self.daemon.load(None, lease, other, runs, arrivals=arrivals, timeout=PATIENCE)
        lease.release()

    def test_leased_objects_are_copied_into_any_memory(self) -> None:
        chain = chain_of(6, 2)
        self.store(chain)
        into: list[bytearray | array.array[int]] = [bytearray(OBJECT_BYTES), array.array("Q", bytes(OBJECT_BYTES))]
        with self.lease(chain) as lease:
            self.assertEqual(self.daemon.load_under_lease(lease, into, timeout=PATIENCE), 2 * OBJECT_BYTES)
            with self.assertRaises(BufferError):
                self.daemon.load_under_lease(lease, [bytes(OBJECT_BYTES)] * 2, timeout=PATIENCE)
            with self.assertRaisesRegex(terrace.BadRequest, "one destination an object"):
                self.daemon.load_under_lease(lease, into[:1], timeout=PATIENCE)
        self.assertEqual([bytes(memoryview(one).cast("B")) for one in into], [content_of(digest) for digest in chain])

    def test_what_was_read_before_is_given_up_only_when_nobody_uses_it(self) -> None:
        chain = chain_of(13, 2)
        self.store(chain)
        lease = self.lease(chain)
        located = self.daemon.read_lease(lease, chunks=1, timeout=PATIENCE)
        with self.assertRaisesRegex(BufferError, "are in use"):
            self.daemon.read_lease(lease, first_chunk=1, give_up_earlier=True, timeout=PATIENCE)
        del located
        rest = self.daemon.read_lease(lease, first_chunk=1, give_up_earlier=True, timeout=PATIENCE)
        self.assertEqual([bytes(block) for block in rest], [content_of(chain[1])])

    def test_a_reservation_is_written_in_place_and_committed(self) -> None:
        chain = chain_of(7, 3)
        self.store(chain[:1])
        with self.daemon.reserve(self.space, Prefix.of_digests(chain), timeout=PATIENCE) as reservation:
            self.assertEqual([block.nbytes for block in reservation.objects], [0, OBJECT_BYTES, OBJECT_BYTES])
            reservation.write([b"", content_of(chain[1]), bytes(OBJECT_BYTES)])
            with memoryview(reservation.objects[2]) as view:
                view[:] = content_of(chain[2])
                with self.assertRaisesRegex(BufferError, "a view of the reservation's memory exists"):
                    self.daemon.commit(reservation, timeout=PATIENCE)
            kept = reservation.objects[2]
            stored = self.daemon.commit(reservation, timeout=PATIENCE)
            self.assertEqual((stored.stored_chunks, stored.present_chunks), (2, 1))
            self.assertEqual(len(kept), 0, "what was committed can be written no more")
            self.assertFalse(reservation.open)
            with self.assertRaises(terrace.BadRequest):
                self.daemon.commit(reservation, timeout=PATIENCE)
        with self.lease(chain) as lease:
            located = self.daemon.read_lease(lease, timeout=PATIENCE)
            self.assertEqual([bytes(block) for block in located], [content_of(digest) for digest in chain])

    def test_an_aborted_reservation_leaves_nothing(self) -> None:
        chain = chain_of(8, 1)
        with self.daemon.reserve(self.space, Prefix.of_digests(chain), timeout=PATIENCE) as reservation:
            reservation.write([content_of(chain[0])])
        self.assertEqual(self.daemon.lookup(self.space, Prefix.of_digests(chain), timeout=PATIENCE).found_chunks, 0)

    def test_tickets_are_answered_in_any_order(self) -> None:
        chain = chain_of(9, 4)
        self.store(chain)
        tickets = [self.daemon.submit_lookup(self.space, Prefix.of_digests(chain[:n]), timeout=PATIENCE) for n in (1, 2, 3)]
        self.assertEqual([ticket.result(PATIENCE).found_chunks for ticket in reversed(tickets)], [3, 2, 1])
        self.assertTrue(tickets[0].done)
        with self.assertRaisesRegex(terrace.BadRequest, "was taken"):
            tickets[0].result()

    def test_a_named_lookup_is_awaited_by_another_connection(self) -> None:
        chain = chain_of(10, 2)
        self.store(chain)
        name = os.urandom(16)
        with terrace.connect(self.server.socket, timeout=PATIENCE) as worker:
            waiting = worker.submit_await_lookup(name, timeout=PATIENCE)
            self.assertFalse(waiting.done)
            asked = self.daemon.lookup(self.space, Prefix.of_digests(chain), lease=True, id=name, timeout=PATIENCE)
            told = waiting.result(PATIENCE)
            self.assertEqual(told.found_chunks, 2)
            assert told.lease is not None and asked.lease is not None
            self.assertEqual(told.lease.id, asked.lease.id)

    def test_what_one_announces_another_follows(self) -> None:
        chain = chain_of(740, 3)
        name = os.urandom(16)
        with terrace.connect(self.server.socket, timeout=PATIENCE) as other:
            some = other.submit_follow(name, chunks=2, timeout=PATIENCE)
            announced = self.daemon.submit_announce(self.space, Prefix.of_digests(chain), name, timeout=PATIENCE)
            self.store(chain[:2])
            seen = some.result(PATIENCE)
            self.assertEqual((seen.announced_chunks, seen.found_chunks, seen.ended), (3, 2, False))
            self.store(chain)
            self.assertEqual(announced.result(PATIENCE).found_chunks, 3)
            whole = other.follow(name, timeout=PATIENCE)
            self.assertEqual(repr(whole), "<terrace.Announced: 3 of 3 chunks, ended>")
            taken_back = self.daemon.submit_announce(self.space, Prefix.of_digests(chain_of(741, 2)), name, timeout=PATIENCE)
            self.daemon.lookup(self.space, Prefix.of_digests(chain), timeout=PATIENCE)  # it was sent before
            all_of_it = other.submit_follow(name, timeout=PATIENCE)
            taken_back.cancel()
            self.daemon.lookup(self.space, Prefix.of_digests(chain), timeout=PATIENCE)  # and so was the end
            self.assertEqual(all_of_it.result(PATIENCE).found_chunks, 0)
            with self.assertRaises(terrace.DeadlineExceeded):
                other.follow(os.urandom(16), timeout=0.05)
            with self.assertRaises(terrace.BadRequest):
                other.follow(b"short", timeout=PATIENCE)

    def test_clear_forgets_and_tells_how_much(self) -> None:
        space = self.daemon.open_space(terrace.SpaceSpec("cleared", "u8", "opaque", SPEC.pools, chunk_tokens=CHUNK_TOKENS))
        chain = chain_of(11, 2)
        memory = terrace.Memory(2 * OBJECT_BYTES)
        with self.daemon.register_region(memory, timeout=PATIENCE) as region:
            self.daemon.store(space, Prefix.of_digests(chain), region, [(0, OBJECT_BYTES)] * 2, timeout=PATIENCE)
        self.assertEqual(self.daemon.clear(space, timeout=PATIENCE).objects, 2)
        self.assertEqual(self.daemon.lookup(space, Prefix.of_digests(chain), timeout=PATIENCE).found_chunks, 0)

    def test_options_and_defaults_of_a_space_turn_loads_and_stores_off(self) -> None:
        chain = chain_of(31, 2)
        memory = terrace.Memory(2 * OBJECT_BYTES)
        region = self.daemon.register_region(memory, timeout=PATIENCE)
        runs = [(i * OBJECT_BYTES, OBJECT_BYTES) for i in range(2)]
        prefix = Prefix.of_digests(chain)
        nothing = terrace.Options(no_store=True, no_load=True)
        stored = self.daemon.store(self.space, prefix, region, runs, options=nothing, timeout=PATIENCE)
        self.assertEqual((stored.stored_chunks, stored.present_chunks), (0, 0))
        self.daemon.store(self.space, prefix, region, runs, timeout=PATIENCE)
        self.assertEqual(self.daemon.lookup(self.space, prefix, options=nothing, timeout=PATIENCE).found_chunks, 0)
        self.assertEqual(self.daemon.lookup(self.space, prefix, timeout=PATIENCE).found_chunks, 2)

        with terrace.connect(self.server.socket, timeout=PATIENCE) as other:
            spec = dataclasses.replace(SPEC, defaults=terrace.RequestDefaults(tiers=[terrace.Tier.DISK], no_store=True))
            space = other.open_space(spec, timeout=PATIENCE)
            self.assertEqual(space.fingerprint, self.space.fingerprint)
            self.assertEqual(other.lookup(space, prefix, timeout=PATIENCE).found_chunks, 0)
            found = other.lookup(space, prefix, tiers=[terrace.Tier.HOST], timeout=PATIENCE)
            self.assertEqual(found.found_chunks, 2)

    def test_an_error_names_the_trace_of_its_request(self) -> None:
        traced = terrace.Options(trace="request-4711")
        region = self.daemon.register_region(terrace.Memory(OBJECT_BYTES), timeout=PATIENCE)
        nobody, name = bytes(15) + b"x", os.urandom(16)
        wrong = Prefix.of_tokens([1] * 16, parent=bytes(32), parent_tokens=5)
        for call in (
            lambda: self.daemon.lookup(self.space, wrong, id=name, options=traced, timeout=PATIENCE),
            lambda: self.daemon.await_lookup(name, options=traced, timeout=PATIENCE),  # of the refused request
            lambda: self.daemon.read_lease(nobody, options=traced, timeout=PATIENCE),
            lambda: self.daemon.load(None, nobody, region, [(0, OBJECT_BYTES)], options=traced, timeout=PATIENCE),
        ):
            with self.assertRaisesRegex(terrace.Error, r"\(trace request-4711\)"):
                call()
        reservation = self.daemon.reserve(self.space, Prefix.of_digests(chain_of(14, 1)), options=traced, timeout=PATIENCE)
        with self.assertRaises(TypeError):
            self.daemon.commit(reservation, options="a trace", timeout=PATIENCE)  # type: ignore[arg-type]
        self.assertEqual(self.daemon.commit(reservation, options=traced, timeout=PATIENCE).stored_chunks, 1)

    def test_an_inference_carries_its_number_to_its_end(self) -> None:
        chain = chain_of(12, 1)
        options = terrace.Options(inference=5, session=9, turn=1, priority=10, trace="a test")
        self.daemon.lookup(self.space, Prefix.of_digests(chain), options=options, timeout=PATIENCE)
        self.daemon.end_inference(5, output_tokens=3, reason=terrace.FinishReason.TOOL_CALL, think_time=1.5, timeout=PATIENCE)
        self.daemon.end_inference(5, session_closed=True, wait=False)
        self.assertEqual(self.daemon.status(timeout=PATIENCE).groups[0].leases, 0)  # answered behind it


if __name__ == "__main__":
    unittest.main()

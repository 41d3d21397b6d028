"""Sessions: conversations whose turns send only their new tokens."""

from __future__ import annotations

import asyncio
import unittest

import terrace
import terrace.aio
from daemon import CHUNK_TOKENS, OBJECT_BYTES, PATIENCE, SPEC, DaemonTest


def tokens_of(seed: int, count: int) -> list[int]:
    return [seed * 100_000 + i for i in range(count)]


class Sessions(DaemonTest):
    def store_from(self, session: terrace.Session, prompt: list[int], first: int, tail: bool = False) -> int:
        """Stores the chunks of a prompt from number `first` on; each has bytes of its number."""
        chunks = len(prompt) // CHUNK_TOKENS + int(tail) - first
        memory = terrace.Memory(chunks * OBJECT_BYTES)
        view = memoryview(memory)
        for i in range(chunks):
            view[i * OBJECT_BYTES:(i + 1) * OBJECT_BYTES] = bytes([first + i]) * OBJECT_BYTES
        del view
        with self.daemon.register_region(memory, timeout=PATIENCE) as region:
            stored = self.daemon.store(
                self.space, session.continued(prompt, first * CHUNK_TOKENS, tail=tail), region,
                [(i * OBJECT_BYTES, OBJECT_BYTES) for i in range(chunks)], first_chunk=first, timeout=PATIENCE,
            )
        return stored.stored_chunks

    def test_a_turn_sends_what_is_new_and_finds_what_was_stored(self) -> None:
        prompt = tokens_of(1, 3 * CHUNK_TOKENS + 5)
        with self.daemon.open_session(self.space, timeout=PATIENCE) as session:
            found = self.daemon.lookup_turn(session, prompt, 0, timeout=PATIENCE)
            self.assertEqual((found.requested_chunks, found.found_chunks, session.tokens), (3, 0, len(prompt)))
            self.assertEqual(self.store_from(session, prompt, 0), 3)
            saved = self.daemon.save_turn(session, prompt, session.tokens, timeout=PATIENCE)
            self.assertEqual((saved.tokens, saved.held_chunks, saved.lease), (len(prompt), 0, bytes(16)))

            longer = prompt + tokens_of(2, 2 * CHUNK_TOKENS)
            delta = session.continued(longer, session.tokens)
            self.assertLess(delta.wire_bytes, 4 * (2 * CHUNK_TOKENS + 1) + 64)
            found = self.daemon.lookup_turn(session, longer, session.tokens, lease=True, timeout=PATIENCE)
            self.assertEqual((found.requested_chunks, found.found_chunks, session.tokens), (5, 3, len(longer)))
            assert found.lease is not None
            with found.lease:
                read = self.daemon.read_lease(found.lease, timeout=PATIENCE)
                self.assertEqual([bytes(memoryview(one)[:1]) for one in read], [b"\0", b"\1", b"\2"])
                del read
            self.assertEqual(self.store_from(session, longer, 3), 2)
        self.assertEqual(self.daemon.lookup(self.space, longer, timeout=PATIENCE).found_chunks, 5)

    def test_a_prompt_that_differs_earlier_replaces_what_the_session_had(self) -> None:
        prompt = tokens_of(3, 4 * CHUNK_TOKENS)
        with self.daemon.open_session(self.space, timeout=PATIENCE) as session:
            self.daemon.lookup_turn(session, prompt, 0, timeout=PATIENCE)
            self.store_from(session, prompt, 0)
            other = prompt[:2 * CHUNK_TOKENS] + tokens_of(4, CHUNK_TOKENS)
            found = self.daemon.lookup_turn(session, other, 2 * CHUNK_TOKENS, timeout=PATIENCE)
            self.assertEqual((found.requested_chunks, found.found_chunks, session.tokens), (3, 2, len(other)))

    def test_a_fork_and_an_adopted_session_continue_with_the_same_tokens(self) -> None:
        prompt = tokens_of(5, 3 * CHUNK_TOKENS)
        session = self.daemon.open_session(self.space, keep=True, timeout=PATIENCE)
        self.daemon.lookup_turn(session, prompt, 0, timeout=PATIENCE)
        self.store_from(session, prompt, 0)
        with self.daemon.fork_session(session, 2 * CHUNK_TOKENS, timeout=PATIENCE) as fork:
            self.assertEqual(fork.tokens, 2 * CHUNK_TOKENS)
            branch = prompt[:2 * CHUNK_TOKENS] + tokens_of(6, CHUNK_TOKENS)
            self.assertEqual(self.daemon.lookup_turn(fork, branch, fork.tokens, timeout=PATIENCE).found_chunks, 2)
        known = (session.id, session.tokens, session.digest)
        session.close()  # which it outlives
        with terrace.connect(self.server.socket, timeout=PATIENCE) as other:
            space = other.open_space(SPEC, timeout=PATIENCE)
            adopted = other.adopt_session(space, *known, keep=True)
            self.assertEqual(other.lookup_turn(adopted, prompt + [1], adopted.tokens, timeout=PATIENCE).found_chunks, 3)
            self.assertTrue(other.close_session(known[0], timeout=PATIENCE))
            self.assertFalse(other.close_session(known[0], timeout=PATIENCE))

    def test_a_held_session_keeps_a_lease_on_what_was_saved(self) -> None:
        prompt = tokens_of(7, 2 * CHUNK_TOKENS)
        with self.daemon.open_session(self.space, held=True, timeout=PATIENCE) as session:
            self.daemon.lookup_turn(session, prompt, 0, timeout=PATIENCE)
            self.store_from(session, prompt, 0)
            saved = self.daemon.save_turn(session, prompt, len(prompt), timeout=PATIENCE)
            self.assertEqual((saved.held_chunks, saved.unheld), (2, ""))
            self.assertGreaterEqual(saved.held_bytes, 2 * OBJECT_BYTES)
            read = self.daemon.read_lease(saved.lease, timeout=PATIENCE)
            self.assertEqual([bytes(memoryview(one)[:1]) for one in read], [b"\0", b"\1"])

    def test_the_end_of_a_turn_is_found_with_its_cursors(self) -> None:
        prompt = tokens_of(8, 2 * CHUNK_TOKENS + 5)
        with self.daemon.open_session(self.space, timeout=PATIENCE) as session:
            self.daemon.lookup_turn(session, prompt, 0, tail=True, timeout=PATIENCE)
            with self.assertRaises(terrace.NotFound):
                self.daemon.save_turn(session, prompt, len(prompt), tail=True, timeout=PATIENCE)
            self.store_from(session, prompt, 0, tail=True)
            self.daemon.save_turn(session, prompt, len(prompt), tail=True, cursors=[42], timeout=PATIENCE)
            found = self.daemon.lookup_turn(session, prompt + [9], len(prompt), tail=True, timeout=PATIENCE)
            self.assertEqual((found.found_chunks, found.found_tokens, found.tail_tokens), (3, len(prompt), 5))
            self.assertEqual(found.cursors, [42])

    def test_a_session_that_the_daemon_has_forgotten_begins_anew(self) -> None:
        prompt = tokens_of(9, 2 * CHUNK_TOKENS)
        session = self.daemon.open_session(self.space, timeout=PATIENCE)
        self.daemon.lookup_turn(session, prompt, 0, timeout=PATIENCE)
        self.store_from(session, prompt, 0)
        before = session.id
        self.daemon.close_session(before, timeout=PATIENCE)
        found = self.daemon.lookup_turn(session, prompt + [1], len(prompt), timeout=PATIENCE)
        self.assertEqual(found.found_chunks, 2)
        self.assertNotEqual(session.id, before)

    def test_wrong_arguments_are_refused(self) -> None:
        session = self.daemon.open_session(self.space, timeout=PATIENCE)
        with self.assertRaisesRegex(terrace.BadRequest, "expected cursors with tail=True"):
            self.daemon.save_turn(session, [1, 2], 0, cursors=[1], timeout=PATIENCE)
        with self.assertRaisesRegex(terrace.BadRequest, "id of 16 bytes"):
            self.daemon.close_session(b"12", timeout=PATIENCE)
        with self.assertRaisesRegex(terrace.BadRequest, "at most 32 bytes"):
            self.daemon.adopt_session(self.space, bytes(16), 1, bytes(33))
        with terrace.connect(self.server.socket, timeout=PATIENCE) as other:
            with self.assertRaisesRegex(terrace.BadRequest, "session of this connection"):
                other.lookup_turn(session, [1], 0, timeout=PATIENCE)
        session.close()
        session.close()
        with self.assertRaisesRegex(terrace.BadRequest, "got one that was closed"):
            self.daemon.lookup_turn(session, [1], 0, timeout=PATIENCE)
        for of_closed in (lambda: session.id, lambda: session.continued([1], 0)):
            with self.assertRaisesRegex(terrace.BadRequest, "got one that was closed"):
                of_closed()

    def test_a_session_may_outlive_its_connection(self) -> None:
        other = terrace.connect(self.server.socket, timeout=PATIENCE)
        with other.open_session(other.open_space(SPEC, timeout=PATIENCE), timeout=PATIENCE) as session:
            other.close()
        session.close()
        with self.assertRaises(terrace.Gone):
            other.lookup_turn(session, [1], 0, timeout=PATIENCE)

    def test_the_same_with_asyncio(self) -> None:
        async def turns() -> int:
            async with await terrace.aio.connect(self.server.socket, timeout=PATIENCE) as daemon:
                space = await daemon.open_space(SPEC, timeout=PATIENCE)
                session = await daemon.open_session(space, timeout=PATIENCE)
                found = await daemon.lookup_turn(session, tokens_of(10, 2 * CHUNK_TOKENS), 0, timeout=PATIENCE)
                saved = await daemon.save_turn(session, tokens_of(10, 40), 2 * CHUNK_TOKENS, timeout=PATIENCE)
                session.close()
                return found.requested_chunks + saved.tokens

        self.assertEqual(asyncio.run(turns()), 42)


if __name__ == "__main__":
    unittest.main()

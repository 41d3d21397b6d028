"""Answers about chunks that were not found: the first missing object, and the digests that were looked up."""

from __future__ import annotations

import array
import dataclasses
import hashlib
import unittest
from collections.abc import Sequence

import terrace
from daemon import CHUNK_TOKENS, OBJECT_BYTES, PATIENCE, SPEC, Daemon, DaemonTest, chain_of, content_of

Prefix = terrace.Prefix

HYBRID = dataclasses.replace(
    SPEC,
    pools=[
        terrace.Pool("kv", object_bytes=OBJECT_BYTES),
        terrace.Pool("state", object_bytes=OBJECT_BYTES, rule=terrace.HitRule.TRAILING_CHUNKS, trailing=1),
    ],
)


def place(missing: terrace.Missing | None) -> tuple[int, int, int, bool]:
    assert missing is not None
    return missing.chunk, missing.pool, missing.rank, missing.damaged


def store_part(
    daemon: terrace.Connection, spec: terrace.SpaceSpec, chain: list[bytes], pools: Sequence[int] = (0,),
    first_chunk: int = 0,
) -> None:
    """Stores zeros, one object of each of these pools for each chunk from `first_chunk` on."""
    count = (len(chain) - first_chunk) * len(pools)
    with daemon.register_region(terrace.Memory(count * OBJECT_BYTES), timeout=PATIENCE) as region:
        daemon.store(
            daemon.open_space(spec, timeout=PATIENCE), Prefix.of_digests(chain), region,
            [(i * OBJECT_BYTES, OBJECT_BYTES) for i in range(count)], first_chunk=first_chunk, pools=pools,
            timeout=PATIENCE,
        )


class FirstMissing(DaemonTest):
    def test_a_lookup_names_the_first_missing_chunk(self) -> None:
        chain = chain_of(1, 4)
        self.store(chain[:2])
        found = self.daemon.lookup(self.space, Prefix.of_digests(chain), timeout=PATIENCE)
        self.assertEqual((found.found_chunks, place(found.missing)), (2, (2, 0, 0, False)))
        self.assertEqual(repr(found.missing), "<terrace.Missing: chunk 2, pool 0, rank 0>")
        self.assertIsNone(self.daemon.lookup(self.space, Prefix.of_digests(chain[:2]), timeout=PATIENCE).missing)

    def test_a_lookup_names_the_rank_and_the_pool(self) -> None:
        chain = chain_of(2, 2)
        two_ranks = dataclasses.replace(HYBRID, world_size=2)
        with terrace.connect(self.server.socket, timeout=PATIENCE) as second:
            store_part(self.daemon, two_ranks, chain, pools=(0, 1))
            space = self.daemon.open_space(two_ranks, timeout=PATIENCE)
            found = self.daemon.lookup(space, Prefix.of_digests(chain), timeout=PATIENCE)
            self.assertEqual((found.found_chunks, place(found.missing)), (0, (0, 0, 1, False)))
            store_part(second, dataclasses.replace(two_ranks, rank=1), chain)
            found = self.daemon.lookup(space, Prefix.of_digests(chain), timeout=PATIENCE)
            assert found.missing is not None
            self.assertEqual((found.found_chunks, found.missing.pool, found.missing.rank), (0, 1, 1))

    def test_a_waiting_client_is_told_what_is_missing(self) -> None:
        chain = chain_of(3, 2)
        self.store(chain[:1])
        name = bytes(range(16))
        with terrace.connect(self.server.socket, timeout=PATIENCE) as worker:
            waiting = worker.submit_await_lookup(name, timeout=PATIENCE)
            self.daemon.lookup(self.space, Prefix.of_digests(chain), id=name, digests=True, timeout=PATIENCE)
            told = waiting.result(PATIENCE)
            self.assertEqual((place(told.missing), told.digests), ((1, 0, 0, False), []))
            self.assertEqual(told.chunk_tokens, CHUNK_TOKENS)

    def test_a_load_names_what_ended_it(self) -> None:
        chain = chain_of(4, 3)
        self.store(chain[:2])
        with self.daemon.register_region(terrace.Memory(3 * OBJECT_BYTES), timeout=PATIENCE) as region:
            runs = [(i * OBJECT_BYTES, OBJECT_BYTES) for i in range(3)]
            loaded = self.daemon.load(self.space, Prefix.of_digests(chain), region, runs, timeout=PATIENCE)
            self.assertEqual((loaded.delivered_chunks, place(loaded.missing)), (2, (2, 0, 0, False)))
            loaded = self.daemon.load(self.space, Prefix.of_digests(chain[:2]), region, runs[:2], timeout=PATIENCE)
            self.assertEqual((loaded.delivered_chunks, loaded.missing), (2, None))

    def test_reading_a_lease_names_what_ended_it(self) -> None:
        chain = chain_of(5, 3)
        store_part(self.daemon, HYBRID, chain)
        store_part(self.daemon, HYBRID, chain, pools=(1,), first_chunk=2)
        space = self.daemon.open_space(HYBRID, timeout=PATIENCE)
        found = self.daemon.lookup(space, Prefix.of_digests(chain), lease=True, timeout=PATIENCE)
        self.assertEqual((found.found_chunks, found.missing), (3, None))
        assert found.lease is not None
        states = self.daemon.read_lease(found.lease, pools=[1], timeout=PATIENCE)
        self.assertEqual((len(states), place(states.missing)), (0, (0, 1, 0, False)))
        state = self.daemon.read_lease(found.lease, first_chunk=2, chunks=1, pools=[1], timeout=PATIENCE)
        self.assertEqual((len(state), state.missing), (1, None))


class Damage(unittest.TestCase):
    def test_reading_a_lease_names_the_damaged_object(self) -> None:
        server = Daemon(disk_bytes=64 << 20)
        self.addCleanup(server.stop)
        chain = chain_of(6, 3)
        with self.connected(server) as daemon:
            space = daemon.open_space(SPEC, timeout=PATIENCE)
            memory = terrace.Memory(len(chain) * OBJECT_BYTES)
            memoryview(memory)[:] = b"".join(map(content_of, chain))
            region = daemon.register_region(memory, timeout=PATIENCE)
            runs = [(i * OBJECT_BYTES, OBJECT_BYTES) for i in range(len(chain))]
            daemon.store(space, Prefix.of_digests(chain), region, runs, timeout=PATIENCE)
        server.terminate()
        with open(server.folder / "state/terrace.extents", "r+b") as file:
            at = file.read().find(content_of(chain[2])[:4096])
            self.assertGreater(at, 0)
            file.seek(at + 17)
            file.write(bytes([content_of(chain[2])[17] ^ 1]))
        server.start()
        with self.connected(server) as daemon:
            space = daemon.open_space(SPEC, timeout=PATIENCE)
            found = daemon.lookup(space, Prefix.of_digests(chain), lease=True, timeout=PATIENCE)
            self.assertEqual((found.found_chunks, found.missing), (3, None))
            assert found.lease is not None
            located = daemon.read_lease(found.lease, timeout=PATIENCE)
            self.assertEqual([bytes(block) for block in located], [content_of(digest) for digest in chain[:2]])
            self.assertEqual(place(located.missing), (2, 0, 0, True))
            self.assertEqual(repr(located.missing), "<terrace.Missing: chunk 2, pool 0, rank 0, damaged>")

    def connected(self, server: Daemon) -> terrace.Connection:
        """Connects to a daemon whose disk is in use."""
        daemon = terrace.connect(server.socket, timeout=PATIENCE)
        while {tier.tier: tier.state for tier in daemon.status(timeout=PATIENCE).groups[0].tiers}["disk"] != "ready":
            pass
        return daemon


def cbor_numbers(numbers: list[int]) -> bytes:
    """Encodes a canonical array of fewer than 24 numbers below 256."""
    return bytes([0x80 + len(numbers)]) + b"".join(bytes([n]) if n < 24 else bytes([0x18, n]) for n in numbers)


class Digests(DaemonTest):
    tokens = [3 * i + 1 for i in range(2 * CHUNK_TOKENS + 3)]

    def digests_in(self, spec: terrace.SpaceSpec, prefix: Prefix) -> list[bytes]:
        space = self.daemon.open_space(spec, timeout=PATIENCE)
        self.assertEqual(self.daemon.lookup(space, prefix, timeout=PATIENCE).digests, [])  # they were not requested
        return self.daemon.lookup(space, prefix, digests=True, timeout=PATIENCE).digests

    def test_a_lookup_returns_the_digests_that_the_daemon_hashed(self) -> None:
        expected, parent = [], b""
        for i in range(2):
            block = array.array("I", self.tokens[i * CHUNK_TOKENS:(i + 1) * CHUNK_TOKENS])
            parent = hashlib.sha256(parent + block.tobytes()).digest()
            expected.append(parent)
        spec = dataclasses.replace(SPEC, algorithm=terrace.HashAlgorithm.SHA256)
        self.assertEqual(self.digests_in(spec, Prefix.of_tokens(self.tokens)), expected)

    def test_digests_have_the_width_of_their_algorithm(self) -> None:
        for algorithm in terrace.HashAlgorithm:
            spec = dataclasses.replace(SPEC, algorithm=algorithm)
            width = 16 if algorithm == terrace.HashAlgorithm.XXH3_128 else 32
            hashed = self.digests_in(spec, Prefix.of_tokens(self.tokens))
            self.assertEqual([len(digest) for digest in hashed], [width] * 2, algorithm)
            self.assertEqual(self.digests_in(spec, Prefix.of_digests(hashed)), hashed)

    def test_an_adapter_is_not_taken_for_a_salt(self) -> None:
        for algorithm in terrace.HashAlgorithm:
            spec = dataclasses.replace(SPEC, algorithm=algorithm, hash_block_tokens=CHUNK_TOKENS)
            kinds = [("", ""), ("x", ""), ("", "x"), ("x", "x")]
            keys = [self.digests_in(spec, Prefix.of_tokens(self.tokens, lora=lora, salt=salt))[0] for lora, salt in kinds]
            self.assertEqual(len(set(keys)), len(kinds), algorithm)

    def test_digests_of_vllm_come_with_their_adapter(self) -> None:
        spec = dataclasses.replace(SPEC, hash_block_tokens=CHUNK_TOKENS)
        by_tokens = self.digests_in(spec, Prefix.of_tokens(self.tokens, lora="x"))
        head = b"\x76terrace first block v1\x82\x61x\x60"
        root = hashlib.sha256(b"\x60").digest()
        first = hashlib.sha256(b"\x83\x58\x20" + root + cbor_numbers(self.tokens[:CHUNK_TOKENS]) + b"\x81\x61x").digest()
        self.assertEqual(by_tokens[0], hashlib.sha256(head + first).digest())
        self.assertEqual(self.digests_in(spec, Prefix.of_digests([first, by_tokens[1]], lora="x")), by_tokens)
        self.assertEqual(self.digests_in(spec, Prefix.of_digests([first, by_tokens[1]])), [first, by_tokens[1]])

    def test_digests_that_the_client_sent_come_back_with_its_tags(self) -> None:
        chain = [digest[:12] for digest in chain_of(7, 2)]
        self.assertEqual(self.digests_in(SPEC, Prefix.of_digests(chain)), chain)
        tagged = self.digests_in(SPEC, Prefix.of_digests(chain, tags=["a"]))
        self.assertEqual([len(digest) for digest in tagged], [12, 12])
        self.assertNotEqual(tagged, chain)

    def test_a_ticket_has_them_too(self) -> None:
        chain = chain_of(8, 2)
        ticket = self.daemon.submit_lookup(self.space, Prefix.of_digests(chain), digests=True, timeout=PATIENCE)
        self.assertEqual(ticket.result(PATIENCE).digests, chain)

    def test_a_mistake_is_an_error_with_digests_asked_for(self) -> None:
        for parent, parent_tokens in ((bytes(16), CHUNK_TOKENS), (bytes(32), CHUNK_TOKENS + 1)):
            wrong = Prefix.of_tokens(self.tokens, parent=parent, parent_tokens=parent_tokens)
            with self.assertRaises(terrace.BadRequest):
                self.daemon.lookup(self.space, wrong, digests=True, timeout=PATIENCE)
        with self.assertRaises(TypeError):
            self.daemon.lookup(self.space, self.tokens, digests="yes", timeout=PATIENCE)  # type: ignore[arg-type]
        self.assertTrue(self.daemon.alive)


if __name__ == "__main__":
    unittest.main()

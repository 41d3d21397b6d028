"""Spaces that are closed again."""

from __future__ import annotations

import dataclasses
import unittest

import terrace
from daemon import OBJECT_BYTES, PATIENCE, SPEC, Daemon, DaemonTest, chain_of

Prefix = terrace.Prefix


def of_tenant(name: str) -> terrace.SpaceSpec:
    return dataclasses.replace(SPEC, salt=name)


class Closing(DaemonTest):
    def test_a_closed_space_is_unknown_to_its_connection_and_keeps_its_objects(self) -> None:
        prefix = Prefix.of_digests(chain_of(1, 2))
        self.store(chain_of(1, 2))
        region = self.daemon.register_region(terrace.Memory(2 * OBJECT_BYTES), timeout=PATIENCE)
        runs = [(0, OBJECT_BYTES), (OBJECT_BYTES, OBJECT_BYTES)]
        self.daemon.close_space(self.space, timeout=PATIENCE)
        for call in (
            lambda: self.daemon.close_space(self.space, timeout=PATIENCE),
            lambda: self.daemon.lookup(self.space, prefix, timeout=PATIENCE),
            lambda: self.daemon.store(self.space, prefix, region, runs, timeout=PATIENCE),
            lambda: self.daemon.load(self.space, prefix, region, runs, timeout=PATIENCE),
            lambda: self.daemon.reserve(self.space, prefix, timeout=PATIENCE),
            lambda: self.daemon.clear(self.space, timeout=PATIENCE),
        ):
            with self.assertRaisesRegex(terrace.BadRequest, "a space that this connection opened"):
                call()
        again = self.daemon.open_space(SPEC, timeout=PATIENCE)
        self.assertEqual(again.fingerprint, self.space.fingerprint)
        self.assertEqual(self.daemon.lookup(again, prefix, timeout=PATIENCE).found_chunks, 2)

    def test_a_connection_has_one_rank_in_a_space(self) -> None:
        spec = dataclasses.replace(SPEC, world_size=2)
        space = self.daemon.open_space(spec, timeout=PATIENCE)
        self.assertEqual(self.daemon.open_space(spec, timeout=PATIENCE).fingerprint, space.fingerprint)
        others = {"rank": dataclasses.replace(spec, rank=1),
                  "prefill_tokens_per_s": dataclasses.replace(spec, prefill_tokens_per_s=1000)}
        for field, other in others.items():
            with self.assertRaisesRegex(terrace.BadRequest, field):
                self.daemon.open_space(other, timeout=PATIENCE)
        self.daemon.close_space(space, timeout=PATIENCE)
        self.daemon.open_space(dataclasses.replace(spec, rank=1), timeout=PATIENCE)

    def test_a_space_with_a_lease_or_a_reservation_is_busy(self) -> None:
        chain = chain_of(2, 1)
        self.store(chain)
        lease = self.lease(chain)
        view = memoryview(self.daemon.read_lease(lease, timeout=PATIENCE)[0])
        lease.release()
        with self.assertRaises(terrace.Busy):  # the view keeps it
            self.daemon.close_space(self.space, timeout=PATIENCE)
        del view
        with self.daemon.reserve(self.space, Prefix.of_digests(chain_of(3, 1)), timeout=PATIENCE):
            with self.assertRaises(terrace.Busy):
                self.daemon.close_space(self.space, timeout=PATIENCE)
        self.daemon.close_space(self.space, timeout=PATIENCE)

    def test_what_is_no_open_space_of_this_connection_is_refused(self) -> None:
        with terrace.connect(self.server.socket, timeout=PATIENCE) as other:
            with self.assertRaisesRegex(terrace.BadRequest, "another connection"):
                self.daemon.close_space(other.open_space(SPEC, timeout=PATIENCE), timeout=PATIENCE)
        for wrong in ("a space", 1, None):
            with self.assertRaises(TypeError):
                self.daemon.close_space(wrong, timeout=PATIENCE)  # type: ignore[arg-type]
        with self.assertRaises(terrace.BadRequest):
            self.daemon.close_space(self.space, timeout=float("nan"))
        self.daemon.lookup(self.space, [1] * 16, timeout=PATIENCE)  # the space is still open
        self.daemon.close()
        with self.assertRaisesRegex(terrace.Gone, "closed"):
            self.daemon.close_space(self.space, timeout=PATIENCE)

    def test_closing_makes_room_for_another_space(self) -> None:
        server = Daemon(connection="group_spaces_max = 1024")  # a connection may have 64 open
        self.addCleanup(server.stop)
        with terrace.connect(server.socket, timeout=PATIENCE) as daemon:
            first = daemon.open_space(of_tenant("first"), timeout=PATIENCE)
            for number in range(63):
                daemon.open_space(of_tenant(str(number)), timeout=PATIENCE)
            with self.assertRaisesRegex(terrace.Busy, "a 16th of connection.group_spaces_max"):
                daemon.open_space(of_tenant("third"), timeout=PATIENCE)
            daemon.close_space(first, timeout=PATIENCE)
            third = daemon.open_space(of_tenant("third"), timeout=PATIENCE)
            with self.assertRaises(terrace.BadRequest):  # the third space has its place, not its name
                daemon.lookup(first, [1] * 16, timeout=PATIENCE)
            self.assertEqual(daemon.lookup(third, [1] * 16, timeout=PATIENCE).requested_chunks, 1)

    def test_a_closed_space_stays_closed_after_a_reconnect(self) -> None:
        server = Daemon()
        self.addCleanup(server.stop)
        daemon = terrace.connect(server.socket, timeout=PATIENCE)
        self.addCleanup(daemon.close)
        closed = daemon.open_space(of_tenant("first"), timeout=PATIENCE)
        kept = daemon.open_space(of_tenant("second"), timeout=PATIENCE)
        daemon.close_space(closed, timeout=PATIENCE)
        server.kill()
        with self.assertRaises(terrace.Gone):
            daemon.status(timeout=PATIENCE)
        server.start()
        while True:
            try:
                self.assertFalse(daemon.reconnect(PATIENCE))
                break
            except terrace.Gone:
                continue  # too early for an attempt
        self.assertEqual(daemon.status(timeout=PATIENCE).groups[0].spaces, 1)
        daemon.lookup(kept, [1] * 16, timeout=PATIENCE)
        with self.assertRaises(terrace.BadRequest):
            daemon.lookup(closed, [1] * 16, timeout=PATIENCE)


if __name__ == "__main__":
    unittest.main()

"""Tests the asyncio form."""

from __future__ import annotations

import asyncio
import os
import select
import unittest

import terrace
import terrace.aio
from daemon import OBJECT_BYTES, PATIENCE, SPEC, Daemon, chain_of, content_of

Prefix = terrace.Prefix


class Asyncio(unittest.IsolatedAsyncioTestCase):
    server: Daemon

    @classmethod
    def setUpClass(cls) -> None:
        cls.server = Daemon()
        cls.addClassCleanup(cls.server.stop)

    async def asyncSetUp(self) -> None:
        asyncio.get_running_loop().slow_callback_duration = 10  # unittest turns the loop's debugging on
        self.daemon = await terrace.aio.connect(self.server.socket, name=self._testMethodName, timeout=PATIENCE)
        self.addAsyncCleanup(self.daemon.close)
        self.space = await self.daemon.open_space(SPEC, timeout=PATIENCE)

    async def test_stores_loads_and_reads_in_place(self) -> None:
        chain = chain_of(1, 2)
        memory = terrace.Memory(2 * OBJECT_BYTES)
        memoryview(memory)[:] = content_of(chain[0]) + content_of(chain[1])
        region = await self.daemon.register_region(memory, timeout=PATIENCE)
        runs = [(0, OBJECT_BYTES), (OBJECT_BYTES, OBJECT_BYTES)]
        prefix = Prefix.of_digests(chain)
        self.assertEqual((await self.daemon.store(self.space, prefix, region, runs, timeout=PATIENCE)).stored_chunks, 2)
        memoryview(memory)[:] = bytes(2 * OBJECT_BYTES)
        self.assertEqual((await self.daemon.load(self.space, prefix, region, runs)).delivered_chunks, 2)
        self.assertEqual(bytes(memory), content_of(chain[0]) + content_of(chain[1]))
        found = await self.daemon.lookup(self.space, prefix, lease=True)
        assert found.lease is not None
        located = await self.daemon.read_lease(found.lease)
        self.assertEqual([bytes(block) for block in located], [content_of(digest) for digest in chain])
        copy = bytearray(OBJECT_BYTES)
        self.assertEqual(await self.daemon.load_under_lease(found.lease, [copy], chunks=1), OBJECT_BYTES)
        self.assertEqual(copy, content_of(chain[0]))
        reservation = await self.daemon.reserve(self.space, Prefix.of_digests(chain_of(2, 1)))
        reservation.write([bytes(OBJECT_BYTES)])
        self.assertEqual((await self.daemon.commit(reservation)).stored_chunks, 1)

    async def test_a_store_waits_for_its_counter_and_a_ring(self) -> None:
        memory, page = terrace.Memory(OBJECT_BYTES), terrace.Memory(4096)
        region = await self.daemon.register_device_region(memory, device="host", timeout=PATIENCE)
        counters = await self.daemon.register_generations(page, "host", timeout=PATIENCE)
        bell = await self.daemon.bell(timeout=PATIENCE)
        prefix = Prefix.of_digests(chain_of(3, 1))
        storing = asyncio.create_task(
            self.daemon.store(self.space, prefix, region, [(0, OBJECT_BYTES)], after=(counters, 0, 1), timeout=PATIENCE)
        )
        await asyncio.sleep(0)  # now it is sent
        self.assertEqual((await self.daemon.lookup(self.space, prefix, timeout=PATIENCE)).found_chunks, 0)
        self.assertFalse(storing.done())
        memoryview(page)[:4] = (1).to_bytes(4, "little")
        bell.ring()
        self.assertEqual((await storing).stored_chunks, 1)
        await asyncio.to_thread(region.unregister)
        await asyncio.to_thread(counters.unregister)

    async def test_many_requests_are_under_way_at_a_time(self) -> None:
        """More requests than the daemon's credits: the others wait outside, not in a send."""
        count = 3 * self.daemon.daemon.credit_requests
        answers = await asyncio.gather(
            *(self.daemon.lookup(self.space, [n] * 16 * (1 + n % 3), timeout=PATIENCE) for n in range(count))
        )
        self.assertEqual([answer.requested_chunks for answer in answers], [1 + n % 3 for n in range(count)])

    async def test_the_loop_runs_while_a_request_waits(self) -> None:
        name = os.urandom(16)
        waiting = asyncio.create_task(self.daemon.await_lookup(name, timeout=PATIENCE))
        await asyncio.sleep(0)
        found = await self.daemon.lookup(self.space, [1] * 48, id=name, timeout=PATIENCE)
        self.assertEqual((await waiting).requested_chunks, found.requested_chunks)

    async def test_an_announcement_lives_as_long_as_its_task(self) -> None:
        name = os.urandom(16)
        announced = asyncio.create_task(self.daemon.announce(self.space, [9] * 48, name))
        followed = asyncio.create_task(self.daemon.follow(name, timeout=PATIENCE))
        while await self.requests_in_flight() < 3:  # counts the status request itself
            pass
        announced.cancel()
        seen = await followed
        self.assertEqual((seen.announced_chunks, seen.found_chunks, seen.ended), (3, 0, True))

    async def test_a_deadline_ends_a_request_and_the_connection_goes_on(self) -> None:
        with self.assertRaises(terrace.DeadlineExceeded):
            await self.daemon.await_lookup(os.urandom(16), timeout=0.05)
        self.server.pause()
        try:
            with self.assertRaises(terrace.DeadlineExceeded):
                await self.daemon.lookup(self.space, [1] * 16, timeout=0.05)
        finally:
            self.server.resume()
        self.assertEqual((await self.daemon.lookup(self.space, [1] * 16, timeout=PATIENCE)).requested_chunks, 1)

    async def test_cancelling_a_task_cancels_its_request(self) -> None:
        waiting = asyncio.create_task(self.daemon.await_lookup(os.urandom(16)))
        while await self.requests_in_flight() < 2:
            pass
        waiting.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await waiting
        while await self.requests_in_flight() > 1:  # counts the status request itself
            pass

    async def requests_in_flight(self) -> int:
        status = await self.daemon.status(timeout=PATIENCE)
        number = self.daemon.daemon.connection
        return next(client.requests_in_flight for client in status.clients if client.connection == number)

    async def test_errors_are_raised_where_they_are_awaited(self) -> None:
        with self.assertRaises(terrace.Error):
            await self.daemon.read_lease(bytes(15) + b"x", timeout=PATIENCE)
        with self.assertRaises(terrace.NotFound):
            await self.daemon.set_policy("moon", "lru", timeout=PATIENCE)

    async def test_a_space_is_closed_and_unknown_then(self) -> None:
        held = await self.daemon.reserve(self.space, [1] * 16, timeout=PATIENCE)
        with self.assertRaises(terrace.Busy):
            await self.daemon.close_space(self.space, timeout=PATIENCE)
        held.abort()
        await self.daemon.close_space(self.space, timeout=PATIENCE)
        for call in (self.daemon.close_space(self.space), self.daemon.lookup(self.space, [1] * 16)):
            with self.assertRaises(terrace.BadRequest):
                await call

    async def test_a_lookup_names_what_is_missing_and_returns_digests(self) -> None:
        chain = chain_of(3, 2)
        found = await self.daemon.lookup(self.space, Prefix.of_digests(chain), digests=True, timeout=PATIENCE)
        assert found.missing is not None
        self.assertEqual((found.missing.chunk, found.missing.damaged, found.digests), (0, False, chain))

    async def test_an_observer_only_looks(self) -> None:
        async with await terrace.aio.connect(self.server.socket, timeout=PATIENCE, observes=True) as observer:
            self.assertGreater((await observer.status(timeout=PATIENCE)).workers, 0)
            with self.assertRaisesRegex(terrace.BadRequest, "observes"):
                await observer.open_space(SPEC, timeout=PATIENCE)

    async def test_calls_on_the_thread_and_requests_on_the_loop_mix(self) -> None:
        async def ask(n: int) -> int:
            if n % 5 == 0:
                return len((await self.daemon.status(timeout=PATIENCE)).groups)
            return (await self.daemon.lookup(self.space, [1] * 16, timeout=PATIENCE)).requested_chunks

        self.assertEqual(await asyncio.gather(*(ask(n) for n in range(200))), [1] * 200)

    async def test_closing_ends_what_waits(self) -> None:
        waiting = asyncio.create_task(self.daemon.await_lookup(os.urandom(16)))
        await self.daemon.status(timeout=PATIENCE)
        await self.daemon.close()
        with self.assertRaises(terrace.Gone):
            await waiting
        await self.daemon.close()  # does nothing
        for call in (self.daemon.status(), self.daemon.lookup(self.space, [1] * 16)):
            with self.assertRaisesRegex(terrace.Gone, "closed"):
                await call

    async def test_the_daemons_death_ends_all_requests_and_is_survived(self) -> None:
        server = Daemon()
        self.addCleanup(server.stop)
        daemon = await terrace.aio.connect(server.socket, timeout=PATIENCE)
        space = await daemon.open_space(SPEC, timeout=PATIENCE)
        waiting = [asyncio.create_task(daemon.await_lookup(os.urandom(16))) for _ in range(3)]
        await daemon.status(timeout=PATIENCE)
        server.kill()
        for outcome in await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), PATIENCE):
            self.assertIsInstance(outcome, terrace.Gone)
        self.assertFalse(daemon.alive)
        with self.assertRaises(terrace.Gone):
            await daemon.lookup(space, [1] * 16)
        server.start()
        while True:
            try:
                self.assertFalse(await daemon.reconnect(PATIENCE))
                break
            except terrace.Gone:
                continue
        self.assertEqual((await daemon.lookup(space, [1] * 16, timeout=PATIENCE)).found_chunks, 0)
        await daemon.close()

    async def test_a_loss_that_a_request_notices_ends_those_that_wait(self) -> None:
        """When the request is sent, the event loop has not seen yet that the daemon is gone."""
        server = Daemon()
        self.addCleanup(server.stop)
        daemon = await terrace.aio.connect(server.socket, timeout=PATIENCE)
        space = await daemon.open_space(SPEC, timeout=PATIENCE)
        waiting = asyncio.create_task(daemon.await_lookup(os.urandom(16)))
        await asyncio.sleep(0)  # now it is sent
        server.kill()
        self.assertTrue(select.select([daemon._descriptor], [], [], PATIENCE)[0])
        with self.assertRaises(terrace.Gone):
            await daemon.lookup(space, [1] * 16)
        with self.assertRaises(terrace.Gone):
            await asyncio.wait_for(waiting, PATIENCE)
        await daemon.close()

    async def test_a_loss_is_noticed_with_nothing_in_flight(self) -> None:
        server = Daemon()
        self.addCleanup(server.stop)
        daemon = await terrace.aio.connect(server.socket, timeout=PATIENCE)
        server.kill()
        self.assertTrue(select.select([daemon._descriptor], [], [], PATIENCE)[0])

        async def unwatched() -> None:
            while daemon._descriptor >= 0:
                await asyncio.sleep(0)

        await asyncio.wait_for(unwatched(), PATIENCE)
        self.assertFalse(daemon.alive)
        await daemon.close()


if __name__ == "__main__":
    unittest.main()

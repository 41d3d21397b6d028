"""Regions in memory of a GPU, on the simulated driver and on the device in host memory."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import types
import unittest
import weakref
from typing import Any, Callable

import terrace
import terrace.aio
from daemon import OBJECT_BYTES, PATIENCE, SPEC, Daemon, chain_of, content_of
from simulated_gpu import ENVIRONMENT, DeviceArray, Gpu, VirtualArray
from terrace.status import DeviceStatus

Prefix = terrace.Prefix
CHUNKS = 4
PIECE = 8 << 10
PIECES = OBJECT_BYTES // PIECE
BEFORE = 1 << 20  # bytes of the allocation before the registered memory


class View:
    """A part of an allocation."""

    def __init__(self, of: DeviceArray, offset: int, nbytes: int) -> None:
        self.of = of
        self.__cuda_array_interface__ = {"shape": (nbytes,), "typestr": "|u1", "data": (of.address + offset, False), "version": 3}


def scattered(chunks: int) -> list[tuple[int, int, int, int]]:
    """Returns the pieces of an object among those of the others."""
    return [(i * PIECE, PIECE, chunks * PIECE, PIECES) for i in range(chunks)]


def laid_out(chain: list[bytes]) -> bytes:
    return b"".join(content_of(digest)[at:at + PIECE] for at in range(0, OBJECT_BYTES, PIECE) for digest in chain)


def eventually(holds: Callable[[], bool]) -> bool:
    until = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


class OnGpu(unittest.TestCase):
    gpu: Gpu
    server: Daemon

    @classmethod
    def setUpClass(cls) -> None:
        if "TERRACE_SIMULATED_DRIVER" not in os.environ:
            raise unittest.SkipTest("TERRACE_SIMULATED_DRIVER does not name the simulated driver")
        cls.gpu = Gpu()
        cls.addClassCleanup(cls.gpu.close)
        cls.server = Daemon(gpu=f'tier_bytes = "1MiB"\ntier_device = "{cls.gpu.uuid}"', environment=ENVIRONMENT)
        cls.addClassCleanup(cls.server.stop)

    def setUp(self) -> None:
        self.daemon = terrace.connect(self.server.socket, name=self._testMethodName, timeout=PATIENCE)
        self.addCleanup(self.daemon.close)
        self.space = self.daemon.open_space(SPEC, timeout=PATIENCE)
        self.array = DeviceArray(self.gpu, BEFORE + CHUNKS * OBJECT_BYTES)
        self.addCleanup(self.array.free)
        self.memory = View(self.array, BEFORE, CHUNKS * OBJECT_BYTES)

    def region(self, memory: Any = None, nbytes: int | None = None) -> terrace.Region:
        region = self.daemon.register_device_region(self.memory if memory is None else memory, nbytes, timeout=PATIENCE)
        self.addCleanup(region.unregister)  # runs before the memory is freed
        return region

    def device(self) -> DeviceStatus:
        (found,) = [each for each in self.daemon.status(timeout=PATIENCE).devices if each.device == self.gpu.uuid]
        return found

    def test_objects_are_stored_from_a_gpu_and_loaded_into_it(self) -> None:
        region = self.region()
        self.assertEqual((region.nbytes, region.device, region.mapped), (CHUNKS * OBJECT_BYTES, self.gpu.uuid, False))
        self.assertIn(self.gpu.uuid, repr(region))
        chain = chain_of(200, CHUNKS)
        prefix = Prefix.of_digests(chain)
        self.array.write(bytes(BEFORE) + laid_out(chain))
        stored = self.daemon.store(self.space, prefix, region, scattered(CHUNKS), timeout=PATIENCE)
        self.assertEqual((stored.stored_chunks, stored.nbytes), (CHUNKS, CHUNKS * OBJECT_BYTES))

        in_host_memory = self.daemon.lookup(self.space, prefix, lease=True, timeout=PATIENCE)
        assert in_host_memory.lease is not None
        with in_host_memory.lease as lease:
            located = self.daemon.read_lease(lease, timeout=PATIENCE)
            self.assertEqual([bytes(each) for each in located], [content_of(digest) for digest in chain])
            del located
            self.array.write(b"\x5a" * self.array.nbytes)
            runs = [(i * OBJECT_BYTES, OBJECT_BYTES) for i in range(CHUNKS)]
            loaded = self.daemon.load(None, lease, region, runs, timeout=PATIENCE)
        self.assertEqual((loaded.delivered_chunks, loaded.nbytes), (CHUNKS, CHUNKS * OBJECT_BYTES))
        self.assertEqual(self.array.read(0, BEFORE), b"\x5a" * BEFORE)  # nothing before the region was written
        self.assertEqual(self.array.read(BEFORE), b"".join(map(content_of, chain)))

    def test_a_connection_that_is_being_closed_is_gone_for_others_at_once(self) -> None:
        """Others see the connection as gone at once, although closing waits for the daemon."""
        daemon = terrace.connect(self.server.socket, timeout=PATIENCE)
        region = daemon.register_device_region(self.memory, timeout=PATIENCE)
        number = daemon.daemon.connection
        space = daemon.open_space(SPEC, timeout=PATIENCE)
        ticket = daemon.submit_lookup(space, Prefix.of_digests(chain_of(206, 1)), timeout=PATIENCE)
        self.server.pause()
        self.addCleanup(self.server.resume)
        closing = threading.Thread(target=daemon.close, kwargs={"timeout": PATIENCE})
        closing.start()
        while daemon.alive:
            time.sleep(0.001)
        for ask in (daemon.fileno, daemon.status):
            with self.assertRaises(terrace.Gone):
                ask()
        closing.join(0.1)
        self.assertTrue(closing.is_alive())  # otherwise they have waited for it
        del ticket
        self.server.resume()
        closing.join(PATIENCE)
        until = time.monotonic() + PATIENCE
        while number in {client.connection for client in self.daemon.status(timeout=PATIENCE).clients}:
            self.assertLess(time.monotonic(), until)  # handles left meanwhile do not keep it
        del region

    def test_rows_have_pieces_too(self) -> None:
        region = self.region()
        chain = chain_of(201, CHUNKS)
        self.array.write(laid_out(chain), BEFORE)
        rows = terrace.Rows(range(CHUNKS), PIECE, stride=CHUNKS * PIECE, count=PIECES)
        self.daemon.store(self.space, Prefix.of_digests(chain), region, rows, timeout=PATIENCE)
        self.array.write(bytes(self.array.nbytes))
        straight = [(i * OBJECT_BYTES, OBJECT_BYTES) for i in range(CHUNKS)]
        self.daemon.load(self.space, Prefix.of_digests(chain), region, straight, timeout=PATIENCE)
        self.assertEqual(self.array.read(BEFORE), b"".join(map(content_of, chain)))
        self.daemon.load(self.space, Prefix.of_digests(chain), region, rows, timeout=PATIENCE)
        self.assertEqual(self.array.read(BEFORE), laid_out(chain))

    def test_asyncio(self) -> None:
        async def run() -> None:
            async with await terrace.aio.connect(self.server.socket, timeout=PATIENCE) as daemon:
                space = await daemon.open_space(SPEC, timeout=PATIENCE)
                region = await daemon.register_device_region(self.memory, timeout=PATIENCE)
                try:
                    chain = chain_of(202, CHUNKS)
                    self.array.write(laid_out(chain), BEFORE)
                    prefix = Prefix.of_digests(chain)
                    await daemon.store(space, prefix, region, scattered(CHUNKS), timeout=PATIENCE)
                    self.array.write(bytes(self.array.nbytes))
                    found = await daemon.lookup(space, prefix, lease=True, timeout=PATIENCE)
                    assert found.lease is not None
                    with found.lease as lease:
                        loaded = await daemon.load(None, lease, region, scattered(CHUNKS), timeout=PATIENCE)
                    self.assertEqual(loaded.delivered_chunks, CHUNKS)
                    self.assertEqual(self.array.read(BEFORE), laid_out(chain))
                finally:
                    await asyncio.to_thread(region.unregister)

        asyncio.run(run())

    def test_chunks_move_between_tiers(self) -> None:
        region = self.region()
        chain = chain_of(203, CHUNKS)
        prefix = Prefix.of_digests(chain)
        self.array.write(laid_out(chain), BEFORE)
        self.daemon.store(self.space, prefix, region, scattered(CHUNKS), timeout=PATIENCE)

        def moved() -> bool:  # the tier begins with the first region
            done = self.daemon.move(self.space, prefix, terrace.Tier.GPU, timeout=PATIENCE)
            return done.moved_chunks + done.present_chunks == CHUNKS == done.requested_chunks

        self.assertTrue(eventually(moved))
        self.daemon.evict(self.space, prefix, [terrace.Tier.HOST], timeout=PATIENCE)
        self.array.write(bytes(self.array.nbytes))
        loaded = self.daemon.load(self.space, prefix, region, scattered(CHUNKS), timeout=PATIENCE)
        self.assertEqual(loaded.bytes_by_tier[terrace.Tier.GPU], CHUNKS * OBJECT_BYTES)
        self.assertEqual(self.array.read(BEFORE), laid_out(chain))
        evicted = self.daemon.evict(self.space, prefix, timeout=PATIENCE)
        self.assertEqual(evicted.objects, CHUNKS)
        self.assertGreaterEqual(evicted.nbytes, CHUNKS * OBJECT_BYTES)
        self.assertEqual(self.daemon.lookup(self.space, prefix, timeout=PATIENCE).found_chunks, 0)
        with self.assertRaises(terrace.Unsupported):  # there is no disk
            self.daemon.move(self.space, prefix, terrace.Tier.DISK, timeout=PATIENCE)

    def test_a_store_waits_for_a_generation(self) -> None:
        region = self.region()
        page = terrace.Memory(4096)
        counters = self.daemon.register_generations(page, self.gpu.uuid, timeout=PATIENCE)
        self.addCleanup(counters.unregister)
        bell = self.daemon.bell(timeout=PATIENCE)
        chain = chain_of(204, 1)
        ticket = self.daemon.submit_store(self.space, Prefix.of_digests(chain), region, [(0, OBJECT_BYTES)],
                                          after=(counters, 8, 3), timeout=PATIENCE)
        self.daemon.status(timeout=PATIENCE)  # the answer shows that the daemon has the store
        self.daemon.poll()
        self.assertFalse(ticket.done)
        self.array.write(content_of(chain[0]), BEFORE)
        self.gpu_writes(page, 8, 3, bell)
        self.assertEqual(ticket.result(PATIENCE).stored_chunks, 1)
        self.array.write(bytes(OBJECT_BYTES), BEFORE)
        self.daemon.load(self.space, Prefix.of_digests(chain), region, [(0, OBJECT_BYTES)], timeout=PATIENCE)
        self.assertEqual(self.array.read(BEFORE, OBJECT_BYTES), content_of(chain[0]))

        prefix, run = Prefix.of_digests(chain_of(205, 1)), [(0, OBJECT_BYTES)]
        for wrong in (3, (counters, 8), (page, 8, 3)):
            with self.assertRaises(TypeError):
                self.daemon.store(self.space, prefix, region, run, after=wrong, timeout=PATIENCE)  # type: ignore[arg-type]
        with self.assertRaises(terrace.BadRequest):
            self.daemon.store(self.space, prefix, region, run, after=(counters, 6, 1), timeout=PATIENCE)
        counters.unregister()
        with self.assertRaises(terrace.BadRequest):
            self.daemon.store(self.space, prefix, region, run, after=(counters, 8, 1), timeout=PATIENCE)
        with self.assertRaises(terrace.NotFound):
            self.daemon.register_generations(page, "GPU-00000000-0000-0000-0000-000000000000", timeout=PATIENCE)
        with self.assertRaises(terrace.NotFound):
            bell.ring_after(4096, "GPU-00000000-0000-0000-0000-000000000000")

    def gpu_writes(self, page: terrace.Memory, offset: int, value: int, bell: terrace.Bell) -> None:
        """Writes as a stream of the GPU does after its work, and rings."""
        address = terrace._libterrace.address_of(page)[0]
        self.gpu.call("cuMemHostRegister_v2", address, page.nbytes, 3)
        try:
            self.gpu.call("cuStreamWriteValue32_v2", self.gpu._stream, address + offset, value, 0)
            assert self.gpu._stream.value is not None
            bell.ring_after(self.gpu._stream.value, self.gpu.uuid)
            self.gpu.call("cuStreamSynchronize", self.gpu._stream)
        finally:
            self.gpu.call("cuMemHostUnregister", address)
        self.assertEqual(struct.unpack_from("I", memoryview(page), offset), (value,))

    def test_runs_outside_of_the_memory_are_refused(self) -> None:
        region = self.region()
        prefix = Prefix.of_digests(chain_of(206, 1))
        size = CHUNKS * OBJECT_BYTES
        most = (1 << 64) - 1
        for run in ((size - OBJECT_BYTES + 1, OBJECT_BYTES), (most - BEFORE + 1, OBJECT_BYTES), (0, PIECE, size, PIECES),
                    (0, PIECE, most, PIECES), (0, most), (most - 1, 2)):
            with self.assertRaises(terrace.BadRequest, msg=str(run)) as refused:
                self.daemon.load(self.space, prefix, region, [run], timeout=PATIENCE)
            self.assertIn("inside of the", str(refused.exception))
        with self.assertRaises(terrace.BadRequest):
            self.daemon.store(self.space, prefix, region, terrace.Rows([size // PIECE], PIECE), timeout=PATIENCE)
        with self.assertRaises(terrace.BadRequest):
            region.run_of(memoryview(b"elsewhere"))

    def test_addresses_and_parts_of_memory_are_registered(self) -> None:
        chain = chain_of(207, 1)
        by_address = self.region(self.array.address + BEFORE, OBJECT_BYTES)
        part = self.region(self.memory, OBJECT_BYTES)
        self.assertEqual((by_address.nbytes, part.nbytes), (OBJECT_BYTES, OBJECT_BYTES))
        self.array.write(content_of(chain[0]), BEFORE)
        self.daemon.store(self.space, Prefix.of_digests(chain), by_address, [(0, OBJECT_BYTES)], timeout=PATIENCE)
        self.array.write(bytes(self.array.nbytes))
        self.daemon.load(self.space, Prefix.of_digests(chain), part, [(0, OBJECT_BYTES)], timeout=PATIENCE)
        self.assertEqual(self.array.read(BEFORE, OBJECT_BYTES), content_of(chain[0]))

    def test_tensors_are_registered(self) -> None:
        """Registers objects that describe themselves as PyTorch's CUDA tensors and storages do."""
        address, nbytes = self.array.address + BEFORE, CHUNKS * OBJECT_BYTES
        tensor = types.SimpleNamespace(is_cuda=True, is_contiguous=lambda: True, data_ptr=lambda: address, nbytes=nbytes)
        storage = types.SimpleNamespace(is_cuda=True, data_ptr=lambda: address, nbytes=lambda: nbytes)
        for memory in (tensor, storage):
            region = self.region(memory)
            self.assertEqual((region.nbytes, region.device), (nbytes, self.gpu.uuid))
        for wrong, says in (({"is_cuda": False}, "of the host"), ({"is_contiguous": lambda: False}, "contiguous")):
            with self.assertRaisesRegex(terrace.BadRequest, says):
                self.region(types.SimpleNamespace(**{**vars(tensor), **wrong}))

    def test_memory_that_cannot_be_registered_is_refused(self) -> None:
        virtual = VirtualArray(self.gpu)
        self.addCleanup(virtual.free)
        with self.assertRaisesRegex(terrace.Unsupported, "expandable_segments"):
            self.region(virtual.address, 4096)
        for memory, nbytes, says in (
            (memoryview(b"some bytes"), None, "__cuda_array_interface__"),
            (self.array.address, None, "the number of bytes"),
            (self.array.address, 0, "at least one byte"),
            (self.array.address, self.array.nbytes + 1, "inside of one allocation"),
            (4096, 4096, "expected memory of a GPU"),
            (self.memory, CHUNKS * OBJECT_BYTES + 1, "at most"),
        ):
            with self.assertRaisesRegex(terrace.BadRequest, says):
                self.region(memory, nbytes)
        gaps = View(self.array, 0, 4096)
        gaps.__cuda_array_interface__ |= {"shape": (16, 16), "strides": (64, 1)}
        with self.assertRaisesRegex(terrace.BadRequest, "contiguous"):
            self.region(gaps)
        gaps.__cuda_array_interface__ |= {"shape": (16, 16), "strides": (16, 1)}
        self.assertEqual(self.region(gaps).nbytes, 256)
        with self.assertRaisesRegex(terrace.BadRequest, '"host"'):
            self.daemon.register_device_region(self.memory, device=self.gpu.uuid, timeout=PATIENCE)

    def test_memory_of_our_own_is_registered(self) -> None:
        memory = terrace.DeviceMemory(CHUNKS * OBJECT_BYTES, self.gpu.uuid)
        self.assertEqual((memory.nbytes, memory.__cuda_array_interface__["shape"]), (CHUNKS * OBJECT_BYTES, (CHUNKS * OBJECT_BYTES,)))
        region = self.region(memory)
        self.assertEqual((region.nbytes, region.device), (memory.nbytes, self.gpu.uuid))
        del memory  # the region keeps it
        chain = chain_of(212, 1)
        self.daemon.store(self.space, Prefix.of_digests(chain), region, [(0, OBJECT_BYTES)], timeout=PATIENCE)
        region.unregister(timeout=PATIENCE)
        for wrong, device, error in ((0, self.gpu.uuid, terrace.BadRequest), (4096, "host", terrace.BadRequest),
                                     (4096, "GPU-00000000-0000-0000-0000-000000000000", terrace.NotFound),
                                     (1 << 50, self.gpu.uuid, terrace.NoSpace)):
            self.assertRaises(error, terrace.DeviceMemory, wrong, device)

    def test_a_stream_raises_the_counter_that_a_store_waits_for(self) -> None:
        region = self.region()
        page = terrace.Memory(4096)
        counters = self.daemon.register_generations(page, self.gpu.uuid, timeout=PATIENCE)
        counter = terrace.StoreCounter(page, counters, self.gpu.uuid, offset=8)
        bell = self.daemon.bell(timeout=PATIENCE)
        for value in (1, 2):
            chain = chain_of(212 + value, 1)
            self.array.write(content_of(chain[0]), BEFORE)
            after = counter.raise_after(self.gpu.stream)
            bell.ring_after(self.gpu.stream, self.gpu.uuid)
            self.assertEqual(after[1:], (8, value))
            ticket = self.daemon.submit_store(self.space, Prefix.of_digests(chain), region, [(0, OBJECT_BYTES)], after=after,
                                              timeout=PATIENCE)
            self.assertEqual(ticket.result(PATIENCE).stored_chunks, 1)
            self.assertEqual(struct.unpack_from("I", memoryview(page), 8), (value,))
        with self.assertRaisesRegex(terrace.BadRequest, "the default one"):
            counter.raise_after(0)
        for offset in (2, 4096):
            with self.assertRaisesRegex(terrace.BadRequest, "inside of the memory"):
                terrace.StoreCounter(page, counters, self.gpu.uuid, offset=offset)
        with self.assertRaises(TypeError):
            terrace.StoreCounter(page, page, self.gpu.uuid)  # type: ignore[arg-type]
        del counter  # the counter has the page and its region
        self.addCleanup(counters.unregister)

    def test_unregistering_waits_for_copies(self) -> None:
        region = self.region()
        page = terrace.Memory(4096)
        counters = self.daemon.register_generations(page, self.gpu.uuid, timeout=PATIENCE)
        self.addCleanup(counters.unregister)
        bell = self.daemon.bell(timeout=PATIENCE)
        ticket = self.daemon.submit_store(self.space, Prefix.of_digests(chain_of(208, 1)), region, [(0, OBJECT_BYTES)],
                                          after=(counters, 0, 1), timeout=PATIENCE)
        with self.assertRaises(terrace.DeadlineExceeded):
            region.unregister(timeout=0)  # the store may read it
        self.assertFalse(region.registered)
        self.gpu_writes(page, 0, 1, bell)
        ticket.result(PATIENCE)

    def test_a_region_keeps_its_memory(self) -> None:
        memory = View(self.array, BEFORE, OBJECT_BYTES)
        region = self.region(memory)
        alive = weakref.ref(memory)
        del memory
        gc.collect()
        self.assertIsNotNone(alive())
        region.unregister(timeout=PATIENCE)
        gc.collect()
        self.assertIsNone(alive())
        region.unregister(timeout=PATIENCE)  # does nothing
        with self.assertRaises(terrace.BadRequest):
            self.daemon.load(self.space, Prefix.of_digests(chain_of(209, 1)), region, [(0, OBJECT_BYTES)], timeout=PATIENCE)

    def test_a_region_that_is_dropped_keeps_its_memory_until_the_connection_ends(self) -> None:
        daemon = terrace.connect(self.server.socket, timeout=PATIENCE)
        memory = View(self.array, BEFORE, OBJECT_BYTES)
        region = daemon.register_device_region(memory, timeout=PATIENCE)
        regions = lambda: {each.connection: each.regions for each in self.daemon.status(timeout=PATIENCE).clients}
        number = daemon.daemon.connection
        self.assertEqual(regions()[number], 1)
        alive = weakref.ref(memory)
        del memory, region
        gc.collect()
        self.assertIsNotNone(alive())
        self.assertEqual(regions()[number], 1)
        daemon.close()
        gc.collect()
        self.assertIsNone(alive())
        self.assertTrue(eventually(lambda: number not in regions()))

    def test_status_has_the_device(self) -> None:
        self.region()
        device = self.device()
        self.assertEqual(device.state, "ready")
        self.assertGreaterEqual(device.regions, 1)

    def test_a_gpu_whose_process_ended_is_told(self) -> None:
        region = self.region()
        prefix = Prefix.of_digests(chain_of(210, 1))
        self.daemon.store(self.space, prefix, region, [(0, OBJECT_BYTES)], timeout=PATIENCE)
        os.kill(self.device().pid, signal.SIGKILL)

        def gone() -> bool:
            try:
                self.daemon.load(self.space, prefix, region, [(0, OBJECT_BYTES)], timeout=PATIENCE)
            except terrace.Gone:
                return True
            return False

        self.assertTrue(eventually(gone))
        self.assertTrue(self.daemon.alive)
        region.unregister(timeout=PATIENCE)
        again = self.region()
        loaded = self.daemon.load(self.space, prefix, again, [(0, OBJECT_BYTES)], timeout=PATIENCE)
        self.assertEqual(loaded.delivered_chunks, 1)

    def test_without_its_daemon_a_region_keeps_its_memory_until_the_connection_ends(self) -> None:
        server = Daemon(environment=ENVIRONMENT)
        self.addCleanup(server.stop)
        daemon = terrace.connect(server.socket, timeout=PATIENCE)
        memory = View(self.array, BEFORE, OBJECT_BYTES)
        region = daemon.register_device_region(memory, timeout=PATIENCE)
        alive = weakref.ref(memory)
        del memory
        server.kill()
        with self.assertRaises(terrace.Gone):
            region.unregister(timeout=PATIENCE)
        gc.collect()
        self.assertIsNotNone(alive())
        daemon.close()
        self.assertIsNone(alive())
        closed = terrace.connect(self.server.socket, timeout=PATIENCE)
        late = closed.register_device_region(self.memory, timeout=PATIENCE)
        closed.close()
        late.unregister(timeout=PATIENCE)  # it ended with the connection
        self.assertFalse(late.registered)

    def test_threads_may_unregister_while_others_use_the_connection(self) -> None:
        region = self.region()
        chain = chain_of(211, 1)
        self.daemon.store(self.space, Prefix.of_digests(chain), region, [(0, OBJECT_BYTES)], timeout=PATIENCE)
        threads = [threading.Thread(target=region.unregister) for _ in range(3)]
        for thread in threads:
            thread.start()
        found = [self.daemon.lookup(self.space, Prefix.of_digests(chain), timeout=PATIENCE).found_chunks for _ in range(20)]
        for thread in threads:
            thread.join()
        self.assertEqual(found, [1] * 20)
        self.assertFalse(region.registered)


class AtTheEnd(unittest.TestCase):
    """Closes a connection whose regions were not unregistered, while the process of the GPU hangs in a copy."""

    def setUp(self) -> None:
        if "TERRACE_SIMULATED_DRIVER" not in os.environ:
            self.skipTest("TERRACE_SIMULATED_DRIVER does not name the simulated driver")

    def loading(self, deadline: str) -> tuple[terrace.Connection, View, int]:
        """Returns a connection with a load into the memory, and the process that performs it."""
        gpu = Gpu()
        self.addCleanup(gpu.close)
        array = DeviceArray(gpu, OBJECT_BYTES)
        self.addCleanup(array.free)
        with tempfile.NamedTemporaryFile("w", delete=False) as faults:
            faults.write("hang copies\n")
        self.addCleanup(os.unlink, faults.name)
        environment = {**ENVIRONMENT, "TERRACE_SIMULATION": faults.name}
        server = Daemon(gpu=f'deadline = "{deadline}"', environment=environment)
        self.addCleanup(server.stop)
        daemon = terrace.connect(server.socket, timeout=PATIENCE)
        space = daemon.open_space(SPEC, timeout=PATIENCE)
        chain = chain_of(230, 1)
        pages = terrace.Memory(OBJECT_BYTES)
        memoryview(pages)[:] = content_of(chain[0])
        here = daemon.register_region(pages, timeout=PATIENCE)
        prefix = Prefix.of_digests(chain)
        daemon.store(space, prefix, here, [(0, OBJECT_BYTES)], timeout=PATIENCE)
        memory = View(array, 0, OBJECT_BYTES)
        region = daemon.register_device_region(memory, timeout=PATIENCE)
        (device,) = daemon.status(timeout=PATIENCE).devices
        daemon.submit_load(space, prefix, region, [(0, OBJECT_BYTES)], timeout=PATIENCE)
        return daemon, memory, device.pid

    def test_memory_is_let_go_when_nothing_accesses_it(self) -> None:
        daemon, memory, pid = self.loading(deadline="1s")
        accessed: list[bool] = []
        alive = weakref.ref(memory, lambda _: accessed.append(os.path.exists(f"/proc/{pid}")))
        del memory
        gc.collect()
        self.assertIsNotNone(alive())
        daemon.close(timeout=PATIENCE)
        gc.collect()
        self.assertEqual(accessed, [False])

    def test_memory_of_a_connection_that_is_dropped_too(self) -> None:
        daemon, memory, pid = self.loading(deadline="1s")
        accessed: list[bool] = []
        alive = weakref.ref(memory, lambda _: accessed.append(os.path.exists(f"/proc/{pid}")))
        del memory, daemon
        gc.collect()
        self.assertIsNone(alive())
        self.assertEqual(accessed, [False])

    def test_memory_that_may_be_accessed_is_never_let_go(self) -> None:
        daemon, memory, pid = self.loading(deadline="60s")
        alive = weakref.ref(memory)
        del memory
        daemon.close(timeout=0.1)
        gc.collect()
        self.assertTrue(os.path.exists(f"/proc/{pid}"))
        self.assertIsNotNone(alive())


class OnHost(unittest.TestCase):
    """Tests on the device in host memory."""

    def test_memory_of_the_host_stands_in_for_a_gpus(self) -> None:
        server = Daemon(gpu='tier_bytes = "1MiB"\ntier_device = "host"')
        self.addCleanup(server.stop)
        with terrace.connect(server.socket, timeout=PATIENCE) as daemon:
            space = daemon.open_space(SPEC, timeout=PATIENCE)
            chain = chain_of(220, 2)
            prefix = Prefix.of_digests(chain)
            memory = terrace.Memory(4 * OBJECT_BYTES)
            view = memoryview(memory)
            with daemon.register_device_region(memory, device="host", timeout=PATIENCE) as region:
                self.assertEqual((region.device, region.nbytes), ("host", 4 * OBJECT_BYTES))
                view[: 2 * OBJECT_BYTES] = b"".join(map(content_of, chain))
                daemon.store(space, prefix, region, [view[:OBJECT_BYTES], view[OBJECT_BYTES:2 * OBJECT_BYTES]], timeout=PATIENCE)
                self.assertTrue(eventually(
                    lambda: daemon.move(space, prefix, terrace.Tier.GPU, timeout=PATIENCE).present_chunks == 2))
                runs = [(2 * OBJECT_BYTES, OBJECT_BYTES), (3 * OBJECT_BYTES, OBJECT_BYTES)]
                loaded = daemon.load(space, prefix, region, runs, timeout=PATIENCE)
                self.assertEqual(loaded.bytes_by_tier[terrace.Tier.GPU], 2 * OBJECT_BYTES)
                self.assertEqual(view[2 * OBJECT_BYTES:], view[: 2 * OBJECT_BYTES])
            with self.assertRaises(terrace.BadRequest):
                daemon.register_device_region(bytes(4096), device="host", timeout=PATIENCE)

    def test_without_a_driver_it_is_unsupported(self) -> None:
        """Runs in a process of its own, because this one may have the simulated driver already."""
        server = Daemon()
        self.addCleanup(server.stop)
        program = (
            "import sys, terrace\n"
            "daemon = terrace.connect(sys.argv[1])\n"
            "try: daemon.register_device_region(4096, 4096)\n"
            "except terrace.Unsupported as error: print(error)\n"
            "try: terrace.DeviceMemory(4096, 'GPU-00000000-0000-0000-0000-000000000000')\n"
            "except terrace.Unsupported as error: print(error)\n"
        )
        environment = {**os.environ, "LD_LIBRARY_PATH": ""}
        said = subprocess.run([sys.executable, "-c", program, server.socket], env=environment, text=True, check=True,
                              stdout=subprocess.PIPE).stdout
        self.assertEqual(said.count("no CUDA driver"), 2)


if __name__ == "__main__":
    unittest.main()

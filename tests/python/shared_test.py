"""Memory of other libraries: shared memory without a copy, and arrays and tensors as arguments."""

from __future__ import annotations

import importlib.util
import mmap
import os
import unittest
from multiprocessing.shared_memory import SharedMemory
from typing import Any

import terrace
from daemon import CHUNK_TOKENS, OBJECT_BYTES, PATIENCE, DaemonTest, chain_of, content_of

Prefix = terrace.Prefix


def needs(module: str) -> Any:
    return unittest.skipUnless(importlib.util.find_spec(module), f"needs {module}")


class Shared(DaemonTest):
    def check_region(self, memory: Any, pieces: list[Any], seed: int) -> None:
        """Stores the contents of two pieces and loads them back in reverse, naming only the pieces."""
        region = self.daemon.register_region(memory, timeout=PATIENCE)
        chain = chain_of(seed, 2)
        views = [memoryview(piece).cast("B") for piece in pieces]
        for view, digest in zip(views, chain):
            view[:] = content_of(digest)
        self.daemon.store(self.space, Prefix.of_digests(chain), region, pieces, timeout=PATIENCE)
        self.daemon.load(self.space, Prefix.of_digests(chain), region, pieces[::-1], timeout=PATIENCE)
        self.assertEqual([bytes(view) for view in views], [content_of(digest) for digest in chain[::-1]])

    def test_a_region_of_an_mmap_of_a_memfd(self) -> None:
        descriptor = os.memfd_create("test")
        os.ftruncate(descriptor, 3 * OBJECT_BYTES)
        mapped = mmap.mmap(descriptor, 3 * OBJECT_BYTES)
        view = memoryview(mapped)
        self.check_region(mapped, [view[OBJECT_BYTES:2 * OBJECT_BYTES], view[2 * OBJECT_BYTES:]], 1)
        os.close(descriptor)

    def test_a_region_of_a_part_of_a_file_in_dev_shm(self) -> None:
        path = f"/dev/shm/terrace-python-test-{os.getpid()}"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        self.addCleanup(os.unlink, path)
        os.ftruncate(descriptor, 3 * OBJECT_BYTES)
        mapped = mmap.mmap(descriptor, 2 * OBJECT_BYTES, offset=OBJECT_BYTES)
        os.close(descriptor)
        view = memoryview(mapped)
        self.check_region(mapped, [view[:OBJECT_BYTES], view[OBJECT_BYTES:]], 2)
        with open(path, "rb") as file:
            self.assertEqual(file.read(OBJECT_BYTES), bytes(OBJECT_BYTES))

    def test_a_region_of_multiprocessings_shared_memory(self) -> None:
        memory = SharedMemory(create=True, size=2 * OBJECT_BYTES)
        view = memory.buf
        assert view is not None
        self.check_region(memory, [view[:OBJECT_BYTES], view[OBJECT_BYTES:2 * OBJECT_BYTES]], 3)
        memory.unlink()

    def test_a_region_by_its_descriptor(self) -> None:
        descriptor = os.memfd_create("test")
        os.ftruncate(descriptor, OBJECT_BYTES)
        region = self.daemon.register_region(descriptor, timeout=PATIENCE)
        self.assertEqual(region.nbytes, OBJECT_BYTES)
        os.close(descriptor)  # the region has a duplicate
        stored = self.daemon.store(self.space, Prefix.of_digests(chain_of(4, 1)), region, [(0, OBJECT_BYTES)], timeout=PATIENCE)
        self.assertEqual(stored.stored_chunks, 1)
        with self.assertRaisesRegex(terrace.BadRequest, "by a descriptor"):
            region.run_of(bytearray(10))

    @needs("numpy")
    def test_numpy_sees_the_same_memory(self) -> None:
        import numpy

        memory = terrace.Memory(4 * OBJECT_BYTES)
        array = numpy.frombuffer(memoryview(memory), dtype=numpy.uint16).reshape(4, -1)
        self.check_region(memory, [array[1], array[3]], 5)
        by_dlpack = numpy.from_dlpack(memory)
        by_dlpack[0] = 77
        self.assertEqual(memoryview(memory)[0], 77)
        self.assertEqual(self.daemon.lookup(self.space, numpy.arange(40, dtype=numpy.int64)).requested_chunks, 2)
        with self.assertRaises((BufferError, TypeError, ValueError)):
            self.daemon.lookup(self.space, numpy.arange(80, dtype=numpy.int32)[::2])
        chain = chain_of(6, 1)
        self.store(chain)
        located = self.daemon.read_lease(self.lease(chain), timeout=PATIENCE)
        leased = numpy.frombuffer(memoryview(located[0]), dtype=numpy.uint8)
        self.assertFalse(leased.flags.writeable)
        self.assertEqual(leased.tobytes(), content_of(chain[0]))
        reservation = self.daemon.reserve(self.space, Prefix.of_digests(chain_of(7, 1)), timeout=PATIENCE)
        held = numpy.from_dlpack(reservation.objects[0])
        with self.assertRaises(BufferError):
            self.daemon.commit(reservation, timeout=PATIENCE)
        del held
        self.daemon.commit(reservation, timeout=PATIENCE)

    @needs("torch")
    def test_torch_tensors_are_regions_destinations_and_tokens(self) -> None:
        import torch

        memory = terrace.Memory(2 * OBJECT_BYTES)
        tensor = torch.from_dlpack(memory).view(torch.bfloat16).reshape(2, -1)
        region = self.daemon.register_region(memory, timeout=PATIENCE)
        tensor[0] = 1.5
        tensor[1] = -2
        tokens = torch.arange(2 * CHUNK_TOKENS) + 5
        self.daemon.store(self.space, tokens, region, [tensor[0].view(torch.uint8), tensor[1].view(torch.uint8)], timeout=PATIENCE)
        # Uses a tensor that torch itself shares.
        own = torch.zeros(2, OBJECT_BYTES // 2, dtype=torch.bfloat16).share_memory_()
        shared = self.daemon.register_region(own.view(torch.uint8), timeout=PATIENCE)
        loaded = self.daemon.load(self.space, tokens, shared, [row.view(torch.uint8) for row in own], timeout=PATIENCE)
        self.assertEqual(loaded.delivered_chunks, 2)
        self.assertTrue(torch.equal(own, tensor))
        # Uses one that is not in shared memory.
        plain = torch.empty(2, OBJECT_BYTES // 2, dtype=torch.bfloat16)
        lease = self.daemon.lookup(self.space, tokens, lease=True, timeout=PATIENCE).lease
        assert lease is not None
        self.daemon.load_under_lease(lease, [row.view(torch.uint8) for row in plain], timeout=PATIENCE)
        self.assertTrue(torch.equal(plain, tensor))


if __name__ == "__main__":
    unittest.main()

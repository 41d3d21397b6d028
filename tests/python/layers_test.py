"""Layers of loads, for which streams of the simulated GPU wait."""

from __future__ import annotations

import ctypes
import mmap
import os
import unittest

import terrace
from daemon import CHUNK_TOKENS, PATIENCE, Daemon, chain_of
from simulated_gpu import ENVIRONMENT, DeviceArray, Gpu

Prefix = terrace.Prefix
LAYERS, CHUNKS, PIECE = 4, 4, 16 << 10
SPEC = terrace.SpaceSpec(
    "layers", "bf16", "paged", [terrace.Pool(f"layer.{i}", object_bytes=PIECE) for i in range(LAYERS)], chunk_tokens=CHUNK_TOKENS
)


def piece(digest: bytes, layer: int) -> bytes:
    return (digest[:-1] + bytes([layer])) * (PIECE // len(digest))


def content(chain: list[bytes]) -> bytes:
    """Returns the content of the memory: layer by layer, with zeros for the missing chunks."""
    pieces = [piece(chain[i], layer) if i < len(chain) else bytes(PIECE) for layer in range(LAYERS) for i in range(CHUNKS)]
    return b"".join(pieces)


def runs(chunks: int) -> list[tuple[int, int]]:
    """Returns the runs of objects by chunk, then by layer."""
    return [((layer * CHUNKS + chunk) * PIECE, PIECE) for chunk in range(chunks) for layer in range(LAYERS)]


class Layers(unittest.TestCase):
    gpu: Gpu
    server: Daemon

    @classmethod
    def setUpClass(cls) -> None:
        if "TERRACE_SIMULATED_DRIVER" not in os.environ:
            raise unittest.SkipTest("TERRACE_SIMULATED_DRIVER does not name the simulated driver")
        cls.gpu = Gpu()
        cls.addClassCleanup(cls.gpu.close)
        cls.server = Daemon(environment=ENVIRONMENT)
        cls.addClassCleanup(cls.server.stop)

    def setUp(self) -> None:
        self.daemon = terrace.connect(self.server.socket, name=self._testMethodName, timeout=PATIENCE)
        self.space = self.daemon.open_space(SPEC, timeout=PATIENCE)
        self.array = DeviceArray(self.gpu, LAYERS * CHUNKS * PIECE)
        self.addCleanup(self.array.free)
        self.addCleanup(self.daemon.close)
        self.region = self.daemon.register_device_region(self.array, timeout=PATIENCE)
        page = terrace.Memory(terrace.LayerRing.bytes_for(3, LAYERS))
        self.ring = terrace.LayerRing(
            page, self.daemon.register_generations(page, self.region.device, timeout=PATIENCE), self.region.device, layers=LAYERS
        )
        self.pages = mmap.mmap(-1, self.array.nbytes)
        self.inner = ctypes.c_char.from_buffer(self.pages)
        self.host = ctypes.addressof(self.inner)
        self.gpu.call("cuMemHostRegister_v2", ctypes.c_uint64(self.host), ctypes.c_size_t(self.array.nbytes), 3)
        self.addCleanup(self.gpu.call, "cuMemHostUnregister", ctypes.c_uint64(self.host))

    def store(self, chain: list[bytes]) -> None:
        self.array.write(content(chain))
        self.daemon.store(self.space, Prefix.of_digests(chain), self.region, runs(len(chain)), timeout=PATIENCE)
        self.array.write(b"\x5a" * self.array.nbytes)

    def compute(self, load: terrace.LayeredLoad) -> None:
        """Queues what an engine does: it reads each layer once it is there."""
        for layer in range(LAYERS):
            load.wait_on(self.gpu.stream, layer)
            at = layer * CHUNKS * PIECE
            self.gpu.queue_copy(self.host + at, self.array.address + at, CHUNKS * PIECE)
        load.pass_on(self.gpu.stream)

    def test_a_stream_that_waits_first_reads_what_is_loaded(self) -> None:
        for seed in range(5):  # more loads than there are slots
            chain = chain_of(240 + seed, CHUNKS)
            self.store(chain)
            load = self.ring.begin(timeout=PATIENCE)
            self.compute(load)
            self.assertFalse(load.arrived(0))
            ticket = self.daemon.submit_load(
                self.space, Prefix.of_digests(chain), self.region, runs(CHUNKS), layers=load, timeout=PATIENCE
            )
            self.gpu.finish()  # finishes without the answer
            self.assertEqual(self.pages[:], content(chain))
            self.assertTrue(load.wait(LAYERS - 1, timeout=PATIENCE))
            self.assertEqual(ticket.result(PATIENCE).delivered_chunks, CHUNKS)

    def test_a_load_that_fails_lets_its_stream_go(self) -> None:
        chain = chain_of(250, CHUNKS)
        self.store(chain[:2])
        load = self.ring.begin()
        self.compute(load)
        loaded = self.daemon.load(self.space, Prefix.of_digests(chain), self.region, runs(CHUNKS), layers=load, timeout=PATIENCE)
        self.gpu.finish()
        self.assertEqual(loaded.delivered_chunks, 2)  # so the computed result is worthless
        load = self.ring.begin()
        self.compute(load)
        with self.assertRaises(terrace.BadRequest):
            self.daemon.load(self.space, Prefix.of_digests(chain), self.region, runs(1), layers=load, timeout=PATIENCE)
        self.gpu.finish()
        load = self.ring.begin()
        self.compute(load)
        ticket = self.daemon.submit_load(
            self.space, Prefix.of_digests(chain), self.region, runs(CHUNKS), layers=load, timeout=PATIENCE
        )
        ticket.cancel()
        self.gpu.finish()

    def test_a_slot_is_used_again_when_its_load_has_ended_and_its_stream_has_passed(self) -> None:
        chain = chain_of(251, CHUNKS)
        self.store(chain)
        loads = [self.ring.begin() for _ in range(3)]
        with self.assertRaisesRegex(terrace.Busy, "has not ended"):
            self.ring.begin()
        self.daemon.load(self.space, Prefix.of_digests(chain), self.region, runs(CHUNKS), layers=loads[0], timeout=PATIENCE)
        with self.assertRaisesRegex(terrace.Busy, "have not passed"):
            self.ring.begin()
        self.compute(loads[0])
        self.gpu.finish()
        self.ring.begin().end()
        loads[1].end()
        loads[1].pass_now()
        self.assertFalse(self.ring.begin().wait(0, timeout=0.001))

    def test_what_is_wrong_is_refused(self) -> None:
        load = self.ring.begin()
        for wrong in (
            lambda: load.wait_on(self.gpu.stream, LAYERS),
            lambda: load.arrived(LAYERS),
            lambda: load.wait_on(0, 0),
            lambda: load.pass_on(0),
        ):
            self.assertRaises(terrace.BadRequest, wrong)
        load.end()
        prefix = Prefix.of_digests(chain_of(252, CHUNKS))
        with self.assertRaises(terrace.BadRequest):  # the load has ended
            self.daemon.load(self.space, prefix, self.region, runs(CHUNKS), layers=load, timeout=PATIENCE)
        with self.assertRaises(TypeError):
            self.daemon.load(self.space, prefix, self.region, runs(CHUNKS), layers=3, timeout=PATIENCE)  # type: ignore[arg-type]
        page = terrace.Memory(4096)
        at = self.daemon.register_generations(page, self.region.device, timeout=PATIENCE)
        with self.assertRaises(terrace.BadRequest):
            terrace.LayerRing(page, at, self.region.device, layers=LAYERS, loads=2)
        with self.assertRaises(TypeError):
            terrace.LayerRing(page, page, self.region.device, layers=LAYERS)  # type: ignore[arg-type]
        of_no_gpu = terrace.LayerRing(page, at, "host", layers=LAYERS).begin()
        with self.assertRaises(terrace.BadRequest):
            of_no_gpu.wait_on(self.gpu.stream, 0)


if __name__ == "__main__":
    unittest.main()

"""The connector's worker side with KV in memory of the simulated GPU: first everything that it does with memory of the
host, then the order of streams; vllm_device_loss_test.py covers losses."""

from __future__ import annotations

import faulthandler
import os
import socket
import tempfile
import threading
import unittest
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from unittest import mock

import terrace
import vllm_connector_test as on_host
from daemon import PATIENCE, Daemon
from simulated_gpu import ENVIRONMENT, Gpu
from simulated_kv import Pinned, SimulatedKv
from terrace.vllm import requests
from terrace.vllm.device_staging import LOADS, DeviceStaging
from vllm_connector_test import BLOCKS, BYTES, CHUNK, Request, content, plan_with, until


class Engine(on_host.Engine):
    gpu: Gpu

    def staging(self, slots: int) -> DeviceStaging:
        self.mover: SimulatedKv = SimulatedKv(self.gpu, self.plan, BYTES, BLOCKS, slots)
        return DeviceStaging(self.plan, self.mover.staging, self.gpu.uuid, self.mover)

    def close(self) -> None:
        super().close()
        self.mover.close()


class OnGpu(on_host.Cases):
    kind = Engine
    gpu: Gpu

    @classmethod
    def setUpClass(cls) -> None:
        if "TERRACE_SIMULATED_DRIVER" not in os.environ:
            raise unittest.SkipTest("TERRACE_SIMULATED_DRIVER does not name the simulated driver")
        cls.gpu = Engine.gpu = Gpu()
        cls.addClassCleanup(cls.gpu.close)

    def setUp(self) -> None:
        faulthandler.dump_traceback_later(5 * PATIENCE, exit=True)  # a waiting thread cannot be stopped
        self.addCleanup(faulthandler.cancel_dump_traceback_later)
        super().setUp()

    def start(self) -> Daemon:
        with tempfile.NamedTemporaryFile("w", delete=False) as self.script:
            pass
        self.addCleanup(os.unlink, self.script.name)
        before = self.gpu.violations()  # violations by other tests in this process
        self.addCleanup(lambda: self.assertEqual(self.gpu.violations(), before))
        return Daemon(gpu='deadline = "1s"', environment={**ENVIRONMENT, "TERRACE_SIMULATION": self.script.name})

    def host_stores(self, one: on_host.Engine, request: Request) -> None:
        """Stores from memory of the host, so that the GPU's process copies nothing yet."""
        with terrace.connect(self.daemon.socket, timeout=PATIENCE) as other:
            space = other.open_space(one.plan.spec, timeout=PATIENCE)
            chunks = len(request.block_hashes)
            memory = terrace.Memory(chunks * one.plan.slot_bytes)
            view = memoryview(memory)
            for i, digest in enumerate(request.block_hashes):
                view[i * 16384:(i + 1) * 16384] = b"".join(content(digest, name) for name in BYTES)
            with other.register_region(memory, timeout=PATIENCE) as region:
                runs = one.plan.runs(0, one.plan.parts, 0, chunks)
                other.store(space, terrace.Prefix.of_digests(request.block_hashes), region, runs, timeout=PATIENCE)
            del view

    def pinned(self, nbytes: int) -> Pinned:
        made = Pinned(self.gpu, nbytes)
        self.addCleanup(made.close)
        return made


class Loads(OnGpu, on_host.Loads):
    pass


class Stores(OnGpu, on_host.Stores):
    pass


class Away(OnGpu, on_host.Away):
    pass


class Several(OnGpu, on_host.Several):
    pass


class Requests(unittest.TestCase):
    def test_an_answer_after_streams_were_let_go_does_not_count(self) -> None:
        """The streams have read what was there before."""
        ticket: Any = SimpleNamespace(done=True, result=lambda timeout: "loaded")
        for given_up, result in ((False, "loaded"), (True, None)):
            request = requests.Request(ticket, requests.Window(0, 1), lambda result: None)
            if given_up:
                request.give_up()
            self.assertTrue(request.take())
            self.assertEqual(request.result, result)


class BeforeTurn:
    """A lock that calls a function before a thread's turn: the second, which is the first that follows the watch's
    sleep."""

    def __init__(self, lock: threading.Lock, call: Callable[[], None]) -> None:
        self._lock, self._call, self._turns = lock, call, 0

    def __enter__(self) -> None:
        self._turns += 1
        if self._turns == 2:
            self._call()
        self._lock.acquire()

    def __exit__(self, *unused: object) -> None:
        self._lock.release()


class Steps(OnGpu):
    def loading(self, one: on_host.Engine, request: Request, blocks: list[int]) -> list[Any]:
        """Returns the orders of a step that loads all of a request layer by layer."""
        self.assertEqual(one.matched(request)[0], len(request.block_hashes) * CHUNK)
        one.scheduler.allocated(request, [blocks], len(request.block_hashes) * CHUNK)
        return one.loads(request, [blocks])

    def finish_step(self, one: on_host.Engine) -> None:
        for name in BYTES:
            one.worker.layer(name)
        one.worker.save([], 0)

    def waiting(self, one: on_host.Engine, seed: int, before: Callable[[], None] = lambda: None) -> None:
        """Its stream waits for a load that the daemon does not answer, and its thread does not."""
        request = Request(f"waiting{seed}", 3, seed)
        one.compute(request, [1, 2, 3])
        loads = self.loading(one, request, [4, 5, 6, 7])
        before()
        self.daemon.pause()
        self.addCleanup(self.daemon.resume)
        one.worker.begin(loads)
        for name in BYTES:
            one.worker.layer(name)
        self.assertFalse(one.mover.computed.passed)

    def loads_again(self, one: on_host.Engine, seed: int) -> None:
        one.connect()
        self.waiting(one, seed)
        self.daemon.resume()
        until(lambda: one.mover.computed.passed)
        one.worker.save([], one.scheduler.failures_seen)
        self.assertEqual(one.worker.failed_blocks(), set())


class Order(Steps):
    """The streams wait, and the worker's thread does not."""

    def stored(self, one: on_host.Engine, request: Request) -> int:
        with terrace.connect(self.daemon.socket, timeout=PATIENCE) as other:
            space = other.open_space(one.plan.spec, timeout=PATIENCE)
            return other.lookup(space, terrace.Prefix.of_digests(request.block_hashes), timeout=PATIENCE).found_chunks

    def test_a_layered_load_is_waited_for_by_the_stream_alone(self) -> None:
        one = self.engine()
        request = Request("r", 3)
        one.compute(request, [1, 2, 3])
        loads = self.loading(one, request, [4, 5, 6, 7])
        self.daemon.pause()
        self.addCleanup(self.daemon.resume)
        one.worker.begin(loads)
        seen = self.pinned(8 + sum(BYTES.values()))
        at = 8
        for name in BYTES:  # as the model does
            one.worker.layer(name)
            one.mover.engine.copy(seen.address + at, one.mover.address(name, 6), BYTES[name])
            at += BYTES[name]
        self.assertFalse(one.mover.mark().passed)  # nobody has waited either
        self.daemon.resume()
        one.worker.save([], 0)
        one.mover.engine.finish()
        self.assertEqual(seen.pages[8:], b"".join(content(request.block_hashes[2], name) for name in BYTES))
        self.assertEqual((one.worker.failed_blocks(), one.worker.counters.loads), (set(), 1))

    def test_a_step_may_load_more_than_there_are_counters_for(self) -> None:
        one = self.engine(slots=2 * (LOADS + 2))
        requests = [Request(f"r{i}", 2, 60 + i) for i in range(LOADS + 2)]
        for request in requests:
            one.compute(request, [1, 2])
        loads = [order for i, request in enumerate(requests) for order in self.loading(one, request, [2 * i + 10, 2 * i + 11, 3])]
        one.worker.begin(loads)
        for name in BYTES:
            one.worker.layer(name)
        one.worker.save([], 0)
        for i, request in enumerate(requests):
            self.assertTrue(one.has(request, 0, 2 * i + 10) and one.has(request, 1, 2 * i + 11), i)
        self.assertEqual((one.worker.failed_blocks(), one.worker.counters.loads), (set(), LOADS + 2))

    def test_a_store_waits_for_the_engines_stream_and_blocks_may_be_written_again(self) -> None:
        one = self.engine()
        request = Request("r", 3)
        one.scheduler.allocated(request, [[1, 2, 3]], 0)
        gate = self.pinned(4096 + 4 * 16384)
        gate.hold(one.mover.engine)
        at = 4096 + 16384
        for name, size in BYTES.items():  # writes as the model, whose KV comes later
            for digest, block in zip(request.block_hashes, (1, 2, 3)):
                gate.pages[at:at + size] = content(digest, name)
                one.mover.engine.copy(one.mover.address(name, block), gate.address + at, size)
                at += size
        one.step(request, [[1, 2, 3]], 0, 3 * CHUNK)  # returns although the engine has computed nothing yet
        one.worker.prepare({1, 2, 3})
        for name, size in BYTES.items():
            for block in (1, 2, 3):
                one.mover.engine.copy(one.mover.address(name, block), gate.address + 4096, size)
        for _ in range(3):
            self.assertEqual(self.stored(one, request), 0)
        self.assertEqual(one.worker.slots_left, 32 - 3)
        gate.release()
        self.assertTrue(one.worker.drain(PATIENCE))
        self.assertEqual((self.stored(one, request), one.worker.slots_left), (3, 32))
        self.assertFalse(one.has(request, 0, 1))
        one.worker.begin(self.loading(one, Request("s", 3), [4, 5, 6, 7]))
        self.finish_step(one)
        self.assertTrue(all(one.has(request, i, 4 + i) for i in range(3)))

    def test_all_of_a_step_is_stored_however_long_the_gpu_takes_for_it(self) -> None:
        """Staging memory has room for a third of it, and stays full until the step is computed."""
        one = self.engine(slots=4)
        request, blocks = Request("r", 12), list(range(1, 13))
        one.fill(request, blocks)
        one.scheduler.allocated(request, [blocks], 0)
        gate = self.pinned(4096)
        gate.hold(one.mover.engine)  # the model's kernels
        one.step(request, [blocks], 0, 12 * CHUNK)  # ends before they do
        for _ in range(3):
            one.empty_step()
        self.assertEqual((self.stored(one, request), one.worker.slots_left), (0, 0))
        self.assertEqual(one.worker.counters.chunks_not_stored, 0)
        gate.release()

        def done() -> bool:
            one.empty_step()
            return not one.scheduler.keeps

        until(done)
        self.assertTrue(one.worker.drain(PATIENCE))
        self.assertEqual((self.stored(one, request), one.worker.counters.chunks_not_stored), (12, 0))
        loads = self.loading(one, Request("s", 12), list(range(20, 33)))
        one.worker.begin(loads)
        self.finish_step(one)
        self.assertTrue(all(one.has(request, i, 20 + i) for i in range(12)))

    def test_a_load_that_fails_lets_an_engine_go_that_waits_for_its_stream(self) -> None:
        """The engine's thread cannot take the answer."""
        one = self.engine()

        def release() -> None:
            for lease, _, _ in one.scheduler._leases.values():
                lease.release()
            until(lambda: self.leases() == 0)

        def clear() -> None:
            with terrace.connect(self.daemon.socket, timeout=PATIENCE) as other:
                other.clear(timeout=PATIENCE)

        for seed, lose in ((40, release), (41, clear)):
            self.waiting(one, seed, lose)
            self.daemon.resume()  # the answer comes when the thread waits for the stream
            one.mover.engine.finish()
            one.worker.save([], 0)
            self.assertTrue(one.worker.drain(PATIENCE))
            self.assertEqual((one.worker.failed_blocks(), one.worker.slots_left), ({4, 5, 6}, 32))
            self.assertTrue(one.worker.connected)  # only the lease is gone
            one.report()
            self.loads_again(one, seed + 10)

    def has_failed(self, one: on_host.Engine) -> None:
        until(lambda: one.mover.computed.passed)
        self.daemon.resume()
        one.worker.save([], 0)
        self.assertEqual(one.worker.failed_blocks(), {4, 5, 6})
        self.assertTrue(one.worker.drain(PATIENCE))
        one.report()

    def test_a_connection_that_is_lost_when_something_else_is_sent_lets_it_go(self) -> None:
        """The sender sees the loss before the thread that watches."""
        one = self.engine()
        self.waiting(one, 50)
        transfers = one.worker._transfers
        session, watch = transfers.session(), transfers._watch
        assert session is not None and watch is not None

        def lose() -> None:
            with transfers.lock, socket.socket(fileno=os.dup(session.connection.fileno())) as other:
                other.shutdown(socket.SHUT_RDWR)
                with self.assertRaises(terrace.Gone):
                    session.connection.poll()
            transfers.await_answer(0)  # the worker's thread checks before the watch has learned of it
            lost.set()

        lost = threading.Event()
        with mock.patch.object(watch, "_lock", BeforeTurn(transfers.lock, lose)):
            os.eventfd_write(watch._wake, 1)
            self.assertTrue(lost.wait(PATIENCE))
        self.has_failed(one)
        self.loads_again(one, 61)  # the thread continues

    def test_so_does_a_mistake_of_the_thread_that_watches(self) -> None:
        one = self.engine()
        self.waiting(one, 52)
        transfers = one.worker._transfers
        watch = transfers._watch
        assert watch is not None
        with self.assertLogs("terrace.vllm", "ERROR"), mock.patch.object(watch, "_look", side_effect=ValueError):
            os.eventfd_write(watch._wake, 1)
            until(lambda: one.mover.computed.passed)
        self.has_failed(one)
        self.loads_again(one, 63)

    def test_so_does_one_without_an_answer_in_time(self) -> None:
        one = self.engine(load=0.2)
        request = Request("r", 3)
        one.compute(request, [1, 2, 3])
        loads = self.loading(one, request, [4, 5, 6, 7])
        self.daemon.pause()
        self.addCleanup(self.daemon.resume)
        one.worker.begin(loads)
        for name in BYTES:
            one.worker.layer(name)
        one.mover.engine.finish()
        one.worker.save([], 0)
        self.assertEqual((one.worker.failed_blocks(), one.worker.slots_left), ({4, 5, 6}, 32 - 3))
        self.daemon.resume()
        self.assertTrue(one.worker.drain(PATIENCE))
        self.assertEqual(one.worker.slots_left, 32)

    def test_slots_are_given_again_when_the_stream_has_read_them(self) -> None:
        one = self.engine()
        request = Request("r", 3)
        one.compute(request, [1, 2, 3])
        loads = self.loading(one, request, [4, 5, 6, 7])
        gate = self.pinned(4096)
        gate.hold(one.mover.engine)  # the engine still writes these blocks for another request
        one.worker.begin(loads)
        self.finish_step(one)  # arrives with the load's answer
        one.worker.received()
        self.assertEqual((one.worker.counters.loads, one.worker.slots_left), (1, 32 - 3))
        gate.release()
        self.assertTrue(one.worker.drain(PATIENCE))
        self.assertEqual(one.worker.slots_left, 32)
        self.assertTrue(all(one.has(request, i, 4 + i) for i in range(3)))

    def test_a_load_that_is_refused_is_told_by_its_blocks(self) -> None:
        one = self.engine()
        request = Request("r", 4)
        one.compute(request, [1, 2, 3, 4])
        (order,) = self.loading(one, request, [4, 5, 6, 7, 8])
        longer = type(order)(order.number, order.request, order.lease, order.first_chunk, [[10, 11, 12, 13, 14, 15]], True)
        one.worker.begin([longer])  # the order has more than the lease
        self.finish_step(one)
        one.mover.engine.finish()
        self.assertEqual((one.worker.failed_blocks(), one.worker.counters.loads_failed), ({10, 11, 12, 13, 14, 15}, 1))


if __name__ == "__main__":
    unittest.main()

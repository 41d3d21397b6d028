"""The connector's worker side with KV in memory of the simulated GPU, when something that it needs is lost or refused."""

from __future__ import annotations

import gc
import os
import signal
import unittest
from typing import Any

import terrace
import vllm_connector_test as on_host
from daemon import PATIENCE
from terrace.link import await_readable
from vllm_connector_test import BYTES, CHUNK, Request, until
from vllm_device_test import OnGpu, Steps


class Lost(OnGpu):
    """The daemon's process of the GPU is lost while it copies or hangs."""

    def fault(self, text: str) -> None:
        """Sets the faults of GPU processes that begin from now on."""
        with open(self.script.name, "w") as script:
            script.write(text)

    def pid(self) -> int:
        with terrace.connect(self.daemon.socket, observes=True, timeout=PATIENCE) as observer:
            return observer.status(timeout=PATIENCE).devices[0].pid

    def serves_again(self, one: on_host.Engine, lost: int) -> None:
        one.report()  # reports the failure, before which nothing would be stored
        # In this order, so that the connection is that of the new process's session.
        until(lambda: self.pid() not in (0, lost) and one.worker.connected)
        self.assertTrue(one.worker.drain(PATIENCE))
        self.assertEqual(one.worker.slots_left, 32)
        request = Request("again", 3, 90)
        one.compute(request, [1, 2, 3])
        tokens, between = one.matched(request)
        self.assertEqual(tokens, 3 * CHUNK)
        one.scheduler.allocated(request, [[4, 5, 6, 7]], 3 * CHUNK)
        if between:
            one.between_steps(request, [[4, 5, 6, 7]])
        else:
            one.step(request, [[4, 5, 6, 7]], 3 * CHUNK, 1)
        self.assertTrue(all(one.has(request, i, 4 + i) for i in range(3)))

    def hanging(self, **settings: Any) -> on_host.Engine:
        """Starts an engine whose GPU process does not return from its first copy."""
        self.fault("hang copies\n")
        one = self.engine(**settings)
        self.fault("")
        return one

    def load_order(self, one: on_host.Engine, request: Request) -> list[Any]:
        self.host_stores(one, request)
        self.assertEqual(one.matched(request)[0], 3 * CHUNK)
        one.scheduler.allocated(request, [[4, 5, 6, 7]], 3 * CHUNK)
        return one.loads(request, [[4, 5, 6, 7]])

    def lose_in_a_load(self, layered: bool, killed: bool) -> None:
        with self.assertLogs("terrace.vllm", "WARNING") as log:
            self.lose_and_go_on(layered, killed)
        self.assertNotIn("did not come within", "".join(log.output))  # nobody has waited for that

    def lose_and_go_on(self, layered: bool, killed: bool) -> None:
        one = self.hanging(layered=layered)
        lost = self.pid()
        one.worker.begin(self.load_order(one, Request("r", 3, 70)))
        if killed:
            os.kill(lost, signal.SIGKILL)
        if layered:
            for name in BYTES:
                one.worker.layer(name)
            one.mover.engine.finish()  # although nobody takes the answer meanwhile
            one.worker.save([], 0)
        else:
            until(lambda: one.worker.received() == ({"r"}, {"r"}))
        self.assertEqual(one.worker.failed_blocks(), {4, 5, 6})
        self.serves_again(one, lost)

    def test_a_process_that_is_killed_in_a_load_ends_it_and_another_one_serves(self) -> None:
        self.lose_in_a_load(layered=True, killed=True)

    def test_a_process_that_hangs_in_a_load_ends_it_and_another_one_serves(self) -> None:
        self.lose_in_a_load(layered=True, killed=False)

    def test_a_process_that_is_killed_in_the_load_after_another_loss(self) -> None:
        """Nobody unpins the pages of the first session while streams wait in the second one."""
        one = self.hanging()
        gate = self.pinned(4096)
        for seed, next_fault in ((70, "hang copies\n"), (71, "")):
            lost = self.pid()
            order = self.load_order(one, Request(f"r{seed}", 3, seed))
            gate.hold(one.mover.engine)
            one.worker.begin(order)
            for name in BYTES:
                one.worker.layer(name)
            gc.collect()
            self.fault(next_fault)
            os.kill(lost, signal.SIGKILL)
            gate.release()
            one.mover.engine.finish()
            one.worker.save([], 0)
            self.assertEqual(one.worker.failed_blocks(), {4, 5, 6})
            one.report()
            until(lambda: self.pid() not in (0, lost) and one.worker.connected)
            self.assertTrue(one.worker.drain(PATIENCE))
        self.serves_again(one, lost)

    def test_a_process_that_is_killed_while_the_daemon_stands_still(self) -> None:
        """Closing the connection then takes equally long."""
        one = self.hanging()
        lost = self.pid()
        one.worker.begin(self.load_order(one, Request("r", 3, 72)))
        self.daemon.pause()
        self.addCleanup(self.daemon.resume)
        os.kill(lost, signal.SIGKILL)
        for name in BYTES:
            one.worker.layer(name)
        one.mover.engine.finish()
        one.worker.save([], 0)
        self.assertEqual((one.worker.failed_blocks(), one.worker.connected), ({4, 5, 6}, False))
        self.daemon.resume()
        self.serves_again(one, lost)

    def test_a_process_that_is_killed_in_a_load_between_steps(self) -> None:
        self.lose_in_a_load(layered=False, killed=True)

    def test_a_process_that_hangs_in_a_load_between_steps(self) -> None:
        self.lose_in_a_load(layered=False, killed=False)

    def lose_in_a_store(self, killed: bool) -> None:
        one = self.hanging()
        lost = self.pid()
        request = Request("r", 3, 80)
        one.fill(request, [1, 2, 3])
        one.scheduler.allocated(request, [[1, 2, 3]], 0)
        one.step(request, [[1, 2, 3]], 0, 3 * CHUNK)
        if killed:
            os.kill(lost, signal.SIGKILL)
        self.serves_again(one, lost)
        self.assertEqual(one.worker.counters.stores_failed, 1)

    def test_a_process_that_is_killed_in_a_store_costs_that_store(self) -> None:
        self.lose_in_a_store(killed=True)

    def test_a_process_that_hangs_in_a_store_costs_that_store(self) -> None:
        self.lose_in_a_store(killed=False)

    def test_a_process_that_ends_while_nothing_is_copied_is_followed_by_another(self) -> None:
        one = self.engine()
        lost = self.pid()
        os.kill(lost, signal.SIGKILL)
        self.serves_again(one, lost)

    def test_slots_that_a_hanging_process_may_write_are_not_given_again(self) -> None:
        one = self.hanging(load=0.2)
        process = os.pidfd_open(self.pid())
        self.addCleanup(os.close, process)
        one.worker.begin(self.load_order(one, Request("r", 3, 85)))
        for name in BYTES:
            one.worker.layer(name)
        one.worker.save([], 0)  # without its answer
        one.mover.engine.finish()
        self.assertTrue(one.worker.slots_left == 32 - 3 or await_readable([process], 0))

        def free() -> bool:
            one.worker.received()
            given_back = one.worker.slots_left == 32
            self.assertTrue(not given_back or await_readable([process], 0))
            return given_back

        until(free)
        self.assertEqual(one.worker.failed_blocks(), {4, 5, 6})


class Refused(Steps):
    """Calls of the GPU's driver that fail in a step."""

    def test_none_but_those_that_queue_are_made_in_a_step(self) -> None:
        one = self.engine()

        def made() -> tuple[int, int]:
            """Returns the number of pinned pages, and how often a context was asked for."""
            pinned = self.gpu.calls("cuMemHostRegister") - self.gpu.calls("cuMemHostUnregister")
            return pinned, self.gpu.calls("cuDevicePrimaryCtxRetain")

        before = made()
        self.assertTrue(all(before))
        one.compute(Request("r", 3), [1, 2, 3])
        one.worker.begin(self.loading(one, Request("s", 3), [4, 5, 6, 7]))
        self.finish_step(one)
        one.mover.engine.finish()
        self.assertEqual(made(), before)
        self.assertEqual(one.worker.failed_blocks(), set())

    def test_a_load_of_which_the_driver_refuses_a_call_has_failed(self) -> None:
        one = self.engine()
        for seed, function in ((80, "cuStreamWaitValue32"), (81, "cuStreamWriteValue32")):
            one.compute(Request(f"r{seed}", 3, seed), [1, 2, 3])
            loads = self.loading(one, Request(f"s{seed}", 3, seed), [4, 5, 6, 7])
            self.daemon.pause()  # otherwise the answer may be there, and no stream waits for it
            self.addCleanup(self.daemon.resume)
            one.worker.begin(loads)
            self.gpu.fail(function)
            for name in BYTES:
                one.worker.layer(name)
            self.daemon.resume()
            one.worker.save([], one.scheduler.failures_seen)
            one.mover.engine.finish()
            self.assertEqual(one.worker.failed_blocks(), {4, 5, 6})
            self.serves_again(one, seed + 10)

    def test_a_store_of_which_the_driver_refuses_a_call_is_left_out(self) -> None:
        one = self.engine()
        for seed, function in ((80, "cuStreamWriteValue32"), (81, "cuLaunchHostFunc")):
            left_out = one.worker.counters.chunks_not_stored
            self.gpu.fail(function)
            one.compute(Request(f"r{seed}", 3, seed), [1, 2, 3])
            self.assertEqual(one.worker.counters.chunks_not_stored, left_out + 3)
            self.serves_again(one, seed + 10)

    def serves_again(self, one: on_host.Engine, seed: int) -> None:
        """Serves again with another connection and all slots."""
        self.assertTrue(one.worker.drain(PATIENCE))
        self.assertEqual((one.worker.slots_left, one.worker.failed_blocks()), (32, set()))
        one.report()
        self.loads_again(one, seed)


if __name__ == "__main__":
    unittest.main()

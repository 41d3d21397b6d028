"""The connector's loads when the daemon, or its process of the GPU, is killed at any of their messages. Blocks contain
garbage before: each of them gets its KV, or the engine is told to compute it anew, whatever was killed when."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import threading
import unittest
from collections.abc import Callable, Iterator, Sequence

import terrace
import vllm_connector_test as on_host
from daemon import PATIENCE
from kills import PLACES, Messages
from terrace.link import await_readable
from vllm_connector_test import CHUNK, Engine, Request, plan_with, until
from vllm_device_test import OnGpu

CHUNKS = 5
SLOTS = 2  # so few that a load has several messages, one after the other
FIRST = 20  # first of the blocks that are loaded into
GARBAGE = 0xA5
#: The process of a GPU makes these calls of the driver for each load.
CALLS = ("cuStreamWaitEvent", "cuMemcpyBatchAsync", "cuEventRecord", "cuLaunchHostFunc")


class Loading(on_host.Cases):
    @contextlib.contextmanager
    def storing(self, layered: bool, groups: int = 1) -> Iterator[Engine]:
        """Returns an engine whose KV is stored. Each kill has another one, because only few processes in all can open
        memory of the simulated GPU."""
        one = type(self).kind(self.daemon.socket, plan_with((0,) if groups == 1 else (0, 2)), slots=SLOTS, layered=layered)
        try:
            one.connect()
            one.compute(Request("stored", CHUNKS, 7), list(range(1, CHUNKS + 1)))
            yield one
        finally:
            one.close()

    def blocks(self, one: Engine) -> list[list[int]]:
        """Returns the blocks. With two groups, the second only needs the last two chunks."""
        every = list(range(FIRST, FIRST + CHUNKS + 1))
        return [every] if one.groups == 1 else [every, [0] * (CHUNKS - 2) + [block + 20 for block in every[CHUNKS - 2:]]]

    def load(self, one: Engine, name: str, layered: bool) -> bool:
        """Loads, and returns whether everything came. Missing blocks are reported, and all others have their KV."""
        request = Request(name, CHUNKS, 7)
        self.assertEqual(one.matched(request), (CHUNKS * CHUNK, not layered))
        one.wipe(GARBAGE)
        blocks = self.blocks(one)
        one.scheduler.allocated(request, blocks, CHUNKS * CHUNK)
        failed = set()
        if layered:
            one.step(request, blocks, CHUNKS * CHUNK, 1)
        else:
            failed = one.between_steps(request, blocks)
        told = one.worker.failed_blocks()
        if one.groups == 1:
            self.assertTrue(layered or bool(told) == bool(failed))
            for i in range(CHUNKS):
                self.assertTrue(blocks[0][i] in told or one.has(request, i, blocks[0][i]), f"{name}: block {i} has garbage")
        elif not failed:
            for i in range(CHUNKS):
                self.assertTrue(one.has(request, i, blocks[0][i], "ab"), f"{name}: block {i} has garbage")
                self.assertTrue(blocks[1][i] == 0 or one.has(request, i, blocks[1][i], "c"), f"{name}: block {i} has garbage")
        one.scheduler.finished(name)
        return not (told or failed)


class Daemons(Loading):
    """The daemon is killed."""

    def killed(self, kill: Callable[[], None], again: Callable[[Engine], None], layered: bool, groups: int = 1) -> None:
        """A load that nobody kills shows how many requests there are; then each of them is killed at each place."""
        with self.storing(layered, groups) as one:
            with Messages(self.daemon, kill) as messages:
                self.assertTrue(self.load(one, "not killed", layered))
        self.assertGreater(messages.requests, CHUNKS // SLOTS)
        for number, place in itertools.product(range(1, messages.requests + 1), PLACES):
            name = f"killed at request {number}, {place}"
            with self.storing(layered, groups) as one:
                with Messages(self.daemon, kill, number, place):
                    all_came = self.load(one, name, layered)
                # The last answer may or may not have been taken.
                self.assertTrue(not all_came or (number, place) == (messages.requests, PLACES[-1]), name)
                again(one)
                self.assertTrue(one.worker.drain(PATIENCE))
                self.assertEqual(one.worker.slots_left, SLOTS, name)
                self.assertTrue(self.load(one, f"after {name}", layered), name)

    def again(self, one: Engine) -> None:
        until(lambda: not (one.worker.connected or one.scheduler.connected))
        self.daemon.start()
        one.connect()
        one.report()
        one.compute(Request("stored again", CHUNKS, 7), list(range(1, CHUNKS + 1)))

    def test_in_a_load_between_steps(self) -> None:
        self.killed(self.daemon.kill, self.again, layered=False)

    def test_in_a_load_of_several_groups(self) -> None:
        self.killed(self.daemon.kill, self.again, layered=False, groups=2)

    def test_in_a_layered_load(self) -> None:
        self.killed(self.daemon.kill, self.again, layered=True)


class DaemonsWithGpu(OnGpu, Daemons):
    pass


class ProcessOfGpu(OnGpu, Daemons):
    """The process of the GPU is killed, and the daemon continues."""

    def setUp(self) -> None:
        super().setUp()
        self.pid = 0  # id of the process that is killed next
        pipe = self.script.name + ".hold"  # nobody opens its other end
        os.mkfifo(pipe)
        self.addCleanup(os.unlink, pipe)

    def killed(self, kill: Callable[[], None], again: Callable[[Engine], None], layered: bool, groups: int = 1) -> None:
        super().killed(self.kill, self.again, layered, groups)

    @contextlib.contextmanager
    def storing(self, layered: bool, groups: int = 1) -> Iterator[Engine]:
        with super().storing(layered, groups) as one:
            self.pid = self.serving()
            yield one

    def serving(self) -> int:
        with terrace.connect(self.daemon.socket, observes=True, timeout=PATIENCE) as observer:
            devices = observer.status(timeout=PATIENCE).devices
            return next((one.pid for one in devices if one.state == "ready"), 0)

    def kill(self) -> None:
        """When this returns, the process has ended. The daemon may stand still."""
        with contextlib.suppress(ProcessLookupError):
            process = os.pidfd_open(self.pid)
            os.kill(self.pid, signal.SIGKILL)
            await_readable([process])
            os.close(process)

    def again(self, one: Engine) -> None:
        lost = self.pid
        # In this order, so that the connection is that of the new process's session.
        until(lambda: self.serving() not in (0, lost) and one.worker.connected)
        self.pid = self.serving()
        one.report()

    def at_calls(self, layered: bool, calls: Sequence[str]) -> None:
        with self.storing(layered) as one:
            self.host_stores(one, Request("stored", CHUNKS, 7))
        for function in calls:
            kills = next(number for number in itertools.count() if not self.killed_at(function, number, layered))
            self.assertGreater(kills, 0, f"a load does not call {function}")

    def killed_at(self, function: str, number: int, layered: bool) -> bool:
        """Returns whether a load calls the function this often. If it does, the process is killed there."""
        waiting = self.script.name + ".holding"
        with open(self.script.name, "w") as script:  # for the process that begins now
            script.write(f"hold {function}+{number}\n")
        one = type(self).kind(self.daemon.socket, slots=SLOTS, layered=layered)
        try:
            one.connect()
            self.assertFalse(os.path.exists(waiting), f"{function} is called when the process begins")
            self.pid = self.serving()
            over = threading.Event()

            def kill() -> None:
                until(lambda: over.is_set() or os.path.exists(waiting))
                if not over.is_set():
                    self.kill()

            killer = threading.Thread(target=kill)
            killer.start()
            all_came = self.load(one, f"{function} {number}", layered)
            over.set()
            killer.join()
            self.assertEqual(all_came, not os.path.exists(waiting), f"{function} {number}")
            return not all_came
        finally:
            one.close()
            with contextlib.suppress(FileNotFoundError):
                os.unlink(waiting)

    def test_at_any_call_of_the_driver_between_steps(self) -> None:
        self.at_calls(False, CALLS)

    def test_at_any_call_of_the_driver_in_a_layered_load(self) -> None:
        self.at_calls(True, [*CALLS, "cuStreamWriteValue32"])


if __name__ == "__main__":
    unittest.main()

"""Bells, and the stores that wait for them, on the device in host memory."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import threading
import unittest

import terrace
from daemon import OBJECT_BYTES, PATIENCE, SPEC, Daemon, DaemonTest, chain_of, content_of

Prefix = terrace.Prefix
RUN = [(0, OBJECT_BYTES)]


def write_counter(page: terrace.Memory, offset: int, value: int) -> None:
    struct.pack_into("I", memoryview(page), offset, value)


class Bells(DaemonTest):
    def setUp(self) -> None:
        super().setUp()
        self.memory, self.page = terrace.Memory(OBJECT_BYTES), terrace.Memory(4096)
        self.region = self.daemon.register_device_region(self.memory, device="host", timeout=PATIENCE)
        self.addCleanup(self.region.unregister)
        self.counters = self.daemon.register_generations(self.page, "host", timeout=PATIENCE)
        self.addCleanup(self.counters.unregister)

    def submit(self, chain: list[bytes], value: int) -> terrace.Ticket[terrace.Stored]:
        """Submits a store that waits until the counter at byte 8 has reached the value."""
        return self.daemon.submit_store(
            self.space, Prefix.of_digests(chain), self.region, RUN, after=(self.counters, 8, value), timeout=PATIENCE
        )

    def waits(self, ticket: terrace.Ticket[terrace.Stored]) -> bool:
        self.daemon.status(timeout=PATIENCE)  # the answer shows that the daemon has received the store
        self.daemon.poll()
        return not ticket.done

    def found(self, chain: list[bytes]) -> list[bytes]:
        with self.lease(chain) as lease:
            return [bytes(block) for block in self.daemon.read_lease(lease, timeout=PATIENCE)]

    def test_a_store_goes_on_when_its_counter_is_written_and_the_bell_rung(self) -> None:
        bell = self.daemon.bell(timeout=PATIENCE)
        chain = chain_of(230, 1)
        ticket = self.submit(chain, 3)
        self.assertTrue(self.waits(ticket))
        write_counter(self.page, 8, 2)
        bell.ring()  # rings too early
        self.assertTrue(self.waits(ticket))
        memoryview(self.memory)[:] = content_of(chain[0])  # the store has read nothing before
        write_counter(self.page, 8, 3)
        bell.ring()
        self.assertEqual(ticket.result(PATIENCE).stored_chunks, 1)
        self.assertEqual(self.found(chain), [content_of(chain[0])])

    def test_any_thread_rings_while_another_waits_in_the_connection(self) -> None:
        bell = self.daemon.bell(timeout=PATIENCE)
        tickets = [self.submit(chain_of(231 + i, 1), 1 + i) for i in range(4)]
        self.assertTrue(self.waits(tickets[0]))

        def engine() -> None:
            for value in range(1, 5):
                write_counter(self.page, 8, value)
                bell.ring()

        thread = threading.Thread(target=engine)
        thread.start()
        self.assertEqual([ticket.result(PATIENCE).stored_chunks for ticket in tickets], [1] * 4)
        thread.join()

    def test_whoever_has_the_descriptor_rings(self) -> None:
        bell = self.daemon.bell(timeout=PATIENCE)
        self.assertEqual(self.daemon.bell(timeout=PATIENCE).fileno(), bell.fileno())
        ticket = self.submit(chain_of(235, 1), 1)
        self.assertTrue(self.waits(ticket))
        write_counter(self.page, 8, 1)
        program = f"import os; os.write({bell.fileno()}, (1).to_bytes(8, 'little'))"
        subprocess.run([sys.executable, "-c", program], pass_fds=[bell.fileno()], timeout=PATIENCE, check=True)
        self.assertEqual(ticket.result(PATIENCE).stored_chunks, 1)

    def test_without_a_bell_the_error_says_what_is_expected(self) -> None:
        with self.assertRaisesRegex(terrace.BadRequest, "expected a bell"):
            self.submit(chain_of(236, 1), 1).result(PATIENCE)
        write_counter(self.page, 8, 1)
        self.assertEqual(self.submit(chain_of(236, 1), 1).result(PATIENCE).stored_chunks, 1)  # already reached

    def test_a_cancelled_store_waits_no_longer(self) -> None:
        self.daemon.bell(timeout=PATIENCE)
        ticket = self.submit(chain_of(237, 1), 1)
        self.assertTrue(self.waits(ticket))
        ticket.cancel()
        self.region.unregister(timeout=PATIENCE)  # afterwards nothing reads it any more

    def test_a_bell_outlives_its_connection(self) -> None:
        with terrace.connect(self.server.socket, timeout=PATIENCE) as daemon:
            bell = daemon.bell(timeout=PATIENCE)
        bell.ring()
        with self.assertRaisesRegex(terrace.Gone, "closed"):
            daemon.bell()

    def test_a_stream_that_cannot_ring_is_refused(self) -> None:
        bell = self.daemon.bell(timeout=PATIENCE)
        with self.assertRaisesRegex(terrace.BadRequest, "the default one"):
            bell.ring_after(0, "GPU-00000000-0000-0000-0000-000000000000")
        with self.assertRaisesRegex(terrace.BadRequest, "host"):
            bell.ring_after(4096, self.region.device)
        with self.assertRaises(TypeError):
            bell.ring_after("a stream", "host")  # type: ignore[arg-type]

    def test_without_a_driver_no_stream_rings(self) -> None:
        """Runs in a process of its own, because this one may have the simulated driver already."""
        program = (
            "import sys, terrace\n"
            "bell = terrace.connect(sys.argv[1]).bell()\n"
            "try: bell.ring_after(4096, 'GPU-00000000-0000-0000-0000-000000000000')\n"
            "except terrace.Unsupported as error: print(error)\n"
        )
        said = subprocess.run(
            [sys.executable, "-c", program, self.server.socket], env={**os.environ, "LD_LIBRARY_PATH": ""}, text=True,
            check=True, stdout=subprocess.PIPE, timeout=PATIENCE,
        ).stdout
        self.assertIn("no CUDA driver", said)


class Reconnected(unittest.TestCase):
    def test_a_bell_rings_for_the_next_daemon(self) -> None:
        server = Daemon()
        self.addCleanup(server.stop)
        with terrace.connect(server.socket, timeout=PATIENCE) as daemon:
            space = daemon.open_space(SPEC, timeout=PATIENCE)
            memory, page = terrace.Memory(OBJECT_BYTES), terrace.Memory(4096)
            region = daemon.register_device_region(memory, device="host", timeout=PATIENCE)
            counters = daemon.register_generations(page, "host", timeout=PATIENCE)
            bell = daemon.bell(timeout=PATIENCE)
            descriptor = bell.fileno()
            server.kill()
            with self.assertRaises(terrace.Gone):
                daemon.status(timeout=PATIENCE)
            bell.ring()  # nobody hears it
            server.start()
            while True:
                try:
                    daemon.reconnect(PATIENCE)
                    break
                except terrace.Gone:
                    continue  # too early for an attempt
            self.assertEqual(bell.fileno(), descriptor)
            ticket = daemon.submit_store(
                space, Prefix.of_digests(chain_of(240, 1)), region, RUN, after=(counters, 0, 1), timeout=PATIENCE
            )
            daemon.status(timeout=PATIENCE)
            daemon.poll()
            self.assertFalse(ticket.done)
            write_counter(page, 0, 1)
            bell.ring()
            self.assertEqual(ticket.result(PATIENCE).stored_chunks, 1)
            counters.unregister(timeout=PATIENCE)
            region.unregister(timeout=PATIENCE)


if __name__ == "__main__":
    unittest.main()

"""Connections: refusals, threads, signals, forks, and the daemon's death."""

from __future__ import annotations

import array
import os
import signal
import subprocess
import sys
import threading
import unittest

import terrace
from daemon import OBJECT_BYTES, PATIENCE, SPEC, Daemon, DaemonTest, chain_of

Prefix = terrace.Prefix
NEVER = b"a name that no lookup has"[:16]


class Refusals(DaemonTest):
    def test_errors_carry_the_daemons_code_and_text(self) -> None:
        with self.assertRaises(terrace.BadRequest) as raised:
            self.daemon.set_policy("host", "no such policy", timeout=PATIENCE)
        self.assertEqual(raised.exception.code, terrace.Code.BAD_REQUEST)
        self.assertIn("sieve", raised.exception.text)  # the text lists the known policies
        self.assertEqual(str(raised.exception), raised.exception.text)
        self.assertIsInstance(raised.exception, ValueError)
        with self.assertRaises(terrace.NotFound):
            self.daemon.set_policy("moon", "lru", timeout=PATIENCE)
        self.assertTrue(self.daemon.alive)

    def test_a_mistake_inside_a_request_is_its_answer(self) -> None:
        bad = terrace.SpaceSpec("test", "u8", "opaque", [terrace.Pool("kv", object_bytes=1)], chunk_tokens=17)
        with self.assertRaisesRegex(terrace.BadRequest, "chunk_tokens to be a multiple of hash_block_tokens"):
            self.daemon.open_space(bad, timeout=PATIENCE)
        self.assertTrue(self.daemon.alive)

    def test_a_lease_that_nobody_has_is_an_error_with_its_code(self) -> None:
        with self.assertRaises(terrace.Error) as raised:
            self.daemon.read_lease(bytes(15) + b"x", timeout=PATIENCE)
        self.assertIn(raised.exception.code, (terrace.Code.NOT_FOUND, terrace.Code.GONE))

    def test_no_daemon_is_gone_and_says_where_it_looked(self) -> None:
        with self.assertRaisesRegex(terrace.Gone, "/tmp/no-such-socket"):
            terrace.connect("/tmp/no-such-socket")
        with self.assertRaises(terrace.BadRequest):
            terrace.connect("/" + "x" * 200)

    def test_things_of_another_connection_are_refused(self) -> None:
        with terrace.connect(self.server.socket, timeout=PATIENCE) as other:
            space = other.open_space(SPEC, timeout=PATIENCE)
            region = other.register_region(terrace.Memory(OBJECT_BYTES), timeout=PATIENCE)
            with self.assertRaisesRegex(terrace.BadRequest, "another connection"):
                self.daemon.lookup(space, [1] * 16, timeout=PATIENCE)
            with self.assertRaisesRegex(terrace.BadRequest, "registered with this connection"):
                self.daemon.load(self.space, [1] * 16, region, [(0, OBJECT_BYTES)], timeout=PATIENCE)

    def test_bad_arguments_name_what_was_expected(self) -> None:
        region = self.daemon.register_region(terrace.Memory(OBJECT_BYTES), timeout=PATIENCE)
        for call, error in (
            (lambda: Prefix.of_digests([b"short", b"longer one"]), terrace.BadRequest),
            (lambda: Prefix.of_digests(b"x" * 33), terrace.BadRequest),
            (lambda: Prefix.of_digests([b"x" * 33]), terrace.BadRequest),
            (lambda: Prefix.of_tokens(array.array("f", [1.0])), TypeError),
            (lambda: Prefix.of_tokens(array.array("q", [-1])), terrace.BadRequest),
            (lambda: Prefix.of_tokens([-1]), TypeError),
            (lambda: Prefix.of_tokens([1, 2**32]), TypeError),
            (lambda: Prefix.of_tokens((1, 2**70)), TypeError),
            (lambda: Prefix.of_tokens([1, "2"]), TypeError),  # type: ignore[list-item]
            (lambda: self.daemon.await_lookup(b"not 16 bytes"), terrace.BadRequest),
            (lambda: self.daemon.lookup(self.space, [1], timeout=float("nan")), terrace.BadRequest),
            (lambda: self.daemon.lookup(self.space, [1], tiers=[99]), terrace.BadRequest),
            (lambda: self.daemon.lookup("a space", [1]), TypeError),  # type: ignore[arg-type]
            (lambda: self.daemon.read_lease("a lease"), TypeError),  # type: ignore[arg-type]
            (lambda: self.daemon.load(None, [1], region, [(0, 1)]), terrace.BadRequest),
            (lambda: self.daemon.load(self.space, [1], region, [(0, 1, 2)]), terrace.BadRequest),  # type: ignore[list-item]
            (lambda: self.daemon.load(self.space, [1] * 16, region, [b"elsewhere"]), terrace.BadRequest),
            (lambda: self.daemon.register_region(bytearray(4096)), terrace.BadRequest),
            (lambda: terrace.Memory(0), terrace.BadRequest),
        ):
            with self.subTest(error=error), self.assertRaises(error):
                call()
        self.assertTrue(self.daemon.alive)

    def test_a_run_outside_of_the_region_is_the_daemons_bad_request(self) -> None:
        region = self.daemon.register_region(terrace.Memory(OBJECT_BYTES), timeout=PATIENCE)
        with self.assertRaises(terrace.BadRequest):
            self.daemon.store(self.space, [1] * 16, region, [(4096, OBJECT_BYTES)], timeout=PATIENCE)
        region.unregister()
        region.unregister()  # does nothing
        with self.assertRaises(terrace.BadRequest):
            self.daemon.store(self.space, [1] * 16, region, [(0, OBJECT_BYTES)], timeout=PATIENCE)

    def test_a_closed_connection_says_so(self) -> None:
        lease_chain = chain_of(1, 1)
        self.store(lease_chain)
        lease = self.lease(lease_chain)
        view = memoryview(self.daemon.read_lease(lease, timeout=PATIENCE)[0])
        self.daemon.close()
        self.daemon.close()
        self.assertFalse(self.daemon.alive)
        with self.assertRaisesRegex(terrace.Gone, "closed"):
            self.daemon.status()
        self.assertEqual(len(bytes(view)), OBJECT_BYTES)  # the memory is still mapped
        del view
        lease.release()


class Observers(unittest.TestCase):
    def test_an_observer_gets_in_when_no_client_does(self) -> None:
        server = Daemon(connection="connections_max = 1")
        self.addCleanup(server.stop)
        with terrace.connect(server.socket, name="the only one", timeout=PATIENCE):
            with self.assertRaises(terrace.Busy):
                terrace.connect(server.socket, timeout=PATIENCE)
            with terrace.connect(server.socket, timeout=PATIENCE, observes=True) as observer:
                names = [client.name for client in observer.status(timeout=PATIENCE).clients]
                self.assertIn("the only one", names)
                self.assertEqual(observer.policies(timeout=PATIENCE).group, observer.daemon.group)
            shown = subprocess.run(
                [sys.executable, "-m", "terrace", "status", "--socket", server.socket],
                timeout=PATIENCE, capture_output=True, text=True,
            )
            self.assertEqual((shown.returncode, shown.stderr), (0, ""))
            self.assertIn("the only one", shown.stdout)

    def test_an_observer_only_looks(self) -> None:
        server = Daemon()
        self.addCleanup(server.stop)
        with terrace.connect(server.socket, timeout=PATIENCE, observes=True) as observer:
            with self.assertRaisesRegex(terrace.BadRequest, "observes"):
                observer.open_space(SPEC, timeout=PATIENCE)
            with self.assertRaisesRegex(terrace.BadRequest, "observes"):
                observer.set_policy("host", "lru", timeout=PATIENCE)
            observer.status(timeout=PATIENCE)
        with self.assertRaises(TypeError):
            terrace.connect(server.socket, observes="yes")  # type: ignore[arg-type]


class Waiting(DaemonTest):
    def test_a_deadline_ends_a_wait(self) -> None:
        with self.assertRaises(terrace.DeadlineExceeded) as raised:
            self.daemon.await_lookup(NEVER, timeout=0.05)
        self.assertIsInstance(raised.exception, TimeoutError)
        self.daemon.status(timeout=PATIENCE)  # the connection still works

    def test_other_threads_run_while_a_call_waits(self) -> None:
        name = os.urandom(16)
        outcome: list[int] = []
        with terrace.connect(self.server.socket, timeout=PATIENCE) as worker:
            waiter = threading.Thread(target=lambda: outcome.append(worker.await_lookup(name).requested_chunks))
            waiter.start()
            # If the wait held the GIL, this thread would never get to ask what the other one waits for.
            while self.waiting_requests(worker) == 0:
                pass
            self.daemon.lookup(self.space, [1] * 32, id=name, timeout=PATIENCE)
            waiter.join(PATIENCE)
        self.assertEqual(outcome, [2])

    def waiting_requests(self, of: terrace.Connection) -> int:
        clients = self.daemon.status(timeout=PATIENCE).clients
        return sum(client.requests_in_flight for client in clients if client.name == "python")

    def test_threads_take_turns_on_one_connection(self) -> None:
        chain = chain_of(2, 3)
        self.store(chain)
        wrong: list[int] = []

        def ask(n: int) -> None:
            for _ in range(200):
                found = self.daemon.lookup(self.space, Prefix.of_digests(chain[:n]), lease=True, timeout=PATIENCE)
                if found.found_chunks != n:
                    wrong.append(found.found_chunks)

        threads = [threading.Thread(target=ask, args=(n,)) for n in (1, 2, 3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])
        self.assertEqual(self.leases_of(self.daemon), 0)

    def test_a_turn_that_does_not_come_is_a_deadline(self) -> None:
        with terrace.connect(self.server.socket, timeout=PATIENCE) as worker:
            name = os.urandom(16)
            waiter = threading.Thread(target=lambda: worker.await_lookup(name, timeout=PATIENCE))
            waiter.start()
            while self.waiting_requests(worker) == 0:
                pass
            with self.assertRaisesRegex(terrace.DeadlineExceeded, "another thread"):
                worker.status(timeout=0.05)
            self.daemon.lookup(self.space, [1] * 16, id=name, timeout=PATIENCE)
            waiter.join(PATIENCE)

    def test_a_ticket_can_be_waited_for_again(self) -> None:
        name = os.urandom(16)
        ticket = self.daemon.submit_await_lookup(name)
        with self.assertRaises(terrace.DeadlineExceeded):
            ticket.result(0.01)
        self.assertFalse(ticket.done)
        with terrace.connect(self.server.socket, timeout=PATIENCE) as other:
            other.lookup(other.open_space(SPEC, timeout=PATIENCE), [1] * 16, id=name, timeout=PATIENCE)
        self.assertEqual(ticket.result(PATIENCE).requested_chunks, 1)

    def test_a_cancelled_ticket_ends_at_the_daemon(self) -> None:
        ticket = self.daemon.submit_await_lookup(os.urandom(16))
        self.assertFalse(ticket.done)
        ticket.cancel()
        ticket.cancel()  # does nothing
        with self.assertRaises(terrace.BadRequest):
            ticket.result()
        number = self.daemon.daemon.connection
        while True:  # the answers to the cancel and to the cancelled request come soon
            (me,) = [client for client in self.daemon.status(timeout=PATIENCE).clients if client.connection == number]
            if me.requests_in_flight <= 1:  # counts the status request itself
                break

    def test_a_signal_interrupts_a_wait_without_a_deadline(self) -> None:
        name = os.urandom(16)
        # A shell's background job ignores SIGINT.
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler))
        timer = threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT))
        timer.start()
        with self.assertRaises(KeyboardInterrupt):
            self.daemon.await_lookup(name)
        timer.join()
        self.daemon.status(timeout=PATIENCE)

    def test_a_forked_child_takes_nothing_from_its_parent(self) -> None:
        chain = chain_of(3, 1)
        self.store(chain)
        lease = self.lease(chain)
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                self.daemon.status()
                os.write(write, b"asked")
            except terrace.BadRequest as refused:
                os.write(write, b"refused" if "after a fork" in refused.text else b"another text")
            lease.release()
            del lease
            self.daemon.close()
            os._exit(0)
        os.waitpid(child, 0)
        self.assertEqual(os.read(read, 100), b"refused")
        os.close(read)
        os.close(write)
        self.assertEqual(self.leases_of(self.daemon), 1)
        self.assertEqual(len(self.daemon.read_lease(lease, timeout=PATIENCE)), 1)


class SharedMemory(unittest.TestCase):
    def test_committed_memory_exists_and_is_still_zero(self) -> None:
        memory = terrace.Memory(4 << 20)

        def present() -> int:
            return os.fstat(memory.fileno()).st_blocks * 512

        self.assertEqual(present(), 0)
        memory.commit()
        self.assertGreaterEqual(present(), memory.nbytes)
        self.assertFalse(any(memoryview(memory)))
        memoryview(memory)[0] = 7
        memory.commit()  # changes nothing
        self.assertEqual(memoryview(memory)[0], 7)


class Death(unittest.TestCase):
    def test_the_daemons_death_is_noticed_and_survived(self) -> None:
        server = Daemon()
        self.addCleanup(server.stop)
        daemon = terrace.connect(server.socket, timeout=PATIENCE)
        space = daemon.open_space(SPEC, timeout=PATIENCE)
        memory = terrace.Memory(OBJECT_BYTES)
        region = daemon.register_region(memory, timeout=PATIENCE)
        daemon.store(space, [1] * 16, region, [memory], timeout=PATIENCE)
        lease = daemon.lookup(space, [1] * 16, lease=True, timeout=PATIENCE).lease
        assert lease is not None
        view = memoryview(daemon.read_lease(lease, timeout=PATIENCE)[0])
        waiting = daemon.submit_await_lookup(NEVER)
        raised: list[BaseException] = []

        def wait_for_ever() -> None:
            try:
                waiting.result()
            except terrace.Error as error:
                raised.append(error)

        waiter = threading.Thread(target=wait_for_ever)
        waiter.start()
        server.kill()
        waiter.join(PATIENCE)
        self.assertIsInstance(raised[0], terrace.Gone)
        self.assertFalse(daemon.alive)
        with self.assertRaises(terrace.Gone):
            daemon.fileno()
        with self.assertRaises(terrace.Gone):
            daemon.lookup(space, [1] * 16)
        self.assertEqual(bytes(view), bytes(OBJECT_BYTES))
        lease.release()
        del view
        boot = daemon.daemon.boot
        server.start()
        while True:
            try:
                self.assertFalse(daemon.reconnect(PATIENCE), "another daemon")
                break
            except terrace.Gone:
                continue  # too early for an attempt
        self.assertNotEqual(daemon.daemon.boot, boot)
        # The space is open and the region registered again.
        self.assertEqual(daemon.lookup(space, [1] * 16, timeout=PATIENCE).found_chunks, 0)
        self.assertEqual(daemon.store(space, [1] * 16, region, [memory], timeout=PATIENCE).stored_chunks, 1)
        daemon.close()

    def test_an_interpreter_may_end_with_everything_open(self) -> None:
        server = Daemon()
        self.addCleanup(server.stop)
        program = f"""
import sys; sys.path.insert(0, {os.path.dirname(__file__)!r})
import terrace
from daemon import SPEC
daemon = terrace.connect({server.socket!r})
space = daemon.open_space(SPEC)
memory = terrace.Memory(65536)
region = daemon.register_region(memory)
daemon.store(space, [1] * 16, region, [memory])
lease = daemon.lookup(space, [1] * 16, lease=True).lease
view = memoryview(daemon.read_lease(lease)[0])
ticket = daemon.submit_await_lookup(bytes(15) + b"x")
reservation = daemon.reserve(space, [2] * 16)
"""
        done = subprocess.run([sys.executable, "-c", program], timeout=PATIENCE, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))


class Isolated(DaemonTest):
    def test_an_isolated_group_denies_reading_in_place(self) -> None:
        server = Daemon(more="isolated = true")
        self.addCleanup(server.stop)
        daemon = terrace.connect(server.socket, timeout=PATIENCE)
        space = daemon.open_space(SPEC, timeout=PATIENCE)
        memory = terrace.Memory(OBJECT_BYTES)
        region = daemon.register_region(memory, timeout=PATIENCE)
        daemon.store(space, [1] * 16, region, [memory], timeout=PATIENCE)
        lease = daemon.lookup(space, [1] * 16, lease=True, timeout=PATIENCE).lease
        assert lease is not None
        with self.assertRaises(terrace.Denied):
            daemon.read_lease(lease, timeout=PATIENCE)
        self.assertEqual(daemon.load(space, lease, region, [memory], timeout=PATIENCE).delivered_chunks, 1)


if __name__ == "__main__":
    unittest.main()

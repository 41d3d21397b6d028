"""The client for asyncio: `daemon = await terrace.aio.connect(path)`, then `await daemon.lookup(...)` and so on, as
many at a time as wanted. The event loop sends requests about objects and receives their answers, by the
connection's descriptor. The others, which are rare, run on a thread of the connection, one after the other, and
delay what is sent meanwhile.

A coroutine that is cancelled cancels its request. Memory that a load names may be written until a later call on its
region has been answered.
"""

from __future__ import annotations

import asyncio
import functools
import os
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from . import connection as blocking
from ._libterrace import Lease, Prefix, Ticket
from .errors import DeadlineExceeded, Error, Gone
from .parts import Parts
from .status import DaemonInfo

if TYPE_CHECKING:
    from ._libterrace import BytesLike  # declared in _libterrace.pyi alone

__all__ = ["Connection", "connect"]

P = ParamSpec("P")
T = TypeVar("T")
Method = Callable[Concatenate["Connection", P], Coroutine[Any, Any, T]]


def _asks(submit: Callable[Concatenate[blocking.Connection, P], Ticket[T]]) -> Method[P, T]:
    """Makes a method that awaits the ticket of `submit`."""

    async def ask(self: Connection, /, *args: P.args, **kwargs: P.kwargs) -> T:
        timeout: Any = kwargs.get("timeout")
        return await self._ask(lambda: submit(self._blocking, *args, **kwargs), _frame_bytes(args), timeout)

    return ask


def _calls(call: Callable[Concatenate[blocking.Connection, P], T]) -> Method[P, T]:
    """Makes a method that runs `call` on the connection's thread."""

    async def run(self: Connection, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._run(lambda: call(self._blocking, *args, **kwargs))

    return run


def _frame_bytes(arguments: Iterable[Any]) -> int:
    """Returns an upper bound of a request's frame, for the daemon's credits."""
    total = 1024
    for argument in arguments:
        if isinstance(argument, Prefix):
            total += argument.wire_bytes
        elif hasattr(argument, "__len__"):
            total += 32 * len(argument)
    return total


class Connection:
    """A connection that belongs to the event loop on which it was made. Closes at the end of an `async with` block, or
    with `close`."""

    def __init__(self, connected: blocking.Connection) -> None:
        self._blocking = connected
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[Ticket[Any], asyncio.Future[None]] = {}
        self._bytes = 0  # bytes of the requests in _waiting
        self._outside: deque[asyncio.Future[None]] = deque()  # coroutines that wait for their turn to send
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="terrace")
        self._on_thread = 0  # calls on the thread that have not ended
        self._closed = False
        self._descriptor = -1
        self._read_credits()
        self._watch()

    lookup = _asks(blocking.Connection.submit_lookup)
    await_lookup = _asks(blocking.Connection.submit_await_lookup)
    announce = _asks(blocking.Connection.submit_announce)
    follow = _asks(blocking.Connection.submit_follow)
    read_lease = _asks(blocking.Connection.submit_read_lease)
    load = _asks(blocking.Connection.submit_load)
    store = _asks(blocking.Connection.submit_store)
    reserve = _asks(blocking.Connection.submit_reserve)
    commit = _asks(blocking.Connection.submit_commit)

    open_space = _calls(blocking.Connection.open_space)
    close_space = _calls(blocking.Connection.close_space)
    register_region = _calls(blocking.Connection.register_region)
    register_device_region = _calls(blocking.Connection.register_device_region)
    register_generations = _calls(blocking.Connection.register_generations)
    bell = _calls(blocking.Connection.bell)
    open_session = _calls(blocking.Connection.open_session)
    fork_session = _calls(blocking.Connection.fork_session)
    adopt_session = _calls(blocking.Connection.adopt_session)
    close_session = _calls(blocking.Connection.close_session)
    lookup_turn = _calls(blocking.Connection.lookup_turn)
    save_turn = _calls(blocking.Connection.save_turn)
    move = _calls(blocking.Connection.move)
    evict = _calls(blocking.Connection.evict)
    cancel_lookup = _calls(blocking.Connection.cancel_lookup)
    end_inference = _calls(blocking.Connection.end_inference)
    clear = _calls(blocking.Connection.clear)
    status = _calls(blocking.Connection.status)
    policies = _calls(blocking.Connection.policies)
    set_policy = _calls(blocking.Connection.set_policy)

    async def load_under_lease(
        self,
        lease: Lease | bytes,
        into: Iterable[BytesLike],
        *,
        first_chunk: int = 0,
        chunks: int = 0,
        pools: Iterable[int] = (),
        timeout: float | None = None,
    ) -> int:
        """Copies as the blocking form does, on a thread."""
        parts = Parts(into, first_chunk, chunks, timeout)
        while parts.more:
            located = await self.read_lease(
                lease, first_chunk=parts.first_chunk, chunks=parts.chunks, pools=pools,
                give_up_earlier=parts.give_up_earlier, timeout=parts.timeout,
            )
            # Hands over the only reference, so that nothing keeps the part when its copy is done and the next may take
            # its place.
            handed = [located]
            del located
            await asyncio.to_thread(lambda: parts.copy(handed.pop()))
        return parts.nbytes

    def adopt(self, id: bytes) -> Lease:
        return self._blocking.adopt(id)

    @property
    def alive(self) -> bool:
        return self._blocking.alive

    @property
    def daemon(self) -> DaemonInfo:
        return self._info

    async def reconnect(self, timeout: float | None = None) -> bool:
        """Reconnects as the blocking form does: one attempt, or `Gone`."""
        self._unwatch()
        try:
            same = await self._run(lambda: self._blocking.reconnect(timeout))
        finally:
            self._watch()
        self._read_credits()
        return same

    async def close(self) -> None:
        if self._closed:
            return
        self._unwatch()
        closing = self._start(self._blocking.close)
        self._closed = True
        await closing
        self._thread.shutdown(wait=False)

    async def __aenter__(self) -> Connection:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # ---- requests on the loop ----

    async def _ask(self, submit: Callable[[], Ticket[T]], nbytes: int, timeout: float | None) -> T:
        until = None if timeout is None else self._loop.time() + timeout
        try:
            while not self._may_send(nbytes):
                turn = self._loop.create_future()
                self._outside.append(turn)
                await self._by(until, turn)
            ticket = submit()
        except BaseException:
            self._let_in()
            raise
        answered = self._loop.create_future()
        self._waiting[ticket] = answered
        self._bytes += nbytes
        self._let_in()
        try:
            await self._by(until, answered)
        except BaseException:
            ticket.cancel()
            raise
        finally:
            del self._waiting[ticket]
            self._bytes -= nbytes
            self._let_in()
        return ticket.result()

    def _may_send(self, nbytes: int) -> bool:
        """Sending would block, and with it the loop, if the daemon's credits were used up or the thread were inside.
        Half of the credits is left for messages sent in passing: releases and cancels."""
        if self._on_thread:
            return False
        if not self._waiting:
            return True
        return len(self._waiting) < self._requests_max and self._bytes + nbytes <= self._bytes_max

    def _let_in(self) -> None:
        """Lets one of the waiting coroutines send. It lets the next one in, and so does another that ends."""
        while self._outside and self._may_send(0):
            turn = self._outside.popleft()
            if not turn.done():
                turn.set_result(None)
                return

    async def _by(self, until: float | None, future: asyncio.Future[None]) -> None:
        if until is None:
            return await future
        expiry = self._loop.call_at(until, _expire, future)
        try:
            await future
        finally:
            expiry.cancel()

    def _read(self) -> None:
        try:
            self._blocking.poll()
        except Error:
            pass  # the daemon is lost, which the tickets report
        self._hand_out()

    def _hand_out(self) -> None:
        for ticket, answered in self._waiting.items():
            if not answered.done() and ticket.done:
                answered.set_result(None)
        if not self._blocking.alive:
            self._unwatch()

    def _watch(self) -> None:
        if self._blocking.alive and self._descriptor < 0:
            self._descriptor = self._blocking.fileno()
            self._loop.add_reader(self._descriptor, self._read)

    def _unwatch(self) -> None:
        if self._descriptor >= 0:
            self._loop.remove_reader(self._descriptor)
            self._descriptor = -1

    def _read_credits(self) -> None:
        self._info = self._blocking.daemon
        self._requests_max = max(1, self._info.credit_requests // 2)
        self._bytes_max = self._info.credit_bytes // 2

    # ---- calls on the thread ----

    async def _run(self, call: Callable[[], T]) -> T:
        return await asyncio.shield(self._start(call))

    def _start(self, call: Callable[[], T]) -> asyncio.Future[T]:
        if self._closed:
            raise Gone("this connection was closed")
        self._on_thread += 1
        running = self._loop.run_in_executor(self._thread, call)
        running.add_done_callback(self._ended)
        return running

    def _ended(self, running: asyncio.Future[Any]) -> None:
        self._on_thread -= 1
        running.cancelled() or running.exception()  # retrieved even if nobody awaits it any more
        self._hand_out()  # the thread may have received answers for others
        self._let_in()


def _expire(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_exception(DeadlineExceeded("the daemon did not answer in time"))


async def connect(
    path: str | os.PathLike[str] | None = None,
    *,
    name: str = "python",
    timeout: float | None = None,
    observes: bool = False,
) -> Connection:
    """Connects as `terrace.connect` does: `async with await terrace.aio.connect(path) as daemon: ...`."""
    connecting = functools.partial(blocking.connect, path, name=name, timeout=timeout, observes=observes)
    return Connection(await asyncio.get_running_loop().run_in_executor(None, connecting))

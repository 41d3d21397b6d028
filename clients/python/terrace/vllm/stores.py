"""Stores. KV is copied to staging memory in the step that computed it, or later while its blocks still have it: an
order for which there is no room is kept, and nobody waits."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass

from .._libterrace import Options, Prefix, Stored
from ..errors import Error
from .orders import StoreOrder
from .plan import Plan
from .requests import Result
from .staging import Staging
from .transfers import Transfers

# The reasons why chunks are not stored, as the log tells them.
REASONS = {
    "away": "the daemon was away",
    "failed": "the daemon was lost or did not complete the store",
    "room": 'staging memory was full, and this engine may change its blocks without notice; set a larger "staging_bytes"',
    "overwritten": 'vLLM gave their blocks to other tokens before staging memory had room; set a larger "staging_bytes"',
    "late": "staging memory had no room for them within store_seconds",
    "cleared": "the cache was cleared before they were copied",
    "spoiled": "they may have been computed from KV that did not come",
}


@dataclass(slots=True)
class _Kept:
    """An order of which chunks may be left."""

    order: StoreOrder
    done: int  #: leading chunks that need no more attention
    end: int  #: chunks from here on are not stored
    since: float

    @property
    def left(self) -> int:
        return self.end - self.done


class Stores:
    def __init__(
        self, transfers: Transfers, staging: Staging, plan: Plan, *, seconds: float, keeps: bool,
        on_stored: Callable[[Stored], None], on_failed: Callable[[], None],
        on_left_out: Callable[[str, int, set[str]], None],
    ) -> None:
        """`seconds`: the daemon ends a store by then, and an order is kept no longer. `keeps`: the engine says which
        blocks it overwrites (`overwritten`); otherwise nothing is kept after its step. `on_left_out` is told one of
        REASONS, the number of chunks, and of which requests they are."""
        self._transfers, self._staging, self._plan = transfers, staging, plan
        self._seconds, self._keeps = seconds, keeps
        self._on_stored, self._on_failed, self._on_left_out = on_stored, on_failed, on_left_out
        self._kept: list[_Kept] = []  # in the order in which they came
        self._sent: Counter[str] = Counter()  # by request: stores without an answer

    @property
    def kept(self) -> int:
        """Number of chunks that are not in staging memory yet."""
        return sum(one.left for one in self._kept)

    def busy(self, request: str) -> bool:
        """Returns whether something of this request is still to be stored."""
        return request in self._sent or any(one.order.request == request for one in self._kept)

    def store(self, orders: Sequence[StoreOrder]) -> None:
        """Begins the stores of a step."""
        now = time.monotonic()
        self._kept += [_Kept(order, 0, len(order.digests), now) for order in orders if order.digests]
        self.advance()
        if not self._keeps:
            self._leave_out_all("room")

    def advance(self) -> None:
        """Copies to staging memory what it has room for. Does not wait."""
        while self._kept and self._transfers.session() is not None:
            one = self._kept[0]
            if one.left and not self._store_window(one):
                break  # no room
            if not one.left:
                self._kept.pop(0)
        if self._kept and self._transfers.session() is None:
            self._leave_out_all("away")
        until = time.monotonic() - self._seconds
        while self._kept and self._kept[0].since < until:
            late = self._kept.pop(0)
            self._leave_out("late", late.left, {late.order.request})

    def overwritten(self, blocks: Set[int]) -> None:
        """The engine is about to overwrite these blocks. Of each order the chunks before the first such block stay."""
        for one in self._kept:
            for_each_group = [of_group[one.done : one.end] for of_group in one.order.blocks]
            firsts = [i for of_group in for_each_group for i, block in enumerate(of_group) if block in blocks]
            if firsts:
                end = one.done + min(firsts)
                self._leave_out("overwritten", one.end - end, {one.order.request})
                one.end = end
        self._kept = [one for one in self._kept if one.left]

    def clear(self) -> None:
        """The cache was cleared, so what is kept must not come back."""
        self._leave_out_all("cleared")

    def _leave_out_all(self, reason: str) -> None:
        left, requests = self.kept, {one.order.request for one in self._kept}
        self._kept = []
        self._leave_out(reason, left, requests)

    def _leave_out(self, reason: str, chunks: int, requests: set[str]) -> None:
        if chunks:
            self._transfers.tell(reason, f"{chunks} blocks are not stored: {REASONS[reason]}")
            self._on_left_out(reason, chunks, requests)

    def _store_window(self, one: _Kept) -> bool:
        """Sends the next chunks of an order. False: there is no room."""
        session = self._transfers.session()
        window = None if session is None else self._transfers.take(one.left)
        if session is None or window is None:
            return False
        order, done, taken = one.order, one.done, window.chunks
        with self._staging.ordered():
            rows = [self._staging.mover.rows(of_group[done : done + taken]) for of_group in order.blocks]
            self._staging.mover.gather(rows, window.slot)
        try:
            after = self._staging.gathered(session)
        except Error as problem:
            self._transfers.broken(session, str(problem))
            self._transfers.done_with(window)
            return True  # without a session, the rest is left out
        parent = order.digests[done - 1] if done else order.parent
        chain = [*([parent] if parent else []), *order.digests[done : done + taken]]
        runs = self._plan.runs(self._staging.offset, self._plan.parts, window.slot, taken)
        one.done += taken
        self._sent[order.request] += 1
        sent = self._transfers.send(
            session, window, "a store",
            lambda: session.connection.submit_store(
                session.spaces[0], Prefix.of_digests(chain, tags=order.tags), session.region, runs,
                first_chunk=len(chain) - taken, after=after, timeout=self._seconds,
                options=Options(inference=order.inference),
            ),
            lambda result: self._end(result, taken, order.request),
        )
        self._transfers.done_with(window)
        if not sent:  # nothing can follow chunks that are not there
            self._leave_out("failed", one.left, {order.request})
            one.end = one.done
        return True

    def _end(self, result: Result, chunks: int, request: str) -> None:
        self._sent[request] -= 1
        if not self._sent[request]:
            del self._sent[request]
        if isinstance(result, Stored):
            self._on_stored(result)
        else:
            self._on_failed()
            self._leave_out("failed", chunks, {request})

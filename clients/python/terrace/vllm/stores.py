"""Stores: KV is copied to staging memory in the step that computed it, so that its blocks may be overwritten
afterwards."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .._libterrace import Prefix
from ..errors import Error
from .orders import StoreOrder
from .plan import Plan
from .requests import Result
from .staging import Staging
from .transfers import Transfers


class Stores:
    def __init__(
        self, transfers: Transfers, staging: Staging, plan: Plan, *, seconds: float, room_seconds: float,
        on_end: Callable[[Result], None],
    ) -> None:
        """`seconds`: the daemon ends a store by then. `room_seconds`: how long a step waits for slots at most."""
        self._transfers, self._staging, self._plan = transfers, staging, plan
        self._seconds, self._room_seconds, self._on_end = seconds, room_seconds, on_end

    def store(self, orders: Sequence[StoreOrder]) -> int:
        """Carries out the stores of a step. Returns how many chunks were left out for lack of slots or of the daemon."""
        left_out = 0
        waits = True  # waits until one wait was in vain
        for order in orders:
            done, count = 0, len(order.digests)
            while done < count:
                if waits and self._transfers.slots.left == 0:
                    waits = self._transfers.wait(lambda: self._transfers.slots.left > 0, self._room_seconds)
                taken = self._store_window(order, done)
                if taken == 0:
                    break
                done += taken
            left_out += count - done
        return left_out

    def _store_window(self, order: StoreOrder, done: int) -> int:
        session = self._transfers.session()
        window = None if session is None else self._transfers.take(len(order.digests) - done)
        if session is None or window is None:
            return 0
        taken = window.chunks
        with self._staging.ordered():
            rows = [self._staging.mover.rows(of_group[done : done + taken]) for of_group in order.blocks]
            self._staging.mover.gather(rows, window.slot)
        try:
            after = self._staging.gathered(session)
        except Error as problem:
            self._transfers.broken(session, str(problem))
            self._transfers.done_with(window)
            return 0
        parent = order.digests[done - 1] if done else order.parent
        chain = [*([parent] if parent else []), *order.digests[done : done + taken]]
        runs = self._plan.runs(self._staging.offset, self._plan.parts, window.slot, taken)
        sent = False

        def end(result: Result) -> None:
            if sent:
                self._on_end(result)

        sent = self._transfers.send(
            session, window, "a store",
            lambda: session.connection.submit_store(
                session.spaces[0], Prefix.of_digests(chain, tags=order.tags), session.region, runs,
                first_chunk=len(chain) - taken, after=after, timeout=self._seconds,
            ),
            end,
        )
        self._transfers.done_with(window)
        return taken if sent else 0

"""A request in the daemon's hands, and the slots that it uses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .._libterrace import Loaded, Stored, Ticket
from ..errors import Error
from .staging import Layers

Result = Loaded | Stored | None  # None: it failed


@dataclass(slots=True)
class Window:
    """Slots in use, and perhaps counters."""

    slot: int
    chunks: int
    users: int = 1  #: requests, and who reads or writes the slots here
    layers: Layers | None = None


@dataclass(slots=True)
class Request:
    """`take` and `give_up` are called with the lock of `Transfers`."""

    ticket: Ticket[Loaded] | Ticket[Stored]
    window: Window
    on_end: Callable[[Result], None]
    over: bool = False  #: its answer was taken, or it was abandoned with its session
    given_up: bool = False  #: nobody waits for its layers
    result: Result = None
    problem: Error | None = None

    def take(self) -> bool:
        """Its answer, if that is there."""
        if not self.over and self.ticket.done:
            if self.window.layers is not None:
                self.window.layers.end()  # before an answer that says gone ends the whole ring: that may be the lease alone
            try:
                result = self.ticket.result(0)
                self.result = None if self.given_up else result
            except Error as problem:
                self.problem = problem.with_traceback(None)  # or that keeps this request, and with it its session
            self.over = True
            self.given_up = True
        return self.over

    def give_up(self) -> None:
        """Streams that wait for its layers go on, so it has failed, whatever its answer says. The daemon may still write its slots."""
        self.given_up = True
        if self.window.layers is not None:
            self.window.layers.end()

"""A request in the daemon's hands, and the slots that it uses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .._libterrace import Loaded, Stored, Ticket
from ..errors import Error
from .staging import Layers

Result = Loaded | Stored | None  # None: the request failed


@dataclass(slots=True)
class Window:
    """Slots in use, and perhaps counters."""

    slot: int
    chunks: int
    users: int = 1  #: number of requests and others that read or write the slots
    layers: Layers | None = None


@dataclass(slots=True)
class Request:
    """A request. `take` and `give_up` are called with the lock of `Transfers`."""

    ticket: Ticket[Loaded] | Ticket[Stored]
    window: Window
    on_end: Callable[[Result], None]
    over: bool = False  #: its answer was taken, or it was abandoned with its session
    given_up: bool = False  #: nobody waits for its layers
    result: Result = None
    problem: Error | None = None

    def take(self) -> bool:
        """Takes its answer, if that is there."""
        if not self.over and self.ticket.done:
            if self.window.layers is not None:
                # Called before an answer `gone` ends the whole ring, because perhaps only the lease is gone.
                self.window.layers.end()
            try:
                result = self.ticket.result(0)
                self.result = None if self.given_up else result
            except Error as problem:
                self.problem = problem.with_traceback(None)  # the traceback would keep this request and its session
            self.over = True
            self.given_up = True
        return self.over

    def give_up(self) -> None:
        """Lets streams that wait for its layers go on. The request has therefore failed, whatever its answer says. The
        daemon may still write its slots."""
        self.given_up = True
        if self.window.layers is not None:
            self.window.layers.end()

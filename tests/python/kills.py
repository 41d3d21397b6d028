"""Kills at the messages of loads."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any
from unittest import mock

from daemon import PATIENCE, Daemon
from terrace.connection import Connection
from terrace.link import await_readable

PLACES = ("before it is sent", "before it is seen", "when it is answered")


class Messages:
    """Inside the block, `kill` is called at one of this process's requests for loads, counted from 1; 0: at none."""

    def __init__(self, daemon: Daemon, kill: Callable[[], None], number: int = 0, place: str = "") -> None:
        self.requests = 0
        self._daemon, self._kill, self._number, self._place = daemon, kill, number, place

    def __enter__(self) -> Messages:
        right = Connection.submit_load

        def submit_load(connection: Connection, *arguments: Any, **named: Any) -> Any:
            self.requests += 1
            place = self._place if self.requests == self._number else ""
            if place == PLACES[0]:
                self._kill()
            if place == PLACES[1]:
                self._daemon.pause()
            ticket = None
            try:
                ticket = right(connection, *arguments, **named)
            finally:
                if place == PLACES[1]:
                    self._kill()
                    self._daemon.resume()
            if place == PLACES[2]:
                end = time.monotonic() + PATIENCE
                while not await_readable([connection.fileno()], 0) and not ticket.done:
                    assert time.monotonic() < end, "a load was not answered"
                self._kill()
            return ticket

        self._patch = mock.patch.object(Connection, "submit_load", submit_load)
        self._patch.start()
        return self

    def __exit__(self, *unused: object) -> None:
        self._patch.stop()

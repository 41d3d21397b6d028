"""What a request asks of Terrace, in its `kv_transfer_params`. What cannot be understood is left out, with a line in the log:
no request fails for it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

PREFIX = "terrace_"
FOLLOW_SECONDS = 10.0
FOLLOW_SECONDS_MAX = 3600.0
THINK_SECONDS_MAX = 30 * 86400.0


@dataclass(frozen=True)
class Parameters:
    announce: bytes = b""  #: name by which others follow what this request stores; empty: none
    follow: bytes = b""  #: name of what another engine stores, for which this request waits; empty: none
    follow_seconds: float = FOLLOW_SECONDS  #: it waits no longer
    session: int = 0  #: number of the conversation whose turn this is; 0: none is named
    session_ends: bool = False  #: this is the last turn
    think_seconds: float | None = None  #: expected from the end of this turn to the next one


def parameters_of(request: Any, tell: Callable[[str], None]) -> Parameters:
    given = getattr(request, "kv_transfer_params", None)
    if not isinstance(given, dict):
        return NOTHING
    asked = {name.removeprefix(PREFIX): value for name, value in given.items()
             if isinstance(name, str) and name.startswith(PREFIX) and value is not None}
    read: dict[str, Any] = {}
    for name, value in asked.items():
        try:
            read[name] = READERS[name](value)
        except (KeyError, TypeError, ValueError):
            known = ", ".join(PREFIX + each for each in READERS)
            tell(f"kv_transfer_params: expected {known} with sensible values, got {PREFIX}{name} = {value!r:.100}; it is left out")
    return Parameters(**read) if read else NOTHING


def _name(value: Any) -> bytes:
    if not isinstance(value, str) or not value:
        raise TypeError("expected a name")
    return hashlib.sha256(value.encode()).digest()[:16]


def _number(value: Any) -> int:
    return int.from_bytes(_name(value)[:8], "big") or 1


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError("expected true or false")
    return value


def _seconds(most: float) -> Callable[[Any], float]:
    def read(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < most:
            raise ValueError("expected a number of seconds")
        return float(value)

    return read


READERS: dict[str, Callable[[Any], Any]] = {
    "announce": _name, "follow": _name, "follow_seconds": _seconds(FOLLOW_SECONDS_MAX),
    "session": _number, "session_ends": _flag, "think_seconds": _seconds(THINK_SECONDS_MAX),
}
NOTHING = Parameters()

"""What a request asks of Terrace, in its `kv_transfer_params`. What cannot be understood is left out, with a line in the log:
no request fails for it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

PREFIX = "terrace_"
FOLLOW_SECONDS = 10.0


@dataclass(frozen=True)
class Parameters:
    announce: bytes = b""  #: name by which others follow what this request stores; empty: none
    follow: bytes = b""  #: name of what another engine stores, for which this request waits; empty: none
    follow_seconds: float = FOLLOW_SECONDS  #: it waits no longer


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


def _seconds(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 3600:
        raise ValueError("expected a number of seconds")
    return float(value)


READERS: dict[str, Callable[[Any], Any]] = {"announce": _name, "follow": _name, "follow_seconds": _seconds}
NOTHING = Parameters()

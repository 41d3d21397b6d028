"""Reads the adapters' options from configuration files, where numbers come as texts and texts as numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any


def text(name: str, given: Any) -> str:
    """Returns an option's text; a whole number becomes its digits."""
    if isinstance(given, int) and not isinstance(given, bool):
        return str(given)
    if not isinstance(given, str):
        raise ValueError(f'expected a text for "{name}", got {given!r}: put it in quotes')
    try:
        given.encode()
    except UnicodeEncodeError:
        raise ValueError(f'expected a text of UTF-8 for "{name}", got {given!r}') from None
    return given


def seconds(name: str, given: Any) -> float:
    try:
        value = math.nan if isinstance(given, bool) else float(given)
    except (TypeError, ValueError):
        value = math.nan
    if not (value > 0 and math.isfinite(value)):
        raise ValueError(f'expected seconds above 0 for "{name}", got {given!r}')
    return value


def whole(name: str, given: Any) -> int:
    """Returns an option that is a whole number above 0."""
    try:
        value = int(given) if isinstance(given, (int, str)) and not isinstance(given, bool) else 0
    except ValueError:
        value = 0
    if value <= 0:
        raise ValueError(f'expected a whole number above 0 for "{name}", got {given!r}')
    return value


def flag(name: str, given: Any) -> bool:
    known = {True: True, False: False, "true": True, "false": False}
    value = known.get(given.lower() if isinstance(given, str) else given) if isinstance(given, (bool, str)) else None
    if value is None:
        raise ValueError(f'expected true or false for "{name}", got {given!r}')
    return value


@dataclass(frozen=True)
class Limits:
    """Time limits in seconds."""

    lookup: float = 0.25  #: a later answer counts as a miss, and so does everything until it comes
    load: float = 10.0  #: the daemon ends a load by then
    store: float = 60.0

    def __post_init__(self) -> None:
        for field in fields(self):
            object.__setattr__(self, field.name, seconds(f"{field.name}_seconds", getattr(self, field.name)))

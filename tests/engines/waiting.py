"""What tests of engines have in common."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from daemon import PATIENCE


def prompts_of(seed: int, count: int = 1, tokens: int = 300) -> list[list[int]]:
    source = random.Random(seed)
    return [[source.randrange(4, 2048) for _ in range(tokens)] for _ in range(count)]


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("not within the patience of a test")
        time.sleep(0.01)

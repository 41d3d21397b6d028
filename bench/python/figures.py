"""Prints a line for each figure, as ./bench/run does, and places threads on processors."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median


def report(name: str, unit: str, values: Sequence[float], limits: Sequence[float] = (), **more: float) -> None:
    """Reports medians over rounds, of their ratios too; half of the rounds have ratios within `ratio_spread`
    of that."""
    line: dict[str, object] = {"name": name, "value": round(median(values), 3), "unit": unit, "rounds": len(values)}
    if limits:
        ratios = [value / limit for value, limit in zip(values, limits, strict=True)]
        line |= {"limit": round(median(limits), 3), "ratio": round(median(ratios), 3)}
        line["ratio_spread"] = round(median(abs(ratio - median(ratios)) for ratio in ratios), 3)
        if unit == "us":
            line["above_limit_us"] = round(median(values) - median(limits), 3)
    print(json.dumps({**line, **more}), flush=True)


class Beside:
    """libterrace with the same objects of the same daemon (bench/beside.cpp)."""

    def __init__(self, socket: str, object_bytes: int, chain: Sequence[bytes], into: int | None = None) -> None:
        """Looks the chain up, or loads it into a descriptor's memory."""
        program = Path(os.environ["TERRACE_BENCH"]).with_name("terrace_beside")
        command = [str(program), socket, str(object_bytes), str(len(chain)), *([] if into is None else [str(into)])]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         pass_fds=[] if into is None else [into])
        self._say(b"".join(chain))

    @property
    def pid(self) -> int:
        return self._process.pid

    def measure(self) -> float:
        """Runs one pass and returns microseconds per lookup, or GB/s."""
        self._say(b"+")
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("terrace_beside has ended")
        return float(line)

    def close(self) -> None:
        self._process.communicate()

    def _say(self, what: bytes) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(what)
        self._process.stdin.flush()


def place(process: int, processors: Iterable[int]) -> None:
    """Places all threads of the process, as bench/placement.hpp does."""
    for thread in os.listdir(f"/proc/{process}/task"):
        os.sched_setaffinity(int(thread), {processor % (os.cpu_count() or 1) for processor in processors})

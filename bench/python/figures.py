"""A line for each figure, as ./bench/run prints them, and who runs on which processor."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Sequence
from statistics import median


def report(name: str, unit: str, values: Sequence[float], limits: Sequence[float] = (), **more: float) -> None:
    """Medians over rounds."""
    line: dict[str, object] = {"name": name, "value": round(median(values), 3), "unit": unit, "rounds": len(values)}
    if limits:
        line |= {"limit": round(median(limits), 3), "ratio": round(median(values) / median(limits), 3)}
        if unit == "us":
            line["above_limit_us"] = round(median(values) - median(limits), 3)
    print(json.dumps({**line, **more}), flush=True)


def of_libterrace(benchmark: str, rounds: int = 5) -> dict[str, float]:
    """What the C++ client reaches now, in the same benchmark of ./bench/run: its figures by their names."""
    command = [os.environ["TERRACE_BENCH"], "--terraced", os.environ["TERRACED"], "--rounds", str(rounds), benchmark]
    lines = subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
    found = [json.loads(line) for line in lines if line.startswith("{")]
    if not found:
        raise RuntimeError(f"{benchmark} has printed no figures")
    return {line["name"]: float(line["value"]) for line in found}


def place(process: int, processors: Iterable[int]) -> None:
    """All its threads, as bench/placement.hpp does."""
    for thread in os.listdir(f"/proc/{process}/task"):
        os.sched_setaffinity(int(thread), {processor % (os.cpu_count() or 1) for processor in processors})

"""Hit ratios of eviction policies on a trace, computed by the command `terrace simulate`."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable
from typing import Any

from .errors import BadRequest, Internal, NotFound


def simulate(
    *traces: str | os.PathLike[str],
    policies: str | Iterable[str] = (),
    capacity: str | int | Iterable[str | int] = (),
    command: str = "terrace",
    **options: str | int | float | bool,
) -> dict[str, Any]:
    """Returns what `terrace simulate --json` prints. `capacity`: shares such as "5%", or bytes, one or several; `command`: the program, by
    default from PATH. The other options have the command's names: `second_tier="8x"`, `block_tokens=16`, `chunk_tokens=16`,
    `jobs=4`. Needs no daemon."""
    words = [command, "simulate", *(os.path.join(os.curdir, os.fspath(trace)) for trace in traces), "--json"]
    given: str | int | Iterable[str | int]
    for name, given in (("policies", policies), ("capacity", capacity)):
        if not isinstance(given, (str, int)):  # a text would fall into its letters
            given = ",".join(str(value) for value in given)
        if given:
            words += [f"--{name}", str(given)]
    for name, value in options.items():
        if value is not False:
            words.append(f"--{name.replace('_', '-')}")
            if value is not True:
                words.append(str(value))
    try:
        done = subprocess.run(words, capture_output=True, text=True)
    except FileNotFoundError:
        raise NotFound(f"the command {command!r} is not installed: name it with command=") from None
    if done.returncode != 0:
        why = done.stderr.strip().splitlines()[-1:] or [f"{command} ended with {done.returncode}"]
        raise (BadRequest if done.returncode == 2 else Internal)(why[0])
    made: dict[str, Any] = json.loads(done.stdout)
    return made

"""`python -m terrace status`: prints what the daemon reports about itself."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import sys
from typing import Any

from . import __version__
from ._libterrace import OpenPool, TensorPlace
from .connection import connect, default_socket
from .errors import BadRequest, Error
from .status import DaemonStatus


# Exit codes of the command `terrace`.
OK, FAILED, USAGE, UNREACHABLE, READER_LEFT = 0, 1, 2, 3, 141


def _size(nbytes: float) -> str:
    """As the command `terrace` writes sizes: three digits and a unit."""
    if nbytes < 1024:
        return f"{nbytes:.0f} B"
    for unit in ("KiB", "MiB", "GiB", "TiB", "PiB"):
        nbytes /= 1024
        if nbytes < 1023.5:
            break
    return f"{nbytes:.{2 if nbytes < 9.995 else 1 if nbytes < 99.95 else 0}f} {unit}"


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.{2 if seconds < 9.995 else 1}f} s"
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02} min"


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def _rows(rows: list[list[str]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ["  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]


def _text(status: DaemonStatus) -> str:
    lines = [f"terraced {status.version}, boot {status.boot.hex()}, up {_duration(status.uptime)}"]
    for group in status.groups:
        lines += ["", f"group {group.name} at {group.path or '-'}: {_counted(group.spaces, 'open space')}, {_counted(group.leases, 'lease')}"]
        rows = [["tier", "state", "used", "capacity", "objects", "leased", "hits", "misses", "policy"]]
        for tier in group.tiers:
            rows.append([tier.tier, tier.state, _size(tier.used_bytes), _size(tier.capacity_bytes), f"{tier.objects:,}",
                         f"{tier.leased_objects:,}", f"{tier.hits:,}", f"{tier.misses:,}", tier.policy])
        lines += _rows(rows)
        lines += [f"  {tier.tier} is {tier.state}: {tier.reason}" for tier in group.tiers if tier.reason]
        lines += [f"  {tier.tier}: {tier.notice}" for tier in group.tiers if tier.notice]
    if status.clients:
        rows = [["client", "name", "pid", "state", "requests", "leases", "region bytes"]]
        for client in status.clients:
            rows.append([str(client.connection), client.name, str(client.pid), client.state, f"{client.requests:,}",
                         f"{client.leases:,}", _size(client.region_bytes)])
        lines += ["", *_rows(rows)]
    return "\n".join(lines)


def _plain(value: Any) -> Any:
    """Converts a value to types that JSON has."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, OpenPool):
        return {"name": value.name, "object_bytes": value.object_bytes, "tensors": _plain(value.tensors)}
    if isinstance(value, TensorPlace):
        return {member: getattr(value, member) for member in ("offset", "nbytes", "first_layer", "layers")}
    if dataclasses.is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return value


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m terrace", description="Asks a Terrace daemon.")
    parser.add_argument("--version", action="version", version=f"terrace-kv {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    status = commands.add_parser("status", help="what the daemon says of itself")
    status.add_argument("--socket", help=f"the daemon's socket (default {default_socket()}; also TERRACE_SOCKET)")
    status.add_argument("--timeout", type=float, default=10, help="seconds to wait for the daemon")
    status.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(arguments)
    try:
        daemon = connect(options.socket, name="python -m terrace", timeout=options.timeout, observes=True)
    except Error as error:
        return _failed(str(error), USAGE if isinstance(error, BadRequest) else UNREACHABLE)
    with daemon:
        try:
            said = daemon.status(timeout=options.timeout)
        except Error as error:
            return _failed(str(error), FAILED if daemon.alive else UNREACHABLE)
    return _write(json.dumps(_plain(said), indent=2) if options.json else _text(said))


def _failed(text: str, code: int) -> int:
    print(f"python -m terrace: {text}", file=sys.stderr)
    return code


def _write(text: str) -> int:
    try:
        print(text, flush=True)
        return OK
    except OSError as problem:
        with contextlib.suppress(OSError):
            sys.stdout.close()  # otherwise Python writes the rest once more when it ends
        if isinstance(problem, BrokenPipeError):
            return READER_LEFT
        return _failed(f"standard output cannot be written: {problem.strerror}", FAILED)


if __name__ == "__main__":
    sys.exit(main())

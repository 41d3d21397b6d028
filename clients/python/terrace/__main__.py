"""`python -m terrace status`: prints what the daemon reports about itself."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from typing import Any

from . import __version__
from ._libterrace import OpenPool, TensorPlace
from .connection import connect, default_socket
from .errors import Error
from .status import DaemonStatus


def _size(nbytes: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if nbytes < 1024:
            return f"{nbytes:.4g} {unit}"
        nbytes /= 1024
    return f"{nbytes:.4g} TiB"


def _rows(rows: list[list[str]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ["  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]


def _text(status: DaemonStatus) -> str:
    lines = [f"terraced {status.version}, boot {status.boot.hex()}, up {status.uptime:.0f} s"]
    for group in status.groups:
        lines += ["", f"group {group.name} at {group.path or '-'}: {group.spaces} spaces, {group.leases} leases"]
        rows = [["tier", "state", "used", "capacity", "objects", "leased", "hits", "misses", "policy"]]
        for tier in group.tiers:
            rows.append([tier.tier, tier.state, _size(tier.used_bytes), _size(tier.capacity_bytes), str(tier.objects),
                         str(tier.leased_objects), str(tier.hits), str(tier.misses), tier.policy])
        lines += _rows(rows)
        lines += [f"  {tier.tier} is {tier.state}: {tier.reason}" for tier in group.tiers if tier.reason]
        lines += [f"  {tier.tier}: {tier.notice}" for tier in group.tiers if tier.notice]
    if status.clients:
        rows = [["client", "name", "pid", "state", "requests", "leases", "regions"]]
        for client in status.clients:
            rows.append([str(client.connection), client.name, str(client.pid), client.state, str(client.requests),
                         str(client.leases), str(client.regions)])
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
        with connect(options.socket, name="python -m terrace", timeout=options.timeout, observes=True) as daemon:
            said = daemon.status(timeout=options.timeout)
    except Error as error:
        print(f"python -m terrace: {error}", file=sys.stderr)
        return 1
    print(json.dumps(_plain(said), indent=2) if options.json else _text(said))
    return 0


if __name__ == "__main__":
    sys.exit(main())

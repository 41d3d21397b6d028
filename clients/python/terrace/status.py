"""The state of a daemon, as it reports it. Counters start with the daemon."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ._libterrace import OpenPool


@dataclass(frozen=True)
class DaemonInfo:
    """The daemon's answer in the handshake."""

    version: str
    protocol_version: int
    boot: bytes  #: id of this run of the daemon
    connection: int
    group: str  #: name of the trust group
    features: tuple[str, ...]
    credit_requests: int  #: requests that may be in flight on a connection
    credit_bytes: int
    frame_bytes_max: int


@dataclass(frozen=True)
class TierStatus:
    tier: str
    state: str
    reason: str  #: why it is not ready
    capacity_bytes: int
    used_bytes: int
    free_bytes: int
    largest_free_run: int
    objects: int
    leased_objects: int
    waiting_requests: int
    hits: int
    misses: int
    evictions: int
    bytes_read: int
    bytes_written: int
    errors: int
    allocator: str
    policy: str
    free_runs: int
    fragmentation: float  #: share of the free bytes that not even the smallest object can use
    huge_page_bytes: int
    leaving_bytes: int
    notice: str


@dataclass(frozen=True)
class SpaceStatus:
    space: int
    model: str
    fingerprint: bytes
    pools: list[OpenPool]


@dataclass(frozen=True)
class GroupStatus:
    name: str
    path: str
    isolated: bool
    spaces: int
    leases: int
    region_bytes: int  #: regions of all connections of the group, until they are unmapped
    region_bytes_max: int
    tiers: list[TierStatus]
    open_spaces: list[SpaceStatus]  #: the first 64


@dataclass(frozen=True)
class ClientStatus:
    connection: int
    name: str
    pid: int
    uid: int
    group: str
    state: str
    requests_in_flight: int
    regions: int
    region_bytes: int
    leases: int
    reservations: int
    requests: int
    age: float  #: seconds since it connected
    leased_bytes: int  #: host memory that its leases and readings hold
    quarantined_bytes: int  #: the part that it may be reading although the lease or connection has ended
    answered: int  #: number of requests answered
    latency: float  #: sum over all answered requests, in seconds


@dataclass(frozen=True)
class DeviceStatus:
    """A device in which clients have registered memory since the daemon started."""

    device: str  #: its UUID, or "host"
    state: str
    reason: str  #: why it is degraded
    description: str
    pid: int  #: id of its process; 0: there is none
    regions: int
    region_bytes: int
    loaded_bytes: int
    stored_bytes: int
    starts: int  #: starts of its process
    failures: int
    pinned_bytes: int  #: bytes of host memory that it reads itself
    direct_bytes: int  #: bytes that it has read from there
    staged_bytes: int  #: bytes that have passed through staging memory, either way
    disk_bytes: int  #: bytes that it has read from disks itself
    disk_reads: str  #: whether it reads disks: "yes", "no: " and why, "not all: " and why, "not tried", "opening",
                     #: "off"


@dataclass(frozen=True)
class DaemonStatus:
    version: str
    boot: bytes
    uptime: float  #: in seconds
    workers: int
    ring: list[str]  #: features that the kernel granted
    groups: list[GroupStatus]
    clients: list[ClientStatus]
    devices: list[DeviceStatus]

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> DaemonStatus:
        groups = [
            GroupStatus(**{
                **group,
                "tiers": [TierStatus(**tier) for tier in group["tiers"]],
                "open_spaces": [SpaceStatus(**space) for space in group["open_spaces"]],
            })
            for group in said["groups"]
        ]
        clients = [ClientStatus(**client) for client in said["clients"]]
        devices = [DeviceStatus(**device) for device in said["devices"]]
        return cls(**{**said, "groups": groups, "clients": clients, "devices": devices})


@dataclass(frozen=True)
class TierPolicy:
    tier: str
    policy: str
    objects: int


@dataclass(frozen=True)
class ShadowPolicy:
    """The hits that a tier of this capacity under this policy would have had."""

    policy: str
    capacity_bytes: int
    used_bytes: int
    objects: int
    bookkeeping_bytes: int
    requests: int
    asked: int
    hits: int
    asked_bytes: int
    hit_bytes: int
    evictions: int


@dataclass(frozen=True)
class PoliciesStatus:
    group: str
    tiers: list[TierPolicy]
    tracked: int  #: objects that the policies know
    ghosts: int  #: known objects that are resident nowhere
    bookkeeping_bytes: int
    shadows: list[ShadowPolicy]
    skipped_requests: int
    known: list[str]

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> PoliciesStatus:
        return cls(**{
            **said,
            "tiers": [TierPolicy(**tier) for tier in said["tiers"]],
            "shadows": [ShadowPolicy(**shadow) for shadow in said["shadows"]],
        })


@dataclass(frozen=True)
class Cleared:
    """The number of forgotten objects: an object counts once for each tier that it was in."""

    objects: int
    nbytes: int


@dataclass(frozen=True)
class Moved:
    """Chunks of a prompt that were to be moved to a tier."""

    requested_chunks: int
    moved_chunks: int
    present_chunks: int  #: chunks that were already there
    missing_chunks: int  #: chunks that are in no tier, or follow such a chunk
    held_chunks: int  #: chunks that are there now and also stay above, because somebody holds them
    failed_chunks: int
    moved_bytes: int

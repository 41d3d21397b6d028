"""Client of the Terrace KV cache daemon.

    daemon = terrace.connect("/run/terrace/terrace.sock", name="my-engine")
    space = daemon.open_space(terrace.SpaceSpec("llama", "bf16", "paged", [terrace.Pool("kv", object_bytes=4 << 20)]))
    hit = daemon.lookup(space, tokens, lease=True)
    for block in daemon.read_lease(hit.lease): ...      # in place, read-only

`terrace.aio` has the same for asyncio; `terrace.errors` what calls raise.
"""

from importlib.metadata import PackageNotFoundError, version as _version

from ._libterrace import (
    Announced,
    Arrivals,
    Bell,
    Buffer,
    DeviceMemory,
    LayeredLoad,
    LayerRing,
    Lease,
    Loaded,
    Located,
    Lookup,
    Memory,
    Missing,
    OpenPool,
    Options,
    Prefix,
    Region,
    Reservation,
    Rows,
    SavedTurn,
    Session,
    Space,
    StoreCounter,
    Stored,
    TensorPlace,
    Ticket,
)
from .connection import Connection, connect, default_socket
from .errors import (
    BadRequest,
    Busy,
    Cancelled,
    Code,
    DeadlineExceeded,
    Denied,
    Error,
    Gone,
    Internal,
    NoSpace,
    NotFound,
    Unsupported,
)
from .simulation import simulate
from .spaces import (
    DigestUnit,
    FinishReason,
    HashAlgorithm,
    HitRule,
    Pool,
    RequestDefaults,
    SpaceSpec,
    Tensor,
    TensorFormat,
    Tier,
)

try:
    __version__ = _version("terrace-kv")
except PackageNotFoundError:  # the package runs from a tree that is not installed
    __version__ = "0"

__all__ = [
    "Announced",
    "Arrivals",
    "BadRequest",
    "Bell",
    "Buffer",
    "Busy",
    "Cancelled",
    "Code",
    "Connection",
    "DeadlineExceeded",
    "Denied",
    "DeviceMemory",
    "DigestUnit",
    "Error",
    "FinishReason",
    "Gone",
    "HashAlgorithm",
    "HitRule",
    "Internal",
    "LayerRing",
    "LayeredLoad",
    "Lease",
    "Loaded",
    "Located",
    "Lookup",
    "Memory",
    "Missing",
    "NoSpace",
    "NotFound",
    "OpenPool",
    "Options",
    "Pool",
    "Prefix",
    "Region",
    "Reservation",
    "Rows",
    "SavedTurn",
    "Session",
    "Space",
    "RequestDefaults",
    "SpaceSpec",
    "StoreCounter",
    "Stored",
    "Tensor",
    "TensorFormat",
    "TensorPlace",
    "Ticket",
    "Tier",
    "Unsupported",
    "connect",
    "default_socket",
    "simulate",
]

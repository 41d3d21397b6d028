"""The description of a space: everything that must match for KV to be interchangeable (docs/protocol.md, Spaces)."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field


class Tier(enum.IntEnum):
    """The places of objects, fastest first."""

    GPU = 0
    HOST = 1
    DISK = 2
    REMOTE = 3
    REMOTE2 = 4
    REMOTE3 = 5
    NONE = 255


class HashAlgorithm(enum.IntEnum):
    SHA256_CBOR = 0
    SHA256 = 1
    XXH3_128 = 2


class HitRule(enum.IntEnum):
    ALL_CHUNKS = 0
    TRAILING_CHUNKS = 1


class TensorFormat(enum.IntEnum):
    """The order of a tensor's dimensions, slowest first."""

    BINARY = 0
    KV_2LTD = 1
    KV_T2D = 2
    KV_2TD = 3
    KV_MLA = 4


class DigestUnit(enum.IntEnum):
    """The meaning of a prefix's digest."""

    CHUNK = 0
    HASH_BLOCK = 1


class FinishReason(enum.IntEnum):
    UNKNOWN = 0
    STOP = 1
    LENGTH = 2
    TOOL_CALL = 3
    ABORTED = 4


@dataclass(frozen=True)
class Tensor:
    hidden: int  #: elements per token in one layer of K or V; with BINARY, per layer
    format: TensorFormat = TensorFormat.KV_2LTD
    dtype: str = ""  #: empty: that of the space
    kv_size: int = 2  #: 2, or 1 if K and V are one
    layers: int = 1
    first_layer: int = 0


@dataclass(frozen=True)
class Pool:
    """One kind of state in a space: attention KV, Mamba states, a sliding window."""

    name: str = "kv"
    object_bytes: int = 0  #: bytes of one chunk on one rank; 0 if given by `tensors`
    rule: HitRule = HitRule.ALL_CHUNKS
    trailing: int = 1  #: number of chunks, with TRAILING_CHUNKS
    replicated: bool = False  #: stored once for all ranks
    tensors: Sequence[Tensor] = ()
    layer_groups: int = 1  #: with tensors: one pool for each group of layers


@dataclass(frozen=True)
class RequestDefaults:
    """Defaults for all requests of this connection in a space; see `Options`."""

    tiers: Sequence[int] = ()  #: the `Tier`s to search; empty: all
    priority: int = 128
    deadline_ms: int = 0  #: deadline of a request without a timeout; 0: as the daemon is configured
    no_load: bool = False
    no_store: bool = False


@dataclass(frozen=True)
class SpaceSpec:
    """The description of a space. Clients whose specs differ in any field but the last three share nothing."""

    model: str
    dtype: str
    layout: str
    pools: Sequence[Pool] = field(default_factory=tuple)
    revision: str = ""
    chunk_tokens: int = 256
    hash_block_tokens: int = 16
    world_size: int = 1
    salt: str = ""
    algorithm: HashAlgorithm = HashAlgorithm.SHA256_CBOR
    seed: str = ""
    rank: int = 0  #: rank of this connection, one in each space; not part of the space
    #: The speed at which this client computes KV, not part of the space either. The daemon then leaves out chunks that
    #: the client computes sooner than it would get them (`recompute_chunks` of answers). 0: not declared.
    prefill_tokens_per_s: int = 0
    defaults: RequestDefaults = RequestDefaults()

"""Determines the space of a pool's pages: everything that must match for them to be interchangeable."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ..spaces import Pool, SpaceSpec
from ..weights import Weights, model_name

CHUNK_TOKENS = 65536  # limit of a space; the value is only displayed, since keys are digests

# Attributes that affect the bytes of a page, if a host pool has them.
POOL_DETAILS = (
    "layout", "page_size", "layer_num", "head_num", "head_dim", "v_head_dim", "start_layer", "end_layer", "kv_lora_rank",
    "qk_rope_head_dim", "kv_cache_dim", "num_mamba_layers", "temporal_state_elem_size", "head_group_num", "storage_format_tag",
)
# Attributes that determine which part of the model a process holds, besides the tensor-parallel rank.
PLACE_DETAILS = (
    "pp_rank", "pp_size", "attn_cp_rank", "attn_cp_size", "dcp_rank", "dcp_size", "tp_lcm_size", "should_split_heads",
    "logical_page_size",
)


@dataclass(frozen=True)
class Owner:
    """The settings of the user and of SGLang for the engine."""

    engine: str  #: its version; another one may lay out KV differently
    weights: Weights
    salt: str = ""  #: engines share pages only with those of an equal salt


def spec_of(config: Any, host_pool: Any, name: str, runs: Sequence[int], owner: Owner) -> SpaceSpec:
    """Returns the space of a pool. `config`: SGLang's HiCacheStorageConfig. `name`: name of the pool. `runs`: sizes in
    bytes of the runs of a page, in the order in which the daemon keeps them. Ranks of a tensor-parallel group are
    ranks of the space: a page is found when all of them have stored it. If all have equal bytes (MLA), one stores
    for all."""
    details: dict[str, Any] = {"engine": owner.engine, "pool": name, "class": type(host_pool).__name__, "runs": list(runs),
                               "factors": owner.weights.factors}
    details |= _some(host_pool, POOL_DETAILS) | _some(config, PLACE_DETAILS)
    replicated = bool(config.is_mla_model) and name != "mamba"  # Mamba states are always divided by heads
    text = json.dumps(details, sort_keys=True, default=str)
    tokens = min(int(getattr(host_pool, "page_size", 1) or 1), CHUNK_TOKENS)
    return SpaceSpec(
        model=model_name(config.model_name or ""), revision=owner.weights.revision, dtype=str(getattr(host_pool, "dtype", "")).removeprefix("torch."),
        layout="sglang-" + hashlib.sha256(text.encode()).hexdigest()[:32], chunk_tokens=tokens, hash_block_tokens=tokens,
        salt=owner.salt, world_size=config.tp_size, rank=config.tp_rank,
        pools=(Pool(name, object_bytes=sum(runs), replicated=replicated),),
    )


def _some(thing: Any, names: Sequence[str]) -> dict[str, Any]:
    return {name: getattr(thing, name) for name in names if getattr(thing, name, None) is not None}


def digests_of(keys: Iterable[str]) -> list[bytes]:
    """Returns the digests of SGLang's keys, which are SHA-256 in hexadecimal digits; keys of its `unified` scheme have
    a suffix. Any other text is a key, too."""
    return [_digest_of(key) for key in keys]


def _digest_of(key: str) -> bytes:
    if len(key) == 64:
        try:
            digest = bytes.fromhex(key)
        except ValueError:
            digest = b""
        if len(digest) == 32 and digest.hex() == key:  # not the same digits in capitals, and no blanks
            return digest
    return hashlib.sha256(key.encode()).digest()

"""Divides an engine's KV into objects: a chunk is a block of tokens, and each group of layers, in a few parts, is a
pool of the space. Reads vLLM's configuration by its attributes."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from .._libterrace import Rows
from ..spaces import HitRule, Pool, SpaceSpec
from ..weights import Weights, model_name

POOLS_MAX = 16  # pools per space
LAYER_PARTS = 4  # most parts per group, by default


class Unusable(Exception):
    """Raised with the reason why the connector can do nothing for this engine."""


@dataclass(frozen=True)
class Part:
    """Some layers of a group: a pool, and a piece of each chunk's slot in staging memory."""

    group: int
    layers: Sequence[str]
    layer_bytes: Sequence[int]  #: bytes of a block, for each layer
    offset: int  #: offset in the slot

    @property
    def nbytes(self) -> int:
        return sum(self.layer_bytes)


@dataclass(frozen=True)
class Plan:
    spec: SpaceSpec  #: with the rank of this process
    chunk_tokens: int
    hashes_per_chunk: int  #: hashes per chunk; the last of them names the chunk
    trailing: Sequence[int]  #: for each group: how many chunks at the end of a prefix it needs; 0: all
    parts: Sequence[Part]
    slot_bytes: int
    workers: int

    @property
    def groups(self) -> int:
        return len(self.trailing)

    @property
    def layered(self) -> bool:
        """True if layers may be loaded in the step that uses them. With several groups vLLM learns of failures only
        between steps; with several workers, those that have all their KV would continue with what another one
        computes from wrong KV."""
        return self.groups == 1 and self.workers == 1

    def runs(self, offset: int, parts: Sequence[Part], slot: int, chunks: int) -> Rows:
        """Returns the places of these parts of chunks in slots, the first of which begins at `offset`."""
        places = [(part.offset, part.nbytes) for part in parts]
        return Rows.in_slots(offset + slot * self.slot_bytes, self.slot_bytes, chunks, places)

    def of_rank(self, rank: int, prefill_tokens_per_s: int = 0) -> Plan:
        """`prefill_tokens_per_s`: the engine's, as in SpaceSpec."""
        return replace(self, spec=replace(self.spec, rank=rank, prefill_tokens_per_s=prefill_tokens_per_s))


def plan_of(
    vllm_config: Any, kv_cache_config: Any, engine: str, *, weights: Weights, salt: str, layer_parts: int = LAYER_PARTS,
    fails_requests: bool = True, stages: Sequence[int] = (),
) -> Plan:
    """`engine`: its version and platform; another one may lay out KV differently. `fails_requests`: the engine can be
    told which requests' loads have failed, besides which blocks. `stages`: layers of the model in each stage of a pipeline, if it has
    several. Raises Unusable."""
    parallel = vllm_config.parallel_config
    sizes = {name: getattr(parallel, name, 1) for name in
             ("prefill_context_parallel_size", "decode_context_parallel_size")}
    for name, size in sizes.items():
        if size != 1:
            raise Unusable(f"expected {name} 1, got {size}")
    groups = kv_cache_config.kv_cache_groups
    if not 1 <= len(groups) <= POOLS_MAX:
        raise Unusable(f"expected 1 to {POOLS_MAX} groups of layers with KV, got {len(groups)}")
    if len(groups) > 1 and not fails_requests:
        raise Unusable(f"expected one group of layers with KV, got {len(groups)}: this vLLM cannot be told which of their loads have failed, "
                       "and would compute from them; use a newer one, or the tier, terrace.vllm.tier")
    if len(stages) > 1:
        _check_stages(groups, stages)
    trailing = [_trailing(number, group) for number, group in enumerate(groups)]
    blocks = {group.kv_cache_spec.block_size for group in groups}
    if len(blocks) != 1:
        raise Unusable(f"expected groups of layers with one block size, got {sorted(blocks)}")
    (chunk,) = blocks
    said = [getattr(of, "hash_block_size", None) for of in (kv_cache_config, vllm_config.cache_config)]
    hash_tokens = said[0] or said[1] or chunk
    if chunk % hash_tokens:
        raise Unusable(f"expected blocks of a multiple of the {hash_tokens} tokens of a hash, got {chunk}")

    parts = _parts(groups, max(1, min(layer_parts, POOLS_MAX // len(groups))))
    pools = [
        Pool(f"group{part.group}.{i}", object_bytes=part.nbytes,
             rule=HitRule.TRAILING_CHUNKS if trailing[part.group] else HitRule.ALL_CHUNKS,
             trailing=trailing[part.group] or 1)
        for i, part in enumerate(parts)
    ]
    dtype = str(vllm_config.cache_config.cache_dtype)
    if dtype == "auto":
        dtype = str(vllm_config.model_config.dtype)
    details = {
        "engine": engine, "chunk": chunk, "layout": getattr(kv_cache_config, "kv_cache_layout", None),
        "parts": [(part.group, _named(part.layers, stages), list(part.layer_bytes)) for part in parts], "trailing": trailing,
        "factors": weights.factors,
    }
    layout = "vllm-connector-" + hashlib.sha256(json.dumps(details, sort_keys=True).encode()).hexdigest()[:32]
    spec = SpaceSpec(
        model=model_name(vllm_config.model_config.model), revision=weights.revision, dtype=dtype.removeprefix("torch."), layout=layout, chunk_tokens=chunk,
        hash_block_tokens=chunk, world_size=parallel.world_size, salt=salt, pools=tuple(pools),
    )
    return Plan(spec, chunk, chunk // hash_tokens, trailing, parts, sum(part.nbytes for part in parts), parallel.world_size)


def _check_stages(groups: Sequence[Any], stages: Sequence[int]) -> None:
    """The ranks of a space have equal pools, so the stages must have equal KV."""
    if len(groups) > 1:
        raise Unusable(f"expected one group of layers with KV in a pipeline, got {len(groups)}: use the tier, terrace.vllm.tier")
    specs = _layer_specs(groups[0])
    if len(set(stages)) > 1 or len(specs) != stages[0] or len({spec.page_size_bytes for spec in specs.values()}) > 1:
        raise Unusable(f"expected pipeline stages with as many layers each, all with KV of one size, got {list(stages)} layers, "
                       f"and {len(specs)} with KV in this stage: use the tier, terrace.vllm.tier")


def _named(layers: Sequence[str], stages: Sequence[int]) -> list[str]:
    """Returns the names of layers; in a pipeline without the numbers, in which its stages differ."""
    return [re.sub(r"\d+", "", name) for name in layers] if len(stages) > 1 else list(layers)


def _trailing(number: int, group: Any) -> int:
    """Returns how many blocks at the end of a prefix the group needs; 0: all."""
    if not getattr(group, "enable_kv_transfer", True) or not getattr(group.kv_cache_spec, "prefix_cacheable", True):
        raise Unusable(f"expected groups of layers whose KV may be kept, got group {number}, which vLLM keeps to itself")
    kinds = {type(spec).__name__ for spec in _layer_specs(group).values()}
    if len(kinds) != 1:
        raise Unusable(f"expected one kind of KV in group {number}, got {', '.join(sorted(kinds))}")
    (kind,) = kinds
    if kind in ("SlidingWindowSpec", "SlidingWindowMLASpec"):
        spec = next(iter(_layer_specs(group).values()))
        kept: int = spec.sliding_window - 1 + getattr(spec, "extra_retained_tokens", 0)
        return max(1, -(-kept // int(spec.block_size)))
    if kind in ("FullAttentionSpec", "MLAAttentionSpec", "SinkFullAttentionSpec"):
        return 0
    raise Unusable(f"expected attention or a sliding window, got {kind} in group {number}: use the tier, terrace.vllm.tier")


def _layer_specs(group: Any) -> dict[str, Any]:
    each = getattr(group.kv_cache_spec, "kv_cache_specs", None)  # layers whose blocks differ in size
    return {name: each[name] if each else group.kv_cache_spec for name in group.layer_names}


def _parts(groups: Sequence[Any], most: int) -> list[Part]:
    parts: list[Part] = []
    offset = 0
    for number, group in enumerate(groups):
        specs = _layer_specs(group)
        names = list(specs)
        count = min(most, len(names))
        for i in range(count):
            layers = names[i * len(names) // count : (i + 1) * len(names) // count]
            parts.append(Part(number, tuple(layers), tuple(specs[name].page_size_bytes for name in layers), offset))
            offset += parts[-1].nbytes
    return parts

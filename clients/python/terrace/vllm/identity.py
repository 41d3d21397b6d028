"""Determines the spaces of an engine's KV: everything that must match for its blocks to be interchangeable.

Reads vLLM's offloading configuration by its attributes, in the forms of versions 0.25 to 0.33.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..spaces import Pool, SpaceSpec
from ..weights import Weights, model_name

CHUNK_TOKENS = 65536  # limit of a space; the value is only displayed, since keys are digests


@dataclass(frozen=True)
class Layout:
    """vLLM's description of its KV."""

    model: str
    dtype: str
    tokens_of_chunk: Sequence[int]  #: tokens per chunk of each group
    details: dict[str, Any]  #: everything else that affects the bytes of a row


def layout_of(spec: Any, row_bytes: int, engine: str) -> Layout:
    """`spec`: vLLM's OffloadingSpec. `engine`: its version and platform; another one may lay out KV differently."""
    config = getattr(spec, "config", None)
    details: dict[str, Any] = {"engine": engine, "row_bytes": row_bytes}
    if config is not None:
        per_chunk = config.cache.blocks_per_chunk
        groups = [(group.tokens_per_block, list(group.layer_names)) for group in config.groups]
        parallel = config.parallel
        details |= {
            "tokens_per_hash": config.cache.tokens_per_hash,
            "parallel": [parallel.world_size, parallel.tp_size, parallel.pp_size, parallel.pcp_size, parallel.dcp_size],
            "replicated": getattr(config, "replicated_layout", False),
            "canonical": getattr(config, "canonical_layout", False),
            "kv_cache_layout": getattr(config, "kv_cache_layout", None),
        }
        model, dtype = config.model.name, config.model.dtype
    else:  # versions before 0.28
        of = spec.vllm_config
        parallel = of.parallel_config
        per_chunk = getattr(spec, "block_size_factor", 1)
        groups = [
            (tokens, list(group.layer_names))
            for tokens, group in zip(spec.gpu_block_size, spec.kv_cache_config.kv_cache_groups)
        ]
        details |= {
            "tokens_per_hash": spec.hash_block_size,
            "parallel": [
                parallel.world_size, parallel.tensor_parallel_size, parallel.pipeline_parallel_size,
                parallel.prefill_context_parallel_size, parallel.decode_context_parallel_size,
            ],
        }
        model, dtype = of.model_config.model, str(of.cache_config.cache_dtype)
        if dtype == "auto":
            dtype = str(of.model_config.dtype)
    details["blocks_per_chunk"] = per_chunk
    details["groups"] = groups
    return Layout(model, dtype.removeprefix("torch."), [tokens * per_chunk for tokens, _ in groups], details)


def specs_of(layout: Layout, row_bytes: int, weights: Weights, salt: str = "") -> list[SpaceSpec]:
    """Returns the space of each group."""
    text = json.dumps({**layout.details, "factors": weights.factors}, sort_keys=True, default=str)
    name = "vllm-" + hashlib.sha256(text.encode()).hexdigest()[:32]
    specs = []
    for group, tokens in enumerate(layout.tokens_of_chunk):
        shown = min(tokens, CHUNK_TOKENS)
        specs.append(
            SpaceSpec(
                model=model_name(layout.model), revision=weights.revision, dtype=layout.dtype, layout=f"{name}-{group}", chunk_tokens=shown,
                hash_block_tokens=shown, salt=salt, pools=[Pool("rows", object_bytes=row_bytes)],
            )
        )
    return specs

"""The hashes that name a request's blocks. vLLM's own begin with the root NONE_HASH, which is random in each process in
some versions (before 0.32 without PYTHONHASHSEED) and with some algorithms (xxhash). Such hashes name nothing for
another engine, so they are made again with a root that all engines have."""

from __future__ import annotations

import contextlib
import inspect
import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

ROOT_SEED = "0"  # engines with PYTHONHASHSEED=0 and the same algorithm have the same hashes
ALGORITHMS = ("sha256", "sha256_cbor")  # those with which nobody finds tokens that have the hash of others

HashOf = Callable[[Any], bytes]


class BlockHashes(Protocol):
    def of(self, request: Any) -> Sequence[bytes]:
        """Returns the hashes of a request's full blocks."""

    def forget(self, request: str) -> None:
        """The request is over."""


class EnginesHashes:
    """The hashes that the engine has made."""

    def of(self, request: Any) -> Sequence[bytes]:
        hashes: Sequence[bytes] = request.block_hashes
        return hashes

    def forget(self, request: str) -> None:
        pass


@dataclass(slots=True)
class _Made:
    hashes: list[bytes] = field(default_factory=list)
    last: bytes = b""  #: the engine's hash of the last block


class HashesOfTokens:
    """Hashes of tokens and of all else that vLLM puts into its keys: adapters, images, salts, embeddings."""

    def __init__(self, utils: Any, hash_of: HashOf, block_tokens: int) -> None:
        """`utils`: vLLM's module kv_cache_utils."""
        self._utils, self._hash_of, self._block_tokens = utils, hash_of, block_tokens
        self._root = hash_of(ROOT_SEED)
        self._made: dict[str, _Made] = {}

    def of(self, request: Any) -> Sequence[bytes]:
        engines = request.block_hashes
        made = self._made.setdefault(request.request_id, _Made())
        count = len(made.hashes)
        if count > len(engines) or (count and engines[count - 1] != made.last):  # the engine has replaced tokens
            made.hashes.clear()
        item = 0
        while len(made.hashes) < len(engines):
            first = len(made.hashes) * self._block_tokens
            end = first + self._block_tokens
            extra, item = self._utils.generate_block_hash_extra_keys(request, first, end, item)
            parent = made.hashes[-1] if made.hashes else self._root
            tokens = request.all_token_ids[first:end]
            made.hashes.append(self._utils.hash_block_tokens(self._hash_of, parent, tokens, extra))
        made.last = engines[-1] if engines else b""
        return made.hashes

    def forget(self, request: str) -> None:
        self._made.pop(request, None)


class HashesOfEngine:
    """Uses the engine's hashes where other engines can make the same, and others otherwise. vLLM chooses its root after
    it has made its connector, so the first request decides."""

    def __init__(self, vllm_config: Any, block_tokens: int, log: logging.Logger) -> None:
        self._config, self._block_tokens, self._log = vllm_config, block_tokens, log
        self._chosen: BlockHashes | None = None

    def of(self, request: Any) -> Sequence[bytes]:
        if self._chosen is None:
            self._chosen = self._choose()
        return self._chosen.of(request)

    def forget(self, request: str) -> None:
        if self._chosen is not None:
            self._chosen.forget(request)

    def _choose(self) -> BlockHashes:
        from vllm.utils.hashing import get_hash_fn_by_name  # type: ignore[import-not-found]
        from vllm.v1.core import kv_cache_utils as utils  # type: ignore[import-not-found]

        if not has_random_root():
            return EnginesHashes()
        hasher = inspect.signature(utils.get_request_block_hasher).parameters
        if "num_hash_lookahead_tokens" in hasher and getattr(self._config, "speculative_config", None) is not None:
            self._log.warning(RANDOM_ROOT)  # these hashes contain tokens of the next block as well
            return EnginesHashes()
        named = str(self._config.cache_config.prefix_caching_hash_algo)
        return HashesOfTokens(utils, get_hash_fn_by_name(named if named in ALGORITHMS else ALGORITHMS[0]), self._block_tokens)


RANDOM_ROOT = (
    "Terrace: KV is not shared beyond this engine: its block hashes begin with a random number; set PYTHONHASHSEED to the "
    'same value for all engines, "0" for example'
)


def has_random_root() -> bool:
    """Returns whether another engine process would give the same tokens other hashes. Called when the engine has
    started."""
    from vllm.utils import hashing  # type: ignore[import-not-found]
    from vllm.v1.core import kv_cache_utils as utils

    seeds = (os.getenv("PYTHONHASHSEED"), getattr(utils, "DEFAULT_NONE_HASH_SEED", None))
    roots: set[bytes | None] = {None}
    for name in (*ALGORITHMS, "xxhash", "xxhash_cbor"):
        with contextlib.suppress(Exception):  # a version without the algorithm, or without its package
            hash_of = hashing.get_hash_fn_by_name(name)
            roots.update(hash_of(seed) for seed in seeds if seed is not None)
    return getattr(utils, "NONE_HASH", None) not in roots  # an engine without hashes has none

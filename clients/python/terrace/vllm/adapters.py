"""Determines the adapter (LoRA) that a request's KV belongs to. vLLM's block hashes contain an adapter's name and
path, but not the contents of its files, so its identity is a tag of all keys of the request."""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Sequence
from typing import Any

from ..weights import Unidentified, identity_of

Tags = Sequence[str]


class Adapters:
    """The adapters of an engine. Only the scheduler needs it: workers get the tags with their orders. The contents
    that vLLM has loaded count, and the files may be different later. So the KV of an adapter whose files changed
    after this engine was started is not shared, because the adapter may have been loaded before; and the KV of one
    whose files change after its first request is no longer cached."""

    def __init__(self, factors: Any, engine: str, log: logging.Logger, *, started: int | None = None) -> None:
        """`factors`: configuration that determines what an adapter does. `engine`: an identity that no other engine
        has. `started`: time in nanoseconds since 1970."""
        self._factors, self._engine, self._log = factors, engine, log
        self._started = time.time_ns() if started is None else started
        self._first: dict[tuple[int, str, str], tuple[str, Tags]] = {}  # identity of the files, and the tags
        self._changed: set[tuple[int, str, str]] = set()

    def tags(self, adapter: Any) -> Tags | None:
        """Returns the tags of a request with this LoRARequest, or with None. None: its KV can be neither loaded nor
        stored."""
        if adapter is None:
            return ()
        key = (int(adapter.lora_int_id), str(adapter.lora_name), str(adapter.lora_path))
        if key in self._changed:
            return None
        why, changed = "", 0
        try:
            identity = identity_of(key[2])
            digest, changed = identity.digest, identity.changed
        except Unidentified as problem:
            digest, why = "", str(problem)
        known = self._first.get(key)
        if known is None:
            if not why and changed >= self._started:
                why = "its files are younger than this engine, which may have loaded others before"
            if why:
                self._log.warning("Terrace: KV of the adapter %r is not shared beyond this engine: %s", key[1], why)
            known = self._first[key] = (digest, (self._tag([self._engine, *key] if why else [], digest),))
        if known[0] != digest:
            self._changed.add(key)
            self._log.warning("Terrace: KV of the adapter %r is not cached until the engine is started again: the files in %s "
                              "have changed since its first request", key[1], key[2])
            return None
        return known[1]

    def _tag(self, private: Sequence[Any], digest: str) -> str:
        text = json.dumps([private, digest, self._factors], sort_keys=True)
        return "adapter-" + hashlib.sha256(text.encode()).hexdigest()[:32]

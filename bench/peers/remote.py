"""What is measured of two servers over one remote store, a redis-server: transfers, lookups and a burst."""

from __future__ import annotations

import itertools
import os
import statistics
import time

from peer import CHUNKS, LARGE, Contents, Figures, Peer, processor_seconds, tokens_of, wipe
from store import SECONDS, Store

UNKNOWN = 5  # prompts per round that nobody has stored
GIGABYTES = CHUNKS * LARGE.chunk_bytes / 1e9


class Spent:
    """Counts the processor time of the cache server, of its client and of redis-server since its beginning."""

    def __init__(self, peer: Peer, store: Store) -> None:
        self._pids = {"server": peer.pid, "client": os.getpid(), "redis": store.pid}
        self._before = self._now()

    def per_gigabyte(self, what: str) -> Figures:
        now = self._now()
        spent = {who: (now[who] - self._before[who]) / GIGABYTES for who in self._pids}
        spent["both"] = spent["server"] + spent["client"]
        return {f"{what}_cpu_s_per_GB_{who}": spent[who] for who in ("server", "client", "both", "redis")}

    def _now(self) -> Figures:
        return {who: processor_seconds(pid) for who, pid in self._pids.items()}


def await_values(peer: Peer, store: Store, before: int, chunks: int) -> None:
    end = time.monotonic() + SECONDS
    while store.keys() - before < chunks * peer.values_per_chunk:
        assert time.monotonic() < end, f"{peer.name} has written {store.keys() - before} values"
        time.sleep(0.002)


def await_rest(store: Store) -> None:
    """Returns when nothing was written for two seconds: a server may have given up some of what it wanted to write."""
    known = -1
    while known != store.keys():
        known = store.keys()
        time.sleep(2)


class Remotes:
    """Measures transfers of a prompt's KV to a store that is empty before, and from there to the client. Lookups come
    first: of prompts that the store does not have, and of the one that only the store has."""

    def __init__(self, store: Store) -> None:
        self._store, self._contents = store, Contents(LARGE)
        self._prompts = itertools.count(1)

    def __call__(self, peer: Peer, tokens: list[int]) -> Figures:
        prompt = next(self._prompts)
        request = [prompt, *tokens[1:]]
        peer.forget()
        self._store.empty()
        unknown = statistics.median(self._unknown(peer, tokens) for _ in range(UNKNOWN))
        stored = self._store_all(peer, prompt, request)
        return {"lookup_of_unknown_ms": unknown * 1e3, **stored, **self._load_all(peer, prompt, request)}

    def _unknown(self, peer: Peer, tokens: list[int]) -> float:
        request = peer.request([next(self._prompts), *tokens[1:]])
        began = time.perf_counter()
        found = peer.lookup(request)
        took = time.perf_counter() - began
        peer.release()
        assert found == 0, f"{peer.name} found {found} chunks of a prompt that nobody has stored"
        return took

    def _store_all(self, peer: Peer, prompt: int, tokens: list[int]) -> Figures:
        self._contents.write(peer.kv())
        self._contents.number(peer.kv(), prompt, CHUNKS)
        request, before = peer.request(tokens), self._store.keys()
        spent, began = Spent(peer, self._store), time.perf_counter()
        assert peer.store(request), f"{peer.name} refused a store"
        answered = time.perf_counter() - began
        await_values(peer, self._store, before, CHUNKS)
        stored = time.perf_counter() - began
        figures = spent.per_gigabyte("store")
        return {"store_answered_ms": answered * 1e3, "store_GBps": GIGABYTES / stored, **figures}

    def _load_all(self, peer: Peer, prompt: int, tokens: list[int]) -> Figures:
        peer.forget_memory(peer.request(tokens))
        wipe(peer.kv())
        request = peer.request(tokens)
        began = time.perf_counter()
        counted = peer.count(request)
        count = time.perf_counter() - began
        request, read = peer.request(tokens), self._store.values_read()
        spent, began = Spent(peer, self._store), time.perf_counter()
        found = peer.lookup(request)
        looked_up = time.perf_counter() - began
        peer.load()
        loaded = time.perf_counter() - began
        figures = spent.per_gigabyte("load")
        assert self._store.values_read() - read >= found * peer.values_per_chunk, f"{peer.name} had it in memory"
        return {
            "count_ms": count * 1e3, "lookup_ms": looked_up * 1e3, "load_GBps": GIGABYTES / loaded, **figures,
            "counted_chunks": counted, "found_chunks": found,
            "equal_chunks": self._contents.equal_chunks(peer.kv(), prompt, CHUNKS),
        }


def overfilled_remote(peer: Peer, store: Store) -> Figures:
    """Stores 16 prompts of 128 MiB, one after the other, in a server of 1 GiB with an empty store, and counts what comes
    back afterwards with all its bytes."""
    chunks, contents = 32, Contents(LARGE)
    prompts = {number: tokens_of(2000 + number, chunks) for number in range(16)}
    store.empty()
    peer.lookup(peer.request(prompts[0]))  # a server may need values of its own there
    peer.release()
    contents.write(peer.kv())
    accepted, before = 0, store.keys()
    for number, tokens in prompts.items():
        contents.number(peer.kv(), number, chunks)
        accepted += peer.store(peer.request(tokens))
    await_rest(store)
    chunks_there = (store.keys() - before) // peer.values_per_chunk
    whole, equal = 0, 0
    for number, tokens in prompts.items():
        wipe(peer.kv())
        if peer.lookup(peer.request(tokens)) != chunks:
            peer.release()
            continue
        whole += 1
        peer.load()
        equal += contents.equal_chunks(peer.kv(), number, chunks) == chunks
    return {
        "stores_answered_with_success": accepted, "prompts_in_redis": chunks_there / chunks,
        "whole_prompts_afterwards": whole, "of_these_with_equal_bytes": equal,
    }

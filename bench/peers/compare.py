"""Measures two servers in alternation and prints a line of JSON for each figure, and a table."""

from __future__ import annotations

import json
import os
import platform
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

import lmcache
import terrace
from lmcache_peer import LmcachePeer
from peer import CHUNKS, LARGE, SMALL, Figures, Peer, Shape, processor_seconds, tokens_of
from remote import Remotes, overfilled_remote
from store import Store
from terrace_peer import TerracePeer

ROUNDS = 5
LOOKUPS = 40  # per round


def pair(shape: Shape, host_gib: float, disk: str = "", store: Store | None = None) -> list[Peer]:
    return [TerracePeer(shape, host_gib, disk, store), LmcachePeer(shape, host_gib, disk, store)]


def lookups(peer: Peer, tokens: list[int]) -> Figures:
    return _lookups(peer, [peer.request(tokens) for _ in range(LOOKUPS)])


def lookups_of_vllm(peer: Peer, tokens: list[int]) -> Figures:
    return _lookups(peer, [peer.request_of_vllm(tokens) for _ in range(LOOKUPS)])


def _lookups(peer: Peer, requests: Sequence[Any]) -> Figures:
    """Measures a lookup that locks what it finds, and the release of that: the cost of each admitted request."""
    took: list[float] = []
    released: list[float] = []
    server, client = processor_seconds(peer.pid), processor_seconds(os.getpid())
    for request in requests:
        began = time.perf_counter()
        found = peer.lookup(request)
        took.append(time.perf_counter() - began)
        assert found == CHUNKS, f"{peer.name} found {found} of {CHUNKS} chunks"
        began = time.perf_counter()
        peer.release()
        released.append(time.perf_counter() - began)
    return {
        "lookup_ms": statistics.median(took) * 1e3,
        "release_ms": statistics.median(released) * 1e3,
        "server_cpu_ms": (processor_seconds(peer.pid) - server) / LOOKUPS * 1e3,
        "client_cpu_ms": (processor_seconds(os.getpid()) - client) / LOOKUPS * 1e3,
    }


def transfers(peer: Peer, tokens: list[int]) -> Figures:
    """Measures transfers of a prompt's KV to the server and back; processor time is that of both processes."""
    gigabytes = CHUNKS * LARGE.chunk_bytes / 1e9
    spent = lambda: processor_seconds(peer.pid) + processor_seconds(os.getpid())  # noqa: E731
    request, again = peer.request(tokens), peer.request(tokens)
    before, began = spent(), time.perf_counter()
    assert peer.store(request), f"{peer.name} refused a store"
    stored, after_store = time.perf_counter() - began, spent()
    while peer.lookup(again) != CHUNKS:  # a server may answer before it has everything
        peer.release()
        again = peer.request(tokens)
    between, began = spent(), time.perf_counter()
    peer.load()
    loaded, after_load = time.perf_counter() - began, spent()
    peer.forget()
    return {
        "store_GBps": gigabytes / stored, "load_GBps": gigabytes / loaded,
        "store_cpu_s_per_GB": (after_store - before) / gigabytes, "load_cpu_s_per_GB": (after_load - between) / gigabytes,
    }


class Disks:
    """Measures transfers of a prompt's KV to disk, and from there to the client, with the lookup."""

    def __init__(self) -> None:
        self._stored: dict[str, int] = {}

    def __call__(self, peer: Peer, tokens: list[int]) -> Figures:
        gigabytes = CHUNKS * LARGE.chunk_bytes / 1e9
        number = self._stored[peer.name] = self._stored.get(peer.name, 0) + 1
        prompt = [number, *tokens[1:]]
        began = time.perf_counter()
        assert peer.store(peer.request(prompt)), f"{peer.name} refused a store"
        peer.await_disk(number, CHUNKS)
        stored = time.perf_counter() - began
        request = peer.request(prompt)
        peer.forget_memory(request)
        began = time.perf_counter()
        found = peer.lookup(request)
        assert found == CHUNKS, f"{peer.name} found {found} of {CHUNKS} chunks"
        peer.load()
        return {"store_GBps": gigabytes / stored, "load_GBps": gigabytes / (time.perf_counter() - began)}


def overfilled(peer: Peer) -> Figures:
    """Stores 32 prompts of 128 MiB, one after the other, in a server of 1 GiB, and counts what is there
    afterwards."""
    chunks = 32
    prompts = [tokens_of(1000 + number, chunks) for number in range(32)]
    accepted = sum(peer.store(peer.request(tokens)) for tokens in prompts)
    whole, newest = 0, 0
    for number, tokens in enumerate(prompts):
        found = peer.lookup(peer.request(tokens))
        peer.release()
        whole += found == chunks
        newest += found == chunks and number >= 24
    return {"stores_answered_with_success": accepted, "whole_prompts_afterwards": whole, "of_the_newest_8": newest}


Measure = Callable[[Peer, list[int]], Figures]


def alternate(peers: Sequence[Peer], measure: Measure, prompt: int, rounds: int = ROUNDS) -> dict[str, list[Figures]]:
    tokens = tokens_of(prompt, CHUNKS)
    taken: dict[str, list[Figures]] = {peer.name: [] for peer in peers}
    for number in range(rounds + 1):
        for peer in peers:
            one = measure(peer, tokens)
            if number != 0:  # the first round warms up
                taken[peer.name].append(one)
    return taken


def report(what: str, of: dict[str, list[Figures]], table: list[list[str]]) -> None:
    names = list(of)
    for figure in of[names[0]][0]:
        values = {name: [one[figure] for one in of[name]] for name in names}
        medians = {name: statistics.median(values[name]) for name in names}
        line: dict[str, Any] = {"benchmark": f"peers_{what}", "figure": figure}
        for name in names:
            line[name] = {"median": medians[name], "least": min(values[name]), "most": max(values[name])}
        print(json.dumps(line), flush=True)
        cells = [f"{medians[name]:.3g} ({min(values[name]):.3g} to {max(values[name]):.3g})" for name in names]
        table.append([f"{what}: {figure}", *cells])


def compare_remote(table: list[list[str]]) -> None:
    store = Store()
    print(f"redis-server {store.version}", flush=True)
    peers = pair(LARGE, 3, store=store)
    report("remote", alternate(peers, Remotes(store), 4), table)
    for peer in peers:
        peer.close()

    peers = pair(LARGE, 1, store=store)
    report("remote_overfilled", {peer.name: [overfilled_remote(peer, store)] for peer in peers}, table)
    for peer in peers:
        peer.close()
    store.close()


def main() -> None:
    table: list[list[str]] = [["", "terrace", "lmcache"]]
    peers = pair(SMALL, 2)
    for peer in peers:
        assert peer.store(peer.request(tokens_of(1, CHUNKS)))
    report("lookup", alternate(peers, lookups, 1), table)
    report("vllm_lookup", alternate(peers, lookups_of_vllm, 1), table)
    for peer in peers:
        peer.close()

    peers = pair(LARGE, 3)
    report("transfer", alternate(peers, transfers, 2), table)
    for peer in peers:
        peer.close()

    with tempfile.TemporaryDirectory(prefix="terrace-peers-") as folder:
        peers = pair(LARGE, 3, folder)
        report("disk", alternate(peers, Disks(), 3, 3), table)
        for peer in peers:
            peer.close()

    peers = pair(LARGE, 1)
    report("overfilled", {peer.name: [overfilled(peer)] for peer in peers}, table)
    for peer in peers:
        peer.close()

    if shutil.which("redis-server"):
        compare_remote(table)
    else:
        print("no redis-server on this machine; install the package `redis-server` to compare with a remote store")

    print(f"\n{platform.processor() or platform.machine()}, {os.cpu_count()} processors, {platform.release()}, "
          f"Python {platform.python_version()}, terrace {terrace.__version__}, lmcache {lmcache.__version__}, "
          f"load average {os.getloadavg()[0]:.1f}\n")
    widths = [max(len(row[column]) for row in table) for column in range(3)]
    for row in table:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


if __name__ == "__main__":
    sys.exit(main())

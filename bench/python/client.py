"""Compares the Python client with libterrace, and measures vLLM's tier: client.py FIGURE"""

from __future__ import annotations

import array
import asyncio
import mmap
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import terrace
import terrace.aio
import torch
from daemon import PATIENCE, Daemon
from figures import Beside, place, report
from terrace.link import HostPool, await_readable
from terrace.shared import memory_of
from terrace.vllm.cache import PoolCache
from terrace.vllm.plan import Part, Plan
from waiting import until

ROUNDS = 5
LOAD_ROUNDS = 50
LOOKUPS = 3000
CHUNKS = 128
SMALL = 4096
LARGE = 4 << 20
OBJECTS = 64
DEPTH = 4


def daemon_with(host_bytes: int) -> Daemon:
    """Configures the daemon like those of ./bench/run, by default except for the disk."""
    return Daemon(host_bytes, workers=0, metrics=True)


def spec_of(object_bytes: int) -> terrace.SpaceSpec:
    """Opens the same space as space_of in bench/workload.cpp."""
    return terrace.SpaceSpec(model="bench", dtype="bf16", layout="opaque", pools=[terrace.Pool("kv", object_bytes=object_bytes)])


def chain_of(count: int, seed: int) -> list[bytes]:
    return [seed.to_bytes(4, "big") + i.to_bytes(28, "big") for i in range(count)]


def store(daemon: terrace.Connection, space: terrace.Space, chain: list[bytes], object_bytes: int) -> None:
    memory = terrace.Memory(object_bytes)
    with daemon.register_region(memory, timeout=PATIENCE) as region:
        for i in range(len(chain)):
            what = terrace.Prefix.of_digests(chain[: i + 1])
            daemon.store(space, what, region, [(0, object_bytes)], first_chunk=i, timeout=PATIENCE)


def microseconds(count: int, work: Callable[[], object]) -> list[float]:
    taken = []
    for _ in range(count):
        began = time.perf_counter_ns()
        work()
        taken.append((time.perf_counter_ns() - began) / 1e3)
    return taken


def python_lookup() -> None:
    """Measures with client and daemon where the kernel puts them, on one processor, and on two; the limit
    likewise."""
    server = daemon_with(256 << 20)
    places = {"": range(os.cpu_count() or 1), "_one_cpu": [0], "_two_cpus": [1]}  # processors of the daemon
    blocking: dict[str, list[float]] = {where: [] for where in places}
    awaited: dict[str, list[float]] = {where: [] for where in places}
    limits: dict[str, list[float]] = {where: [] for where in places}
    try:
        chain = chain_of(CHUNKS, 1)
        digests = b"".join(chain)
        with terrace.connect(server.socket, timeout=PATIENCE) as daemon:
            space = daemon.open_space(spec_of(SMALL), timeout=PATIENCE)
            store(daemon, space, chain, SMALL)

            libterrace = Beside(server.socket, SMALL, chain)

            def ask() -> None:
                assert daemon.lookup(space, terrace.Prefix.of_digests(digests)).found_chunks == CHUNKS

            for _ in range(ROUNDS):
                for where, processors in places.items():
                    for process in (os.getpid(), libterrace.pid):
                        place(process, [0] if where else processors)
                    place(server.process.pid, processors)
                    limits[where].append(libterrace.measure())
                    microseconds(500, ask)
                    blocking[where].append(median(microseconds(LOOKUPS, ask)))
                    awaited[where].append(median(asyncio.run(await_lookups(server.socket, digests))))
                place(os.getpid(), places[""])
            libterrace.close()
    finally:
        server.stop()
    for where in places:
        report(f"python_lookup{where}_p50", "us", blocking[where], limits[where])
        report(f"python_lookup_asyncio{where}_p50", "us", awaited[where], limits[where])


async def await_lookups(socket: str, digests: bytes) -> list[float]:
    taken = []
    async with await terrace.aio.connect(socket, timeout=PATIENCE) as daemon:
        space = await daemon.open_space(spec_of(SMALL), timeout=PATIENCE)
        for i in range(LOOKUPS + 500):
            began = time.perf_counter_ns()
            found = await daemon.lookup(space, terrace.Prefix.of_digests(digests))
            assert found.found_chunks == CHUNKS
            if i >= 500:
                taken.append((time.perf_counter_ns() - began) / 1e3)
    return taken


def python_load() -> None:
    """Takes a lease; this process copies its objects into a tensor in shared memory. The limit is libterrace
    doing the same with the same objects and the same memory, in turns."""
    server = daemon_with(1 << 30)
    values: list[float] = []
    limits: list[float] = []
    try:
        with terrace.connect(server.socket, timeout=PATIENCE) as daemon:
            space = daemon.open_space(spec_of(LARGE), timeout=PATIENCE)
            chain = chain_of(OBJECTS, 2)
            store(daemon, space, chain, LARGE)
            prefix = terrace.Prefix.of_digests(chain)
            tensor = torch.empty(DEPTH, LARGE, dtype=torch.uint8).share_memory_()

            rows = list(tensor)

            def load() -> float:
                began = time.perf_counter()
                found = daemon.lookup(space, prefix, lease=True)
                assert found.found_chunks == OBJECTS and found.lease is not None
                with found.lease as lease:
                    for first in range(0, OBJECTS, DEPTH):
                        daemon.load_under_lease(lease, rows, first_chunk=first, chunks=DEPTH)
                return OBJECTS * LARGE / 1e9 / (time.perf_counter() - began)

            with memory_of(tensor) as memory:
                libterrace = Beside(server.socket, LARGE, chain, memory.descriptor)
                load(), libterrace.measure()
                for _ in range(LOAD_ROUNDS):
                    values.append(load())
                    limits.append(libterrace.measure())
                libterrace.close()
    finally:
        server.stop()
    report("python_load", "GB/s", values, limits)


def vllm_tier_submit() -> None:
    """Measures the time in the scheduler's thread for 128 blocks; the daemon has its own processor."""
    row, rows, turns = 16 << 10, 128, 2000
    server = daemon_with(64 << 20)
    path = f"/dev/shm/terrace-bench-{os.getpid()}"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.ftruncate(descriptor, rows * row)
        pool = mmap.mmap(descriptor, rows * row)
        cache = PoolCache(server.socket, [spec_of(row)], HostPool(descriptor, rows * row, 0, row), name="bench")
        while not cache.connected:
            time.sleep(0.01)
        place(os.getpid(), [0])
        place(server.process.pid, [1])
        numbers = array.array("i", range(rows))
        names = ("lookup", "flush", "submit_store", "submit_load", "finished")
        percentiles: dict[str, list[list[float]]] = {name: [] for name in names}
        taken: dict[str, list[float]] = {}

        def timed(name: str, call: Callable[[], object]) -> object:
            began = time.perf_counter_ns()
            result = call()
            taken[name].append((time.perf_counter_ns() - began) / 1e3)
            return result

        for turn in range(ROUNDS * turns):
            if turn % turns == 0:
                taken = {name: [] for name in names}
            keys = [(1000 * turn + i).to_bytes(32, "big") + bytes(4) for i in range(rows)]
            timed("lookup", lambda: [cache.lookup(key, "r") for key in keys])
            timed("flush", cache.flush)
            for name, what in (("submit_store", cache.store), ("submit_load", cache.load)):
                timed(name, lambda: what(turn, keys, numbers, "r"))
                while not timed("finished", cache.finished):
                    time.sleep(0.0005)  # a step of the engine
            cache.forget("r")
            if turn % turns == turns - 1:
                for name in names:
                    percentiles[name].append(quantiles(taken[name], n=100))
        for name, rounds in percentiles.items():
            report(f"vllm_tier_{name}_p50", "us", [one[49] for one in rounds])
            report(f"vllm_tier_{name}_p99", "us", [one[98] for one in rounds])
        cache.close()
        pool.close()
    finally:
        os.unlink(path)
        server.stop()


def connector_plan(chunk_tokens: int) -> Plan:
    """Four parts of a layer with 64 bytes each."""
    parts = [Part(0, (f"layer{i}",), (64,), 64 * i) for i in range(4)]
    spec = terrace.SpaceSpec(
        model="bench", dtype="u8", layout="connector", chunk_tokens=chunk_tokens, hash_block_tokens=chunk_tokens,
        pools=tuple(terrace.Pool(f"part{i}", object_bytes=64) for i in range(4)),
    )
    return Plan(spec, chunk_tokens, 1, (0,), parts, 256, 1)


def vllm_connector() -> None:
    """Measures the processor time of both sides of vLLM's connector for a prompt of 32,768 tokens: a store of it, and a warm load between
    steps. Its blocks are as small as can be, so that no bytes count; in vLLM scheduler and worker are threads or processes."""
    from vllm_connector_test import CHUNK, Engine, Request  # stands in for vLLM

    blocks = 32_768 // CHUNK
    server = daemon_with(256 << 20)
    try:
        engine = Engine(server.socket, connector_plan(CHUNK), slots=blocks, layered=False, blocks=blocks + 1)
        engine.connect()
        every = [list(range(1, blocks + 1))] * engine.groups  # 0 is none
        taken: dict[str, list[float]] = {}

        def timed(name: str, call: Callable[[], Any]) -> Any:
            began = time.thread_time_ns()
            result = call()
            taken.setdefault(name, []).append((time.thread_time_ns() - began) / 1e3)
            return result

        def sums(*names: str) -> list[float]:
            return [sum(times) for times in zip(*(taken[name] for name in names), strict=True)]

        for turn in range(ROUNDS * 20):
            request = Request("r", blocks, seed=turn)
            timed("store: lookup", lambda: engine.scheduler.matched(request, 0))
            until(lambda: engine.scheduler.matched(request, 0)[0] is not None)
            engine.scheduler.allocated(request, every, 0)
            _, stores = timed("store: order", lambda: engine.orders(request, every, 0, blocks * CHUNK))
            engine.worker.prepare(*engine.scheduler.overwritten())
            engine.worker.begin([])
            timed("store: save", lambda: engine.worker.save(stores, 0))
            assert engine.worker.drain(PATIENCE)
            engine.report()
            engine.scheduler.finished("r")
            timed("load: lookup", lambda: engine.scheduler.matched(request, 0))
            until(lambda: engine.scheduler.matched(request, 0)[0] is not None)
            found, _ = timed("load: answer", lambda: engine.scheduler.matched(request, 0))
            assert found == blocks * CHUNK, found
            timed("load: allocate", lambda: engine.scheduler.allocated(request, every, found))
            loads, _ = timed("load: order", lambda: engine.orders(request, every, found, 0))
            engine.worker.prepare(*engine.scheduler.overwritten())
            timed("load: begin", lambda: engine.worker.begin(loads))
            received: set[str] = set()
            spent = 0
            while "r" not in received:
                await_readable([engine.worker._link.session.descriptor])  # type: ignore[union-attr]
                began = time.thread_time_ns()
                received |= engine.worker.received()[0]
                spent += time.thread_time_ns() - began
            taken.setdefault("load: receive", []).append(spent / 1e3)
            engine.report()
            engine.scheduler.finished("r")
        for name in ("store", "load"):
            parts = [part for part in taken if part.startswith(name)]
            report(f"vllm_connector_{name}", "us", sums(*parts), **{part.split(": ")[1]: round(median(taken[part]), 1) for part in parts})
        engine.close()
    finally:
        server.stop()


def turn_lookup() -> None:
    """Compares the lookup of a turn with 32,768 tokens in blocks of 16, of which 512 are new, by the digests that vLLM has of it, as its
    connector sends it, and by a session of the daemon, which hashes the new tokens itself. Time to the answer, processor time of this
    thread and of the daemon. Both take a lease; each turn is another one, and what it looks for is there."""
    block, turns, new = 16, 32, 512
    blocks = 32_768 // block
    server = daemon_with(256 << 20)
    spec = terrace.SpaceSpec(model="bench", dtype="bf16", layout="turns", chunk_tokens=block, hash_block_tokens=block,
                             pools=[terrace.Pool("kv", object_bytes=64)])

    def of_daemon() -> float:
        """Microseconds that its threads have run."""
        threads = Path(f"/proc/{server.process.pid}/task").glob("*/schedstat")
        return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e3

    try:
        with terrace.connect(server.socket, timeout=PATIENCE) as daemon:
            space = daemon.open_space(spec, timeout=PATIENCE)
            memory = terrace.Memory(blocks * 64)
            region = daemon.register_region(memory, timeout=PATIENCE)
            runs = terrace.Rows(range(blocks), 64)
            figures: dict[str, list[float]] = {}
            for repeat in range(ROUNDS * 2):
                conversation = [1000 * repeat + i for i in range(32_768)]
                daemon.store(space, conversation, region, runs, timeout=PATIENCE)
                found = daemon.lookup(space, conversation, digests=True, timeout=PATIENCE)
                assert found.found_chunks == blocks and found.digests is not None
                digests = list(found.digests)
                session = daemon.open_session(space, timeout=PATIENCE)
                daemon.lookup_turn(session, conversation[: 32_768 - new * turns], 0, timeout=PATIENCE)

                def by_digests(end: int) -> terrace.Lookup:
                    return daemon.lookup(space, terrace.Prefix.of_digests(digests[: end // block]), lease=True)

                def by_session(end: int) -> terrace.Lookup:
                    return daemon.lookup_turn(session, conversation[:end], end - new, lease=True)

                for name, ask in (("digests", by_digests), ("session", by_session)):
                    cpu, busy, latencies = 0, of_daemon(), []
                    for turn in range(turns):
                        end = 32_768 - new * (turns - 1 - turn)
                        began, spent = time.perf_counter_ns(), time.thread_time_ns()
                        answer = ask(end)
                        latencies.append((time.perf_counter_ns() - began) / 1e3)
                        cpu += time.thread_time_ns() - spent
                        assert answer.found_chunks == end // block and answer.lease is not None
                        answer.lease.release()
                    figures.setdefault(name, []).append(median(latencies))
                    figures.setdefault(f"{name} client", []).append(cpu / turns / 1e3)
                    figures.setdefault(f"{name} daemon", []).append((of_daemon() - busy) / turns)
                session.close()
            for name in ("digests", "session"):
                report(f"turn_lookup_{name}", "us", figures[name], client_us=round(median(figures[f"{name} client"]), 1),
                       daemon_us=round(median(figures[f"{name} daemon"]), 1))
    finally:
        server.stop()


if __name__ == "__main__":
    {"python_lookup": python_lookup, "python_load": python_load, "vllm_tier_submit": vllm_tier_submit,
     "vllm_connector": vllm_connector, "turn_lookup": turn_lookup}[sys.argv[1]]()

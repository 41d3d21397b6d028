"""Both sides of the connector with a real daemon and KV in arrays; `Engine` plays vLLM's part."""

from __future__ import annotations

import os
import tempfile
import time
import unittest
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy
import terrace
from daemon import PATIENCE, Daemon
from terrace.vllm.adapters import Adapters
from terrace.vllm.orders import Report
from terrace.vllm.plan import Part, Plan
from terrace.vllm.scheduler_side import SchedulerSide
from terrace.vllm.staging import COUNTERS_BYTES, HostStaging, Staging
from terrace.vllm.stores import REASONS
from terrace.vllm.worker_side import Limits, WorkerSide

CHUNK = 16
BLOCKS = 64
BYTES = {"a": 4096, "b": 4096, "c": 8192}  # bytes of a block in each layer


def plan_with(trailing: Sequence[int] = (0,)) -> Plan:
    """Makes a plan. One group: two pools, of two layers and of one. Two groups: the second has layer c, and needs the
    end of a prefix."""
    last = len(trailing) - 1
    parts = [Part(0, ("a", "b"), (4096, 4096), 0), Part(last, ("c",), (8192,), 8192)]
    rules = [terrace.HitRule.TRAILING_CHUNKS if trailing[part.group] else terrace.HitRule.ALL_CHUNKS for part in parts]
    pools = tuple(terrace.Pool(f"p{i}", object_bytes=part.nbytes, rule=rules[i], trailing=trailing[part.group] or 1)
                  for i, part in enumerate(parts))
    spec = terrace.SpaceSpec(model="m", dtype="u8", layout=f"connector {trailing}", chunk_tokens=CHUNK,
                             hash_block_tokens=CHUNK, pools=pools)
    return Plan(spec, CHUNK, 1, trailing, parts, 16384, 1)


class ArrayMover:
    def __init__(self, plan: Plan, memory: terrace.Memory, blocks: int = BLOCKS) -> None:
        self.plan = plan
        sizes = {name: size for part in plan.parts for name, size in zip(part.layers, part.layer_bytes)}
        self.kv = {name: numpy.zeros((blocks, size), numpy.uint8) for name, size in sizes.items()}
        slots = (memory.nbytes - COUNTERS_BYTES) // plan.slot_bytes
        staging = numpy.frombuffer(memoryview(memory), numpy.uint8)[COUNTERS_BYTES:].reshape(slots, plan.slot_bytes)
        self.places: dict[str, tuple[int, numpy.ndarray]] = {}
        for part in plan.parts:
            at = part.offset
            for name, size in zip(part.layers, part.layer_bytes):
                self.places[name] = (part.group, staging[:, at:at + size])
                at += size

    def rows(self, blocks: Sequence[int]) -> numpy.ndarray:
        return numpy.asarray(blocks)

    def gather(self, rows: Sequence[numpy.ndarray], slot: int) -> None:
        for name, (group, places) in self.places.items():
            places[slot:slot + len(rows[group])] = self.kv[name][rows[group]]

    def scatter(self, layer: str, rows: numpy.ndarray, slot: int) -> None:
        self.kv[layer][rows] = self.places[layer][1][slot:slot + len(rows)]

    def put(self, layer: str, block: int, data: bytes) -> None:
        self.kv[layer][block] = numpy.frombuffer(data, numpy.uint8)

    def get(self, layer: str, block: int) -> bytes:
        return bytes(self.kv[layer][block])


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("not within the patience of a test")
        time.sleep(0.001)


def content(digest: bytes, layer: str) -> bytes:
    return bytes(numpy.resize(numpy.frombuffer(digest + layer.encode(), numpy.uint8), BYTES[layer]))


class Request:
    """A vLLM request of this many chunks and one more token, whose hashes begin with `seed`."""

    def __init__(self, name: str, chunks: int, seed: int = 1) -> None:
        self.request_id = name
        self.num_tokens = chunks * CHUNK + 1
        self.lora_request: Any = None
        self.block_hashes = [seed.to_bytes(4, "big") + i.to_bytes(28, "big") for i in range(chunks)]


class Engine:
    def __init__(self, socket: str, plan: Plan | None = None, *, slots: int = 32, layered: bool = True,
                 lookup: float = PATIENCE, load: float = PATIENCE, workers_socket: str = "", name: str = "engine",
                 keeps: bool = True, blocks: int = BLOCKS) -> None:
        self.plan, self.blocks = plan or plan_with(), blocks
        log = __import__("logging").getLogger("terrace.vllm")
        self.scheduler = SchedulerSide(socket, self.plan, name="test", lookup_seconds=lookup, layered=layered, log=log, load_seconds=load,
                                       adapters=Adapters(None, name, log, started=2**62))
        self.worker = WorkerSide(
            workers_socket or socket, self.plan, self.staging(slots), name="test", limits=Limits(load=load), log=log, keeps=keeps
        )
        self.groups = self.plan.groups

    def staging(self, slots: int) -> Staging:
        memory = terrace.Memory(COUNTERS_BYTES + slots * self.plan.slot_bytes)
        self.mover: Any = ArrayMover(self.plan, memory, self.blocks)
        return HostStaging(self.plan, memory, self.mover)

    def connect(self) -> None:
        until(lambda: self.scheduler.connected and self.worker.connected)

    def close(self) -> None:
        self.scheduler.close()
        self.worker.close()

    def fill(self, request: Request, blocks: Sequence[int]) -> None:
        """Writes KV that shows its chunk."""
        for name in BYTES:
            for digest, block in zip(request.block_hashes, blocks):
                self.mover.put(name, block, content(digest, name))

    def wipe(self, byte: int = 0) -> None:
        for name, size in BYTES.items():
            for block in range(BLOCKS):
                self.mover.put(name, block, bytes([byte]) * size)

    def touched(self, layer: str, block: int) -> bool:
        """Returns whether the block was written since `wipe`."""
        return any(self.mover.get(layer, block))

    def has(self, request: Request, chunk: int, block: int, layers: str = "abc") -> bool:
        digest = request.block_hashes[chunk]
        return all(self.mover.get(name, block) == content(digest, name) for name in layers)

    def matched(self, request: Request, computed: int = 0) -> tuple[int | None, bool]:
        answers: list[tuple[int | None, bool]] = []

        def known() -> bool:
            answers.append(self.scheduler.matched(request, computed))
            if answers[-1][0] is None:
                self.report()  # the report of the step that vLLM makes meanwhile
            return answers[-1][0] is not None

        until(known)
        return answers[-1]

    def step(self, request: Request, blocks: Sequence[Sequence[int]], computed: int, scheduled: int,
             wait_for: str = "abc", between: Callable[[], None] = lambda: None) -> tuple[set[str], set[str]]:
        """Runs a request's first step in the engine. `between` runs before the worker gets its orders."""
        loads, stores = self.orders(request, blocks, computed, scheduled)
        seen = self.scheduler.failures_seen
        between()
        self.worker.prepare(*self.scheduler.overwritten())
        self.worker.begin(loads, self.scheduler.endings())
        for name in wait_for if scheduled else "":
            self.worker.layer(name)
        self.worker.save(stores, seen)
        received = self.worker.received()
        self.report()
        return received

    def loads(self, request: Request, blocks: Sequence[Sequence[int]]) -> list[Any]:
        """Returns the orders of a step that loads all of the request except its last token."""
        return list(self.orders(request, blocks, len(request.block_hashes) * CHUNK, 1)[0])

    def orders(self, request: Request, blocks: Sequence[Sequence[int]], computed: int, scheduled: int) -> tuple[Any, Any]:
        taken = tuple(list(of_group) for of_group in blocks)
        new = SimpleNamespace(req_id=request.request_id, block_ids=taken, num_computed_tokens=computed)
        output = SimpleNamespace(
            scheduled_new_reqs=[new] if scheduled else [], num_scheduled_tokens={request.request_id: scheduled},
            scheduled_cached_reqs=SimpleNamespace(req_ids=[], resumed_req_ids=set(), new_block_ids=[], num_computed_tokens=[]),
        )
        return self.scheduler.orders(output)

    def between_steps(self, request: Request, blocks: Sequence[Sequence[int]],
                      between: Callable[[], None] = lambda: None) -> set[str]:
        """Runs the steps of a load between steps, and returns the requests whose load has failed."""
        received, failed = self.step(request, blocks, 0, 0, between=between)
        end = time.monotonic() + PATIENCE
        while request.request_id not in received:
            if time.monotonic() > end:
                raise AssertionError("a load did not end")
            more, lost = self.worker.received()
            received, failed = received | more, failed | lost
        self.report()
        return failed

    def report(self) -> None:
        self.scheduler.reported(self.worker.report())

    def empty_step(self) -> None:
        """A step without tokens, as vLLM makes it while the connector has work."""
        self.worker.prepare(*self.scheduler.overwritten())
        self.worker.begin([], self.scheduler.endings())
        self.worker.save([], self.scheduler.failures_seen)
        self.worker.received()
        self.report()

    def compute(self, request: Request, blocks: Sequence[int]) -> None:
        """Computes the request without a lookup, and stores it."""
        self.fill(request, blocks)
        every = [list(blocks)] * self.groups
        self.scheduler.allocated(request, every, 0)
        self.step(request, every, 0, len(blocks) * CHUNK)
        if not self.worker.drain(PATIENCE):
            raise AssertionError("a store did not end")
        self.scheduler.finished(request.request_id)


class Cases(unittest.TestCase):
    """Cases with KV in memory of the host; vllm_device_test.py runs them for memory of a GPU."""

    kind: Callable[..., Engine] = Engine

    def setUp(self) -> None:
        self.daemon = self.start()
        self.addCleanup(self.daemon.stop)

    def start(self) -> Daemon:
        return Daemon()

    def engine(self, plan: Plan | None = None, **settings: object) -> Engine:
        made = self.starting(plan, **settings)
        made.connect()
        return made

    def starting(self, plan: Plan | None = None, **settings: object) -> Engine:
        made = type(self).kind(self.daemon.socket, plan, **settings)
        self.addCleanup(made.close)
        return made

    def leases(self) -> int:
        with terrace.connect(self.daemon.socket, observes=True, timeout=PATIENCE) as observer:
            return sum(client.leases for client in observer.status(timeout=PATIENCE).clients)


class AdaptersOfRequests(Cases):
    """vLLM's hashes contain an adapter's name and path; after a restart of the engine, another adapter may be there."""

    def setUp(self) -> None:
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        (self.folder / "adapter_config.json").write_text("{}")
        self.write(b"first")

    def write(self, weights: bytes) -> None:
        path = self.folder / "adapter_model.safetensors"
        path.write_bytes(weights)
        os.utime(path, ns=(1, 1))

    def request(self, chunks: int = 3) -> Request:
        request = Request("r", chunks)
        request.lora_request = SimpleNamespace(lora_int_id=1, lora_name="support", lora_path=str(self.folder))
        return request

    def test_an_adapter_that_is_replaced_under_its_name_gets_nothing_of_the_one_before(self) -> None:
        request = self.request()
        self.engine().compute(request, [1, 2, 3])
        same = self.engine(name="restarted")
        self.assertEqual(same.matched(request)[0], 3 * CHUNK)
        same.scheduler.allocated(request, [[10, 9, 8, 7]], 3 * CHUNK)
        same.step(request, [[10, 9, 8, 7]], 3 * CHUNK, 1)
        self.assertTrue(all(same.has(request, i, block) for i, block in enumerate([10, 9, 8])))
        self.write(b"other")
        other = self.engine(name="restarted")
        self.assertEqual(other.matched(request), (0, False))
        other.scheduler.finished("r")
        self.assertEqual(other.matched(Request("r", 3)), (0, False), "nor does the model alone")
        self.write(b"first")
        self.assertEqual(self.engine(name="restarted").matched(request)[0], 3 * CHUNK)

    def test_one_that_is_replaced_under_a_running_engine_is_neither_loaded_nor_stored(self) -> None:
        one = self.engine()
        one.compute(self.request(), [1, 2, 3])
        self.write(b"other")
        with self.assertLogs("terrace.vllm", "WARNING"):
            self.assertEqual(one.matched(self.request()), (0, False))
        longer = self.request(6)
        one.compute(longer, [1, 2, 3, 4, 5, 6])
        self.assertEqual(one.worker.counters.stored_chunks, 3)
        self.assertEqual(self.engine(name="restarted").matched(longer), (0, False))

    def test_the_model_alone_has_keys_without_an_adapter(self) -> None:
        one = self.engine()
        one.compute(Request("r", 3), [1, 2, 3])
        self.assertEqual(one.matched(self.request()), (0, False))
        one.scheduler.finished("r")
        self.assertEqual(one.matched(Request("r", 3))[0], 3 * CHUNK)


class Loads(Cases):
    def test_what_one_engine_computes_another_loads_layer_by_layer(self) -> None:
        one, two = self.engine(), self.engine()
        request = Request("r", 5)
        self.assertEqual(one.matched(request), (0, False))
        one.compute(request, [9, 3, 7, 1, 5])
        self.assertEqual(two.matched(request), (5 * CHUNK, False))
        self.assertEqual(self.leases(), 1)
        two.scheduler.allocated(request, [[10, 9, 8, 7, 6, 5]], 5 * CHUNK)
        two.step(request, [[10, 9, 8, 7, 6, 5]], 5 * CHUNK, 1)
        self.assertTrue(all(two.has(request, i, block) for i, block in enumerate([10, 9, 8, 7, 6])))
        self.assertEqual((two.worker.failed_blocks(), two.worker.counters.loads), (set(), 1))
        self.assertEqual(two.worker.counters.loaded_bytes, 5 * 16384)
        until(lambda: self.leases() == 0)

    def test_only_what_the_engine_has_not_is_loaded(self) -> None:
        one = self.engine()
        request = Request("r", 4)
        one.compute(request, [1, 2, 3, 4])
        self.assertEqual(one.matched(request, 2 * CHUNK), (2 * CHUNK, False))
        one.wipe()
        one.scheduler.allocated(request, [[11, 12, 13, 14, 15]], 2 * CHUNK)
        one.step(request, [[11, 12, 13, 14, 15]], 4 * CHUNK, 1)
        self.assertFalse(one.touched("a", 11) or one.touched("a", 12))
        self.assertTrue(one.has(request, 2, 13) and one.has(request, 3, 14))

    def test_a_prompt_that_is_all_there_leaves_a_token_to_compute(self) -> None:
        one = self.engine()
        request = Request("r", 3)
        one.compute(request, [1, 2, 3])
        request.num_tokens = 3 * CHUNK
        self.assertEqual(one.matched(request), (2 * CHUNK, False))

    def test_between_steps(self) -> None:
        one = self.engine(layered=False)
        request = Request("r", 6)
        one.compute(request, [1, 2, 3, 4, 5, 6])
        self.assertEqual(one.matched(request), (6 * CHUNK, True))
        blocks = [[20, 21, 22, 23, 24, 25, 26]]
        one.scheduler.allocated(request, blocks, 6 * CHUNK)
        self.assertEqual(one.between_steps(request, blocks), set())
        self.assertTrue(all(one.has(request, i, 20 + i) for i in range(6)))
        until(lambda: self.leases() == 0)

    def test_staging_memory_may_be_smaller_than_a_load_or_a_store(self) -> None:
        for layered in (True, False):
            one = self.engine(slots=2, layered=layered)
            request = Request("r", 7, 40 + layered)
            one.compute(request, [1, 2, 3, 4, 5, 6, 7])
            self.assertEqual(one.worker.counters.stored_chunks, 7)
            self.assertEqual(one.matched(request)[0], 7 * CHUNK)
            blocks = [[30 + i for i in range(8)]]
            one.scheduler.allocated(request, blocks, 7 * CHUNK)
            if layered:
                one.step(request, blocks, 7 * CHUNK, 1)
            else:
                one.between_steps(request, blocks)
            self.assertTrue(all(one.has(request, i, 30 + i) for i in range(7)), layered)
            self.assertEqual(one.worker.failed_blocks(), set())

    def test_of_a_window_only_the_end_is_loaded(self) -> None:
        plan = plan_with((0, 2))
        one = self.engine(plan)
        request = Request("r", 5)
        one.compute(request, [1, 2, 3, 4, 5])
        self.assertEqual(one.matched(request), (5 * CHUNK, True))  # several groups are never layered
        blocks = [[20, 21, 22, 23, 24, 25], [0, 0, 0, 33, 34, 35]]
        one.scheduler.allocated(request, blocks, 5 * CHUNK)
        self.assertEqual(one.between_steps(request, blocks), set())
        self.assertTrue(all(one.has(request, i, 20 + i, "ab") for i in range(5)))
        self.assertTrue(one.has(request, 3, 33, "c") and one.has(request, 4, 34, "c"))
        self.assertFalse(one.touched("c", 0))

    def test_blocks_may_be_written_again_when_a_step_ends(self) -> None:
        one = self.engine()
        request = Request("r", 3)
        one.fill(request, [1, 2, 3])
        one.scheduler.allocated(request, [[1, 2, 3]], 0)
        self.daemon.pause()
        one.step(request, [[1, 2, 3]], 0, 3 * CHUNK)
        one.wipe(255)
        self.daemon.resume()
        one.worker.drain(PATIENCE)
        other = Request("s", 3)
        self.assertEqual(one.matched(other)[0], 3 * CHUNK)
        one.scheduler.allocated(other, [[4, 5, 6, 7]], 3 * CHUNK)
        one.step(other, [[4, 5, 6, 7]], 3 * CHUNK, 1)
        self.assertTrue(all(one.has(request, i, 4 + i) for i in range(3)))

    def test_what_the_daemon_has_lost_is_stored_again(self) -> None:
        one = self.engine()
        request = Request("r", 4)
        one.compute(request, [1, 2, 3, 4])
        self.assertTrue(one.scheduler.clear())
        self.assertEqual(one.matched(request, 2 * CHUNK), (0, False))
        one.scheduler.allocated(request, [[1, 2, 3, 4, 5]], 0)
        one.step(request, [[1, 2, 3, 4, 5]], 2 * CHUNK, 2 * CHUNK)
        one.worker.drain(PATIENCE)
        self.assertEqual(one.matched(Request("s", 4))[0], 4 * CHUNK)

    def test_a_request_that_ends_before_its_load_gives_its_lease_back(self) -> None:
        one = self.engine()
        request = Request("r", 2)
        one.compute(request, [1, 2])
        self.assertEqual(one.matched(request)[0], 2 * CHUNK)
        self.assertEqual(self.leases(), 1)
        one.scheduler.finished("r")
        until(lambda: self.leases() == 0)

    def test_an_engine_that_does_not_wait_for_a_layer_computes(self) -> None:
        one = self.engine()
        request = Request("r", 2)
        one.compute(request, [1, 2])
        one.matched(request)
        one.scheduler.allocated(request, [[4, 5, 6]], 2 * CHUNK)
        with self.assertLogs("terrace.vllm", "WARNING") as log:
            one.step(request, [[4, 5, 6]], 2 * CHUNK, 1, wait_for="ab")
        self.assertIn("did not wait for the KV of c", log.output[0])
        self.assertEqual(one.worker.failed_blocks(), {4, 5})


class Stores(Cases):
    """A step computes more than staging memory holds."""

    def lookup(self, request: Request) -> int:
        with terrace.connect(self.daemon.socket, timeout=PATIENCE) as other:
            space = other.open_space(plan_with().spec, timeout=PATIENCE)
            return other.lookup(space, terrace.Prefix.of_digests(request.block_hashes), timeout=PATIENCE).found_chunks

    def keeping(self, seed: int = 1, **settings: Any) -> tuple[Engine, Request]:
        """Returns an engine that has computed 7 chunks while the daemon stands still, and has staging memory for 2."""
        one = self.engine(slots=2, **settings)
        request = Request("r", 7, seed)
        blocks = [1, 2, 3, 4, 5, 6, 7]
        one.fill(request, blocks)
        one.matched(request)
        self.daemon.pause()
        self.addCleanup(self.daemon.resume)
        one.scheduler.allocated(request, [blocks], 0)
        with mock.patch.object(one.worker._transfers, "wait", side_effect=AssertionError("a step waits")):
            one.step(request, [blocks], 0, 7 * CHUNK)
        return one, request

    def finish(self, one: Engine) -> None:
        def done() -> bool:
            one.empty_step()
            return not one.scheduler.keeps

        until(done)
        self.assertTrue(one.worker.drain(PATIENCE))

    def left_out(self, one: Engine) -> dict[str, int]:
        """By reason."""
        counters = one.worker.counters
        told = {reason: int(getattr(counters, f"chunks_not_stored_{reason}")) for reason in REASONS}
        self.assertEqual(counters.chunks_not_stored, sum(told.values()))
        return {reason: chunks for reason, chunks in told.items() if chunks}

    def other_gets(self, one: Engine, block: int, computed: int = 0) -> None:
        """vLLM gives a block to another request, which writes it in the same step unless it is computed."""
        other = Request("other", 1, 99)
        one.scheduler.matched(other, computed)
        one.scheduler.allocated(other, [[block]], 0)
        one.orders(other, [[block]], computed, 1)
        one.worker.prepare(*one.scheduler.overwritten())

    def continues(self, one: Engine, blocks: list[int], resumed: bool, copied: int = 0) -> None:
        """A request with a computed chunk continues with these blocks. `copied`: vLLM copies into this block."""
        cached = SimpleNamespace(req_ids=["c"], resumed_req_ids={"c"} if resumed else set(), new_block_ids=[(blocks,)],
                                 num_computed_tokens=[CHUNK])
        copies = [SimpleNamespace(dst_block_id=copied)] if copied else None  # older versions have none
        one.scheduler.orders(SimpleNamespace(scheduled_new_reqs=[], num_scheduled_tokens={"c": 1}, scheduled_cached_reqs=cached,
                                             kv_cache_block_copies=copies))
        one.worker.prepare(*one.scheduler.overwritten())

    def test_all_of_a_step_is_stored_and_no_step_waits(self) -> None:
        one, request = self.keeping()
        self.assertTrue(one.scheduler.keeps)
        one.scheduler.finished("r")  # its blocks keep their KV until they are given to another request
        self.daemon.resume()
        self.finish(one)
        self.assertEqual((self.lookup(request), one.worker.counters.stored_chunks, self.left_out(one)), (7, 7, {}))
        other = Request("s", 7)
        self.assertEqual(one.matched(other)[0], 7 * CHUNK)
        blocks = [[30 + i for i in range(8)]]
        one.scheduler.allocated(other, blocks, 7 * CHUNK)
        one.step(other, blocks, 7 * CHUNK, 1)
        self.assertTrue(all(one.has(request, i, 30 + i) for i in range(7)))

    def test_a_load_gets_room_before_what_is_kept(self) -> None:
        one = self.engine(slots=2, layered=False)
        loaded, request = Request("loaded", 3, 70), Request("r", 7)
        one.compute(loaded, [1, 2, 3])
        self.assertEqual(one.matched(loaded), (3 * CHUNK, True))
        one.scheduler.allocated(loaded, [[20, 21, 22, 23]], 3 * CHUNK)
        (order,) = one.orders(loaded, [[20, 21, 22, 23]], 0, 0)[0]
        blocks = [1, 2, 3, 4, 5, 6, 7]
        one.fill(request, blocks)
        one.scheduler.allocated(request, [blocks], 0)
        self.daemon.pause()
        self.addCleanup(self.daemon.resume)
        one.step(request, [blocks], 0, 7 * CHUNK)
        one.worker.begin([order])
        self.daemon.resume()

        def has_come() -> bool:
            one.worker.prepare(set())
            return "loaded" in one.worker.received()[0]

        with mock.patch.object(one.worker._transfers, "send", wraps=one.worker._transfers.send) as send:
            until(has_come)
        self.assertEqual(send.call_args_list[0].args[2], "a load")
        self.assertTrue(all(one.has(loaded, i, 20 + i) for i in range(3)))
        one.report()
        self.finish(one)
        self.assertEqual(self.lookup(request), 7)

    def test_an_engine_that_ends_stores_what_it_has_kept(self) -> None:
        one, request = self.keeping()
        self.daemon.resume()
        one.worker.close(PATIENCE)
        self.assertEqual((self.lookup(request), self.left_out(one)), (7, {}))

    def test_kv_whose_block_is_given_away_is_not_stored(self) -> None:
        one, request = self.keeping()
        one.scheduler.finished("r")
        with self.assertLogs("terrace.vllm", "WARNING") as log:
            self.other_gets(one, 5)
        one.wipe(255)
        self.daemon.resume()
        self.finish(one)
        self.assertEqual(self.left_out(one), {"overwritten": 3})  # chunks after it cannot be found without it
        self.assertIn("3 blocks are not stored: vLLM gave their blocks to other tokens", log.output[0])
        self.assertEqual(self.lookup(request), 4)

    def test_running_resumed_and_loading_requests_are_given_blocks_too(self) -> None:
        one, _ = self.keeping()
        with self.assertLogs("terrace.vllm", "WARNING"):
            self.continues(one, [], resumed=False, copied=7)
        self.assertEqual(self.left_out(one), {"overwritten": 1})
        self.continues(one, [6], resumed=False)
        self.assertEqual(self.left_out(one), {"overwritten": 2})
        self.continues(one, [3, 5], resumed=True)  # the first one is computed, and perhaps shared
        self.assertEqual(self.left_out(one), {"overwritten": 3})
        loading = Request("loading", 1, 98)
        one.scheduler.matched(loading, 0)
        one.scheduler.allocated(loading, [[4]], 0)  # another connector loads into it before it runs
        one.worker.prepare(*one.scheduler.overwritten())
        self.assertEqual(self.left_out(one), {"overwritten": 4})

    def test_blocks_that_a_request_shares_are_not_given_away(self) -> None:
        one, request = self.keeping()
        self.other_gets(one, 5, computed=CHUNK)
        self.daemon.resume()
        self.finish(one)
        self.assertEqual((self.lookup(request), self.left_out(one)), (7, {}))

    def test_what_is_left_out_is_counted_and_logged_by_its_reason(self) -> None:
        def late(one: Engine) -> None:
            with mock.patch.object(one.worker._stores, "_seconds", 0.0):
                one.empty_step()

        def clear(one: Engine) -> None:
            self.daemon.resume()
            self.assertTrue(one.scheduler.clear())
            one.worker.prepare(*one.scheduler.overwritten())

        for seed, (reason, cause) in enumerate((("late", late), ("cleared", clear)), 50):
            one, _ = self.keeping(seed)
            with self.assertLogs("terrace.vllm", "WARNING") as log:
                cause(one)
            self.assertEqual(self.left_out(one), {reason: 5})
            self.assertIn(f"5 blocks are not stored: {REASONS[reason]}", log.output[0])
            self.daemon.resume()
            self.finish(one)

    def test_nothing_is_kept_by_an_engine_that_may_lose_its_blocks(self) -> None:
        with self.assertLogs("terrace.vllm", "WARNING"):
            one, request = self.keeping(keeps=False)
        self.assertFalse(one.scheduler.keeps)
        self.daemon.resume()
        self.finish(one)
        self.assertEqual((self.lookup(request), self.left_out(one)), (2, {"room": 5}))

    def test_what_is_kept_for_a_daemon_that_is_killed_is_left_out(self) -> None:
        one, request = self.keeping()
        self.daemon.kill()
        until(lambda: not one.worker.connected)
        with self.assertLogs("terrace.vllm", "WARNING"):
            one.empty_step()
        self.assertEqual(self.left_out(one), {"away": 5, "failed": 2})
        self.assertFalse(one.scheduler.keeps)
        self.daemon.start()
        one.connect()
        one.compute(replace_name(request, "again"), [1, 2, 3, 4, 5, 6, 7])
        self.assertEqual(self.lookup(request), 7)


class Away(Cases):
    def test_without_a_daemon_everything_misses(self) -> None:
        one = Engine("/nowhere/terrace.sock")
        self.addCleanup(one.close)
        request = Request("r", 2)
        self.assertEqual(one.scheduler.matched(request, 0), (0, False))
        one.scheduler.allocated(request, [[1, 2, 3]], 0)
        self.assertEqual(one.step(request, [[1, 2, 3]], 0, 2 * CHUNK), (set(), set()))

    def test_an_engine_that_starts_waits_for_the_daemon(self) -> None:
        """Otherwise its first requests would miss, and their KV would not be stored."""
        self.daemon.pause()
        self.addCleanup(self.daemon.resume)
        one = self.starting()
        self.assertFalse(one.scheduler.connected or one.worker.connected)
        self.daemon.resume()
        one.scheduler.await_attempt(PATIENCE)
        one.worker.await_attempt(PATIENCE)
        self.assertTrue(one.scheduler.connected and one.worker.connected)

    def test_nothing_is_promised_while_a_worker_is_without_the_daemon(self) -> None:
        other = self.engine()
        other.compute(Request("r", 3), [1, 2, 3])
        with tempfile.TemporaryDirectory(prefix="terrace-python-") as folder:
            place = os.path.join(folder, "socket")
            one = self.starting(workers_socket=place)
            until(lambda: one.scheduler.connected)
            one.report()
            self.assertEqual(one.matched(Request("s", 3)), (0, False))
            request = Request("t", 3)
            until(lambda: one.scheduler.matched(request, 0)[0] is not None or one.scheduler._asked["t"].ticket is None)
            self.assertEqual(one.scheduler.matched(request, 0), (None, False))  # it may be back since the last step
            os.symlink(self.daemon.socket, place)
            until(lambda: one.worker.connected)
            self.assertEqual(one.matched(request)[0], 3 * CHUNK)
            one.scheduler.allocated(request, [[4, 5, 6, 7]], 3 * CHUNK)
            one.step(request, [[4, 5, 6, 7]], 3 * CHUNK, 1)
            self.assertTrue(all(one.has(request, i, 4 + i) for i in range(3)))

    def lose_the_daemon(self, one: Engine) -> None:
        """Kills it. Both sides know."""
        self.daemon.kill()

        def known() -> bool:
            one.empty_step()
            one.scheduler.matched(Request("x", 1), 0)
            return not one.scheduler.connected and not one.worker.connected

        until(known)

    def test_what_was_computed_without_a_daemon_is_stored_at_the_next_local_hit(self) -> None:
        for more in (0, 1):  # the same prompt again, and a longer one
            with self.subTest(more=more):
                one, seed, blocks = self.engine(), 7 + more, [1, 2, 3, 4, 5, 6]
                self.lose_the_daemon(one)
                first = Request("first", 4, seed)
                self.assertEqual(one.matched(first), (0, False))
                one.fill(first, blocks)
                one.scheduler.allocated(first, [blocks], 0)
                one.step(first, [blocks], 0, 4 * CHUNK + 1)
                one.scheduler.finished("first")
                self.daemon.start()
                one.connect()
                one.report()
                again = Request("again", 4 + more, seed)
                one.fill(again, blocks)
                self.assertEqual(one.matched(again, 4 * CHUNK), (0, False))
                one.scheduler.allocated(again, [blocks], 0)
                one.step(again, [blocks], 4 * CHUNK, more * CHUNK + 1)
                self.assertTrue(one.worker.drain(PATIENCE))
                other, wanted = self.engine(), Request("other", 4 + more, seed)
                self.assertEqual(other.matched(wanted)[0], (4 + more) * CHUNK)
                other.wipe()
                other.scheduler.allocated(wanted, [[11, 12, 13, 14, 15, 16][:5 + more]], (4 + more) * CHUNK)
                other.step(wanted, [[11, 12, 13, 14, 15, 16][:5 + more]], (4 + more) * CHUNK, 1)
                self.assertTrue(all(other.has(wanted, i, 11 + i) for i in range(4 + more)))

    def test_a_prompt_that_the_engine_has_is_looked_up_once_after_the_daemon_was_away(self) -> None:
        one = self.engine()
        request = Request("r", 3)
        one.compute(request, [1, 2, 3])
        asked = one.scheduler.counters.lookups
        self.assertEqual(one.matched(Request("s", 3), 3 * CHUNK), (0, False))
        self.assertEqual(one.scheduler.counters.lookups, asked, "the daemon has what the engine has stored")
        self.lose_the_daemon(one)
        asked = one.scheduler.counters.lookups
        self.daemon.start()
        one.connect()
        one.report()
        for name in ("t", "u"):
            self.assertEqual(one.matched(Request(name, 3), 3 * CHUNK), (0, False))
            self.assertEqual(one.scheduler.counters.lookups, asked + 1)

    def test_a_worker_that_says_nothing_more_is_not_waited_for(self) -> None:
        one = self.engine(lookup=0.1)
        one.compute(Request("r", 3), [1, 2, 3])
        one.scheduler.reported(Report(away=True))
        until(lambda: one.scheduler.matched(Request("s", 3), 0) == (0, False))

    def lose(self, one: Engine) -> None:
        """Deletes what is leased, and ends the leases."""
        with terrace.connect(self.daemon.socket, timeout=PATIENCE) as other:
            other.clear(timeout=PATIENCE)
        for lease, _, _ in one.scheduler._leases.values():
            lease.release()
        until(lambda: self.leases() == 0)

    def test_a_lease_that_is_cut_before_a_load_between_steps(self) -> None:
        one = self.engine(layered=False)
        request = Request("r", 3)
        one.compute(request, [1, 2, 3])
        self.assertEqual(one.matched(request), (3 * CHUNK, True))
        one.wipe()
        one.scheduler.allocated(request, [[4, 5, 6, 7]], 3 * CHUNK)
        self.assertEqual(one.between_steps(request, [[4, 5, 6, 7]], lambda: self.lose(one)), {"r"})
        self.assertEqual(one.worker.failed_blocks(), {4, 5, 6})
        self.assertFalse(any(one.touched("a", block) for block in (4, 5, 6)))
        self.assertEqual(one.matched(request), (0, False))  # the engine computes

    def test_kv_that_does_not_come_is_told_by_its_blocks_and_nothing_computed_from_it_is_stored(self) -> None:
        one = self.engine()
        request = Request("r", 4)
        one.compute(request, [1, 2, 3, 4])
        longer = Request("s", 6)
        self.assertEqual(one.matched(longer), (4 * CHUNK, False))
        blocks = [[10, 11, 12, 13, 14, 15, 16]]
        one.scheduler.allocated(longer, blocks, 4 * CHUNK)

        one.step(longer, blocks, 4 * CHUNK, 2 * CHUNK, between=lambda: self.lose(one))
        self.assertEqual(one.worker.failed_blocks(), {10, 11, 12, 13})
        self.assertEqual(one.worker.counters.chunks_not_stored, 2)
        self.assertEqual(one.matched(longer), (0, False))  # the engine computes
        self.assertEqual(one.matched(Request("t", 6)), (0, False))
        one.step(longer, blocks, 0, 6 * CHUNK)  # repeats it with what the scheduler knows now
        one.worker.drain(PATIENCE)
        self.assertEqual(one.matched(Request("u", 6))[0], 6 * CHUNK)

    def test_a_daemon_that_is_killed_before_or_while_it_loads(self) -> None:
        for layered in (True, False):
            one = self.engine(layered=layered)
            request = Request("r", 3)
            one.compute(request, [1, 2, 3])
            self.assertEqual(one.matched(request)[0], 3 * CHUNK)
            one.scheduler.allocated(request, [[4, 5, 6, 7]], 3 * CHUNK)
            if layered:
                one.step(request, [[4, 5, 6, 7]], 3 * CHUNK, 1, between=self.daemon.kill)
            else:
                self.assertEqual(one.between_steps(request, [[4, 5, 6, 7]], self.daemon.kill), {"r"})
            self.assertEqual(one.worker.failed_blocks(), {4, 5, 6})
            self.daemon.start()
            one.connect()
            one.compute(replace_name(request, "again"), [1, 2, 3])
            self.assertEqual(one.matched(Request("s", 3))[0], 3 * CHUNK)
            self.daemon.kill()
            self.daemon.start()

    def test_a_layered_load_of_a_daemon_that_stands_still_is_gone_on_without(self) -> None:
        one = self.engine(load=0.2, slots=8)
        request = Request("r", 3)
        one.compute(request, [1, 2, 3])
        one.matched(request)
        one.scheduler.allocated(request, [[4, 5, 6, 7]], 3 * CHUNK)
        one.step(request, [[4, 5, 6, 7]], 3 * CHUNK, 1, between=self.daemon.pause)
        self.addCleanup(self.daemon.resume)
        self.assertEqual(one.worker.failed_blocks(), {4, 5, 6})
        self.assertEqual(one.worker.slots_left, 5)  # the daemon may still write into the others
        self.daemon.resume()
        one.worker.drain(PATIENCE)
        self.assertEqual(one.worker.slots_left, 8)

    def test_a_load_between_steps_of_a_daemon_that_stands_still_is_gone_on_without(self) -> None:
        """Also ends those that wait for room, and nothing of them comes into the blocks afterwards."""
        one = self.engine(load=0.2, slots=4, layered=False)
        requests = [Request(f"r{i}", 3, 30 + i) for i in range(3)]
        orders = []
        for i, request in enumerate(requests):
            one.compute(request, [1, 2, 3])
            blocks = [[10 * i + j for j in range(10, 14)]]
            self.assertEqual(one.matched(request), (3 * CHUNK, True))
            one.scheduler.allocated(request, blocks, 3 * CHUNK)
            orders += one.orders(request, blocks, 0, 0)[0]
        one.wipe()
        self.daemon.pause()
        self.addCleanup(self.daemon.resume)
        one.worker.begin(orders)
        failed: set[str] = set()

        def all_failed() -> bool:
            received, lost = one.worker.received()
            self.assertEqual(received, lost)
            failed.update(lost)
            return len(failed) == 3

        until(all_failed)
        self.assertEqual(one.worker.failed_blocks(), {10 * i + j for i in range(3) for j in range(10, 13)})
        self.assertEqual(one.worker.slots_left, 0)  # the daemon may still write into them
        self.daemon.resume()
        self.assertTrue(one.worker.drain(PATIENCE))
        self.assertEqual(one.worker.slots_left, 4)
        self.assertFalse(any(one.touched("a", block) for block in range(BLOCKS)))

    def test_a_lookup_without_an_answer_is_a_miss_and_others_do_not_wait(self) -> None:
        one = self.engine(lookup=0.1)
        self.daemon.pause()
        self.addCleanup(self.daemon.resume)
        self.assertEqual(one.matched(Request("r", 2)), (0, False))
        self.assertEqual(one.scheduler.matched(Request("s", 2, 9), 0), (0, False))  # at once
        self.daemon.resume()
        until(lambda: one.matched(Request("t", 2)) == (0, False) and not one.scheduler._late)

    def test_a_load_that_failed_between_steps_is_told_where_groups_have_blocks_of_their_own(self) -> None:
        one = self.engine(plan_with((0, 1)))
        request = Request("r", 3)
        one.compute(request, [1, 2, 3])
        self.assertEqual(one.matched(request)[0], 3 * CHUNK)
        blocks = [[4, 5, 6, 7], [0, 0, 8, 9]]
        one.scheduler.allocated(request, blocks, 3 * CHUNK)
        self.assertEqual(one.between_steps(request, blocks, self.daemon.kill), {"r"})
        self.assertEqual(one.worker.failed_blocks(), set())


def replace_name(request: Request, name: str) -> Request:
    made = Request(name, len(request.block_hashes))
    made.block_hashes = request.block_hashes
    return made


class Several(Cases):
    def test_a_lease_ends_when_all_workers_need_it_no_longer(self) -> None:
        plan = replace(plan_with(), workers=2)
        one = self.engine(plan)
        request = Request("r", 2)
        one.compute(request, [1, 2])
        self.assertEqual(one.matched(request), (2 * CHUNK, True))
        one.scheduler.allocated(request, [[4, 5, 6]], 2 * CHUNK)
        one.between_steps(request, [[4, 5, 6]])
        self.assertEqual(self.leases(), 1)
        report = one.worker.report()
        report.ended[1] = 1  # the report of the other worker
        one.scheduler.reported(report)
        until(lambda: self.leases() == 0)


class SeveralRanks(unittest.TestCase):
    """Two workers of an engine whose memory is too small for what they store: an eviction takes the objects of one of them."""

    def setUp(self) -> None:
        self.daemon = Daemon(host_bytes=2 << 20)
        self.addCleanup(self.daemon.stop)

    def engine(self, rank: int) -> Engine:
        plan = plan_with()
        made = Engine(self.daemon.socket, replace(plan, spec=replace(plan.spec, world_size=2, rank=rank), workers=2))
        self.addCleanup(made.close)
        made.connect()
        return made

    def test_what_only_one_of_them_has_left_is_promised_to_neither(self) -> None:
        ranks = [self.engine(rank) for rank in (0, 1)]
        request = Request("r", 8)
        for rank in ranks:
            rank.compute(request, list(range(1, 9)))
        asked, left, seed = Request("r", 8), 8, 2
        session = ranks[0].scheduler._link.session
        assert session is not None
        while left == 8:  # what the first worker stores alone takes the place of some of it
            self.assertLess(seed, 200, "nothing of it was evicted")
            ranks[0].compute(Request(f"{seed}", 3, seed), [10, 11, 12])
            left = session.connection.lookup(session.spaces[0], terrace.Prefix.of_digests(request.block_hashes)).found_chunks  # no use
            seed += 1
        ranks[1].compute(request, list(range(1, 9)))  # now the second worker has all of it
        seen = session.connection.lookup(session.spaces[0], terrace.Prefix.of_digests(request.block_hashes))
        assert seen.missing is not None
        self.assertEqual((seen.missing.rank, seen.missing.chunk), (0, seen.found_chunks))
        left = seen.found_chunks
        found, _ = ranks[0].matched(asked)
        self.assertEqual(found, left * CHUNK)
        places = list(range(20, 20 + left + 1))
        ranks[0].scheduler.allocated(asked, [places], left * CHUNK)
        loads = ranks[0].loads(asked, [places])
        for rank in ranks:
            rank.wipe()
            rank.worker.prepare(set())
            rank.worker.begin(loads)
            until(lambda: rank.worker.received()[0] == {"r"})
            self.assertTrue(all(rank.has(asked, i, places[i]) for i in range(left)))
            self.assertEqual(rank.worker.failed_blocks(), set())
            ranks[0].scheduler.reported(rank.worker.report())
        ranks[0].scheduler.finished("r")
        for rank in ranks:
            rank.compute(request, list(range(1, 9)))
        self.assertEqual(ranks[0].matched(asked)[0], 8 * CHUNK)


if __name__ == "__main__":
    unittest.main()

"""An engine's KV in memory of the simulated GPU, with the engine's stream, and the mover between it and staging
memory."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Mapping, Sequence

import terrace
from simulated_gpu import DeviceArray, Gpu
from terrace.vllm.plan import Plan

_GEQ = 0  # CU_STREAM_WAIT_VALUE_GEQ


class Stream:
    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu
        self._handle = ctypes.c_void_p()
        gpu.call("cuStreamCreateWithPriority", ctypes.byref(self._handle), 1, 0)

    @property
    def number(self) -> int:
        assert self._handle.value is not None
        return self._handle.value

    def copy(self, to: int, source: int, nbytes: int) -> None:
        self.gpu.call("cuMemcpyAsync", ctypes.c_uint64(to), ctypes.c_uint64(source), ctypes.c_size_t(nbytes), self._handle)

    def wait_for(self, event: ctypes.c_void_p) -> None:
        self.gpu.call("cuStreamWaitEvent", self._handle, event, 0)

    def finish(self) -> None:
        self.gpu.call("cuStreamSynchronize", self._handle)

    def close(self) -> None:
        self.gpu.call("cuStreamDestroy_v2", self._handle)


class Pinned:
    """Pages of the host that streams read and write; a word of them holds streams back."""

    def __init__(self, gpu: Gpu, nbytes: int) -> None:
        self.gpu = gpu
        self.pages = mmap.mmap(-1, nbytes)
        self._held: list[Stream] = []
        self._inner = ctypes.c_char.from_buffer(self.pages)
        self.address = ctypes.addressof(self._inner)
        gpu.call("cuMemHostRegister_v2", ctypes.c_uint64(self.address), ctypes.c_size_t(nbytes), 3)

    def hold(self, stream: Stream) -> None:
        """Makes later work in the stream begin after `release`."""
        self._held.append(stream)
        self.pages[:4] = bytes(4)
        self.gpu.call("cuStreamWaitValue32_v2", ctypes.c_void_p(stream.number), ctypes.c_uint64(self.address), 1, _GEQ)

    def release(self) -> None:
        self.pages[:4] = (1).to_bytes(4, "little")

    def close(self) -> None:
        """Called also after a failed test."""
        self.release()
        for stream in self._held:
            stream.finish()
        self.gpu.call("cuMemHostUnregister", ctypes.c_uint64(self.address))


class _Mark:
    def __init__(self, gpu: Gpu, event: ctypes.c_void_p) -> None:
        self._gpu, self._event = gpu, event

    @property
    def passed(self) -> bool:
        return self._gpu.ready("cuEventQuery", self._event)

    def wait(self) -> None:
        self._gpu.call("cuEventSynchronize", self._event)


class SimulatedKv:
    """A `StreamMover`. `engine` is the stream on which an engine would compute."""

    def __init__(self, gpu: Gpu, plan: Plan, layers: Mapping[str, int], blocks: int, slots: int) -> None:
        self.gpu, self.plan = gpu, plan
        self.staging = terrace.DeviceMemory(slots * plan.slot_bytes, gpu.uuid)
        self.engine, self._own = Stream(gpu), Stream(gpu)
        self._sizes = dict(layers)
        self.kv = {name: DeviceArray(gpu, blocks * size) for name, size in layers.items()}
        self._places: dict[str, tuple[int, int]] = {}  # for each layer: its group, and its place in a slot
        for part in plan.parts:
            at = part.offset
            for name, size in zip(part.layers, part.layer_bytes):
                self._places[name] = (part.group, at)
                at += size
        self._events: list[ctypes.c_void_p] = []
        for name in self.kv:
            self.kv[name].write(bytes(self.kv[name].nbytes))

    def close(self) -> None:
        for stream in (self.engine, self._own):
            stream.finish()
        for event in self._events:
            self.gpu.call("cuEventDestroy_v2", event)
        for stream in (self.engine, self._own):
            stream.close()
        for array in self.kv.values():
            array.free()

    def address(self, layer: str, block: int) -> int:
        return self.kv[layer].address + block * self._sizes[layer]

    def put(self, layer: str, block: int, data: bytes) -> None:
        self.kv[layer].write(data, block * self._sizes[layer])

    def get(self, layer: str, block: int) -> bytes:
        self.engine.finish()
        return self.kv[layer].read(block * self._sizes[layer], self._sizes[layer])

    @property
    def computed(self) -> _Mark:
        """Returns a mark behind everything that the engine has queued."""
        return _Mark(self.gpu, self._event(self.engine))

    # ---- as a StreamMover ----

    @property
    def stream(self) -> int:
        return self._own.number

    def follow(self) -> None:
        self._own.wait_for(self._event(self.engine))

    def lead(self) -> None:
        self.engine.wait_for(self._event(self._own))

    def mark(self) -> _Mark:
        return _Mark(self.gpu, self._event(self._own))

    def rows(self, blocks: Sequence[int]) -> list[int]:
        return list(blocks)

    def gather(self, rows: Sequence[list[int]], slot: int) -> None:
        for name, (group, at) in self._places.items():
            for i, block in enumerate(rows[group]):
                self._own.copy(self._slot(slot + i) + at, self.address(name, block), self._sizes[name])

    def scatter(self, layer: str, rows: list[int], slot: int) -> None:
        for i, block in enumerate(rows):
            self._own.copy(self.address(layer, block), self._slot(slot + i) + self._places[layer][1], self._sizes[layer])

    def _slot(self, slot: int) -> int:
        return self.staging.address + slot * self.plan.slot_bytes

    def _event(self, stream: Stream) -> ctypes.c_void_p:
        event = ctypes.c_void_p()
        self.gpu.call("cuEventCreate", ctypes.byref(event), 2)
        self.gpu.call("cuEventRecord", event, ctypes.c_void_p(stream.number))
        self._events.append(event)
        return event

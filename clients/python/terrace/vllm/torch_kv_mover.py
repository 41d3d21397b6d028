"""The movers of KV in tensors. PyTorch copies, without the GIL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch  # type: ignore[import-not-found]

from .plan import Plan, Unusable


@dataclass(slots=True)
class _Plane:
    """KV of a layer whose blocks are rows."""

    rows: Any  #: (blocks, bytes of a block)
    slots: Any  #: (slots, bytes of a block)

    def widened(self) -> _Plane:
        """Returns the plane in words instead of bytes if possible: a GPU copies an element at a time."""
        try:
            return _Plane(self.rows.view(torch.int64), self.slots.view(torch.int64))
        except RuntimeError:  # blocks of another length, or not aligned
            return self


class TorchKvMover:
    """A mover of KV in ordinary memory: when a method returns, its copies have been made."""

    def __init__(self, plan: Plan, kv_caches: dict[str, Any], blocks: int, staging: Any) -> None:
        """`staging`: slots of bytes in the memory of the KV: (slots, bytes of a slot). Raises Unusable."""
        self._layers: dict[str, tuple[int, list[_Plane]]] = {}
        for part in plan.parts:
            at = part.offset
            for name, nbytes in zip(part.layers, part.layer_bytes):
                if name not in kv_caches:
                    raise Unusable(f"expected KV of layer {name}, which vLLM has not registered")
                planes = []
                inside = at
                for rows in rows_of(kv_caches[name], blocks):
                    planes.append(_Plane(rows, staging[:, inside : inside + rows.shape[1]]).widened())
                    inside += rows.shape[1]
                if inside > at + nbytes:
                    raise Unusable(f"expected blocks of {nbytes} bytes in layer {name}, got {inside - at}")
                self._layers[name] = (part.group, planes)
                at += nbytes

    def rows(self, blocks: Sequence[int]) -> Any:
        return torch.as_tensor(list(blocks), dtype=torch.int64)

    def gather(self, rows: Sequence[Any], slot: int) -> None:
        for group, planes in self._layers.values():
            for plane in planes:
                torch.index_select(plane.rows, 0, rows[group], out=plane.slots[slot : slot + len(rows[group])])

    def scatter(self, layer: str, rows: Any, slot: int) -> None:
        for plane in self._layers[layer][1]:
            plane.rows.index_copy_(0, rows, plane.slots[slot : slot + len(rows)])


class CudaKvMover(TorchKvMover):
    """A mover of KV in memory of a GPU: it queues copies in its own stream. It must be used on the thread on which the
    engine works, and follows that thread's stream."""

    def __init__(self, plan: Plan, kv_caches: dict[str, Any], blocks: int, staging: Any) -> None:
        super().__init__(plan, kv_caches, blocks, staging)
        self._device = staging.device
        self._own = torch.cuda.Stream(self._device, priority=-1)

    @property
    def stream(self) -> int:
        return int(self._own.cuda_stream)

    def follow(self) -> None:
        self._own.wait_stream(torch.cuda.current_stream(self._device))

    def lead(self) -> None:
        torch.cuda.current_stream(self._device).wait_stream(self._own)

    def mark(self) -> CudaMark:
        event = torch.cuda.Event(blocking=True)  # a thread that waits for it sleeps
        event.record(self._own)
        return CudaMark(event)

    def rows(self, blocks: Sequence[int]) -> Any:
        # Copied from pinned memory, because the call would wait for the stream otherwise.
        numbers = torch.tensor(list(blocks), dtype=torch.int64, pin_memory=True)
        with torch.cuda.stream(self._own):
            return numbers.to(self._device, non_blocking=True)

    def gather(self, rows: Sequence[Any], slot: int) -> None:
        with torch.cuda.stream(self._own):
            super().gather(rows, slot)

    def scatter(self, layer: str, rows: Any, slot: int) -> None:
        with torch.cuda.stream(self._own):
            super().scatter(layer, rows, slot)


@dataclass(slots=True)
class CudaMark:
    event: Any

    @property
    def passed(self) -> bool:
        return bool(self.event.query())

    def wait(self) -> None:
        self.event.synchronize()


def rows_of(cache: Any, blocks: int) -> list[Any]:
    """Returns a layer's KV as bytes with a row for each block, without a copy: one such view, or several if K and V,
    or the parts of a state, lie apart. Raises Unusable for other layouts."""
    if isinstance(cache, (list, tuple)):
        return [rows for one in cache for rows in rows_of(one, blocks)]
    if cache.dim() > 1 and cache.shape[0] == 2 and blocks != 2 and cache.shape[1] % blocks == 0:
        return [*rows_of(cache[0], blocks), *rows_of(cache[1], blocks)]
    if cache.dim() < 2 or cache.shape[0] % blocks:
        raise Unusable(f"expected KV with {blocks} blocks in its first dimension, got a tensor of {tuple(cache.shape)}")
    if cache.shape[0] != blocks:  # blocks of the kernel, several of which make one of vLLM
        cache = cache.unflatten(0, (blocks, -1))
    inner = sorted(range(1, cache.dim()), key=lambda dim: (-cache.stride(dim), dim))
    dense = cache.permute(0, *inner)  # dimensions in the order of memory
    if not dense[0].is_contiguous():
        raise Unusable(f"expected blocks whose KV lies together, got {tuple(cache.shape)} with strides {cache.stride()}")
    rows = dense.view(torch.uint8).flatten(1)
    if rows.data_ptr() != cache.data_ptr():
        raise Unusable("expected KV that can be read in place")
    return [rows]

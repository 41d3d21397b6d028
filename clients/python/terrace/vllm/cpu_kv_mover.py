"""The mover of KV in ordinary memory. PyTorch copies, without the GIL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch  # type: ignore[import-not-found]

from .orders import Blocks
from .plan import Plan, Unusable


@dataclass(slots=True)
class _Plane:
    """KV of a layer whose blocks are rows."""

    rows: Any  #: of bytes: (blocks, bytes of a block)
    slots: Any  #: of bytes: (slots, bytes of a block)


class CpuKvMover:
    def __init__(self, plan: Plan, kv_caches: dict[str, Any], blocks: int, memory: Any, offset: int, slots: int) -> None:
        """`memory`: a terrace.Memory with `slots` slots from `offset` on. Raises Unusable."""
        staging = torch.from_dlpack(memory)[offset : offset + slots * plan.slot_bytes].view(slots, plan.slot_bytes)
        self._layers: dict[str, tuple[int, list[_Plane]]] = {}
        for part in plan.parts:
            at = part.offset
            for name, nbytes in zip(part.layers, part.layer_bytes):
                if name not in kv_caches:
                    raise Unusable(f"expected KV of layer {name}, which vLLM has not registered")
                planes = []
                inside = at
                for rows in rows_of(kv_caches[name], blocks):
                    planes.append(_Plane(rows, staging[:, inside : inside + rows.shape[1]]))
                    inside += rows.shape[1]
                if inside > at + nbytes:
                    raise Unusable(f"expected blocks of {nbytes} bytes in layer {name}, got {inside - at}")
                self._layers[name] = (part.group, planes)
                at += nbytes

    def gather(self, blocks: Blocks, slot: int) -> None:
        numbers = [torch.as_tensor(list(of_group), dtype=torch.int64) for of_group in blocks]
        for group, planes in self._layers.values():
            for plane in planes:
                torch.index_select(plane.rows, 0, numbers[group], out=plane.slots[slot : slot + len(numbers[group])])

    def scatter(self, layer: str, blocks: Sequence[int], slot: int) -> None:
        numbers = torch.as_tensor(list(blocks), dtype=torch.int64)
        for plane in self._layers[layer][1]:
            plane.rows.index_copy_(0, numbers, plane.slots[slot : slot + len(numbers)])

    def flush(self) -> None:
        """Copies have been made when the methods return."""


def rows_of(cache: Any, blocks: int) -> list[Any]:
    """A layer's KV as bytes with a row for each block, without a copy: one such view, or several where K and V, or the parts
    of a state, lie apart. Raises Unusable for other layouts."""
    if isinstance(cache, (list, tuple)):
        return [rows for one in cache for rows in rows_of(one, blocks)]
    if cache.dim() > 1 and cache.shape[0] == 2 and blocks != 2 and cache.shape[1] % blocks == 0:
        return [*rows_of(cache[0], blocks), *rows_of(cache[1], blocks)]
    if cache.dim() < 2 or cache.shape[0] % blocks:
        raise Unusable(f"expected KV with {blocks} blocks in its first dimension, got a tensor of {tuple(cache.shape)}")
    if cache.shape[0] != blocks:  # blocks of the kernel, several to one of vLLM
        cache = cache.unflatten(0, (blocks, -1))
    inner = sorted(range(1, cache.dim()), key=lambda dim: (-cache.stride(dim), dim))
    dense = cache.permute(0, *inner)  # the order of memory
    if not dense[0].is_contiguous():
        raise Unusable(f"expected blocks whose KV lies together, got {tuple(cache.shape)} with strides {cache.stride()}")
    rows = dense.view(torch.uint8).flatten(1)
    if rows.data_ptr() != cache.data_ptr():
        raise Unusable("expected KV that can be read in place")
    return [rows]

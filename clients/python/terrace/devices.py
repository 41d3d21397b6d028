"""Finds the GPU memory of an object."""

from __future__ import annotations

import math
from typing import Any

from .errors import BadRequest


def span_of(memory: Any, nbytes: int | None) -> tuple[int, int]:
    """Returns the address and the number of bytes. `memory`: a PyTorch tensor or storage, an object with
    `__cuda_array_interface__`, or an address."""
    if isinstance(memory, int):
        if nbytes is None:
            raise BadRequest("expected the number of bytes with an address, got None")
        return memory, nbytes
    # PyTorch's own interface comes first, because its tensors do not have an array interface for every type.
    address, whole = _of_torch(memory) if hasattr(memory, "data_ptr") else _of_array(memory)
    if nbytes is not None and nbytes > whole:
        raise BadRequest(f"expected at most the {whole} bytes that the memory has, got {nbytes}")
    return address, whole if nbytes is None else nbytes


def _of_torch(memory: Any) -> tuple[int, int]:
    if not getattr(memory, "is_cuda", False):
        raise BadRequest('expected memory of a GPU, got memory of the host: use register_region, or device="host"')
    if hasattr(memory, "is_contiguous") and not memory.is_contiguous():
        raise BadRequest("expected a contiguous tensor, got one with gaps or in another order: use its untyped_storage()")
    nbytes = memory.nbytes
    return int(memory.data_ptr()), int(nbytes() if callable(nbytes) else nbytes)


def _of_array(memory: Any) -> tuple[int, int]:
    try:
        described = memory.__cuda_array_interface__
    except AttributeError:
        kind = type(memory).__name__
        raise BadRequest(
            f"expected memory of a GPU (a CUDA tensor, an object with __cuda_array_interface__, or an address), got {kind}"
        ) from None
    item = int(described["typestr"][2:])
    shape = described["shape"]
    packed = [item * math.prod(shape[i + 1 :]) for i in range(len(shape))]
    strides = described.get("strides")
    if strides is not None and any(n > 1 and have != want for n, have, want in zip(shape, strides, packed, strict=True)):
        raise BadRequest("expected a contiguous array, got one with gaps or in another order")
    return int(described["data"][0]), item * math.prod(shape)

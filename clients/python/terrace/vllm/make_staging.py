"""Makes staging memory where an engine's KV is."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch  # type: ignore[import-not-found]

from .._libterrace import DeviceMemory, Memory
from ..errors import Error
from .device_staging import DeviceStaging
from .plan import Plan, Unusable
from .staging import COUNTERS_BYTES, HostStaging, Staging
from .torch_kv_mover import CudaKvMover, TorchKvMover


LEAST_BYTES = 256 << 20  # of staging memory whose size follows from a step, unless all KV is smaller
STEPS = 2  # vLLM may queue a step while the one before is being computed
SHARE = 4  # one part in so many of the memory that is free becomes staging memory at most


@dataclass(frozen=True)
class Step:
    """The most that an engine computes at a time."""

    tokens: int
    requests: int


def staging_for(plan: Plan, kv_caches: dict[str, Any], blocks: int, nbytes: int | None, step: Step) -> Staging:
    """`blocks`: their number in the engine. `nbytes`: None takes what STEPS steps need. Raises Unusable."""
    devices = {device for cache in kv_caches.values() for device in _devices_of(cache)}
    kinds = {device.type for device in devices}
    if nbytes is None:
        slots = _slots_for(plan, blocks, step, min((_free_bytes(device) for device in devices), default=0))
    else:
        slots = (nbytes - COUNTERS_BYTES) // plan.slot_bytes
    if slots < 1:
        raise Unusable(f"expected staging_bytes for a block, which takes {plan.slot_bytes + COUNTERS_BYTES}, got {nbytes}")
    if kinds == {"cpu"}:
        memory = Memory(COUNTERS_BYTES + slots * plan.slot_bytes, name="terrace-vllm-staging")
        staging = torch.from_dlpack(memory)[COUNTERS_BYTES:].view(slots, plan.slot_bytes)
        return HostStaging(plan, memory, TorchKvMover(plan, kv_caches, blocks, staging))
    if kinds != {"cuda"} or len(devices) != 1:
        named = ", ".join(sorted(str(device) for device in devices))
        raise Unusable(f"expected KV in memory of the host or of one GPU of CUDA, got it in {named}")
    (device,) = devices
    return _on_gpu(plan, kv_caches, blocks, slots, device)


def _slots_for(plan: Plan, blocks: int, step: Step, free: int) -> int:
    completed = step.tokens // plan.chunk_tokens + min(step.requests, step.tokens)  # blocks, in a step
    nbytes = max(LEAST_BYTES, min(STEPS * completed * plan.slot_bytes, free // SHARE))
    return max(1, min(blocks, nbytes // plan.slot_bytes))


def _free_bytes(device: Any) -> int:
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _on_gpu(plan: Plan, kv_caches: dict[str, Any], blocks: int, slots: int, device: Any) -> Staging:
    told = getattr(torch.cuda.get_device_properties(device), "uuid", None)
    if told is None:
        raise Unusable("expected a PyTorch that tells the UUID of a GPU: use a newer one")
    uuid = "GPU-" + str(told).removeprefix("GPU-")
    try:
        # Does not use PyTorch's memory, which may lie in segments without a handle.
        memory = DeviceMemory(slots * plan.slot_bytes, uuid)
    except Error as problem:
        raise Unusable(f"expected {slots * plan.slot_bytes} bytes of {uuid} for staging_bytes: {problem}") from None
    staging = torch.as_tensor(memory, device=device).view(slots, plan.slot_bytes)
    return DeviceStaging(plan, memory, uuid, CudaKvMover(plan, kv_caches, blocks, staging))


def _devices_of(cache: Any) -> list[Any]:
    """Returns the devices of a layer's KV, which is one tensor or several."""
    if isinstance(cache, Sequence):
        return [device for one in cache for device in _devices_of(one)]
    return [cache.device]

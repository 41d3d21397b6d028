"""SGLang's HiCache on a machine without a GPU, for tests: its copies between device and host pool are CUDA kernels, all else
works. This replaces those copies by copies between tensors. A plugin, because the scheduler is a process of its own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import torch


def wrong_loads() -> bool:
    """What is loaded is changed on its way to the device: for the control that must fail."""
    return os.path.exists(os.environ["TERRACE_TEST_WRONG_LOADS"])


def pages_of(indices: torch.Tensor, page_size: int) -> torch.Tensor:
    return indices.reshape(-1, page_size)[:, 0] // page_size


def host_to_device(src_ptrs: Sequence[torch.Tensor], dst_ptrs: Sequence[torch.Tensor], src_indices: torch.Tensor,
                   dst_indices: torch.Tensor, layer_id: int, page_size: int) -> None:
    """Page-first K and V of one layer."""
    rows = pages_of(src_indices, page_size)
    for source, target in zip(src_ptrs, dst_ptrs, strict=True):
        taken = source[rows, layer_id].reshape(-1, *target.shape[1:])
        target[dst_indices] = torch.zeros_like(taken) if wrong_loads() else taken


def device_to_host(src_ptrs: Sequence[torch.Tensor], dst_ptrs: Sequence[torch.Tensor], src_indices: torch.Tensor,
                   dst_indices: torch.Tensor, page_size: int) -> None:
    """Of all layers, K's before V's, to page-first K and V."""
    rows = pages_of(dst_indices, page_size)
    layers = len(src_ptrs) // 2
    for target, of_layers in zip(dst_ptrs, (src_ptrs[:layers], src_ptrs[layers:]), strict=True):
        for layer, source in enumerate(of_layers):
            target[rows, layer] = source[src_indices].reshape(len(rows), page_size, *source.shape[1:])


def install() -> None:
    from sglang.srt.mem_cache.pool_host import common, mha

    def nothing(*arguments: Any, **settings: Any) -> None:
        """Memory is registered for a GPU, which is not there."""

    common._cuda_host_register = nothing
    mha.transfer_kv_per_layer_direct_pf_lf = host_to_device
    mha.transfer_kv_all_layer_direct_lf_pf = device_to_host

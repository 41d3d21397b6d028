"""vLLM's native offloading on a machine without a GPU, for tests: vLLM's own copies between device and host pool need one,
all else works. This replaces those copies by copies between tensors."""

from __future__ import annotations

import time
from typing import Any

import torch
from vllm.v1.kv_offload.base import OffloadingWorker, TransferResult
from vllm.v1.kv_offload.cpu.shared_offload_region import SharedOffloadRegion
from vllm.v1.kv_offload.tiering.spec import TieringOffloadingSpec

wrong_loads = False  #: what is loaded is changed on its way to the device: for the control that must fail


class CopyingWorker(OffloadingWorker):
    def __init__(self, caches: Any, region: SharedOffloadRegion) -> None:
        self._region = region
        self._groups = caches.group_data_refs
        self._device = [of.tensor.view(torch.int8).reshape(of.tensor.shape[0], -1) for of in caches.tensors]
        for flat, of in zip(self._device, caches.tensors):
            if flat.data_ptr() != of.tensor.data_ptr():
                raise NotImplementedError("expected device blocks that lie one after the other")
        self._host = [region.create_next_worker_view(of.page_size_bytes) for of in caches.tensors]
        self._done: list[TransferResult] = []

    def submit_store(self, job_id: int, src_spec: Any, dst_spec: Any) -> bool:
        self._copy(job_id, src_spec, dst_spec, self._device, self._host)
        return True

    def submit_load(self, job_id: int, src_spec: Any, dst_spec: Any, expedited: bool = False) -> bool:
        self._copy(job_id, dst_spec, src_spec, self._host, self._device)
        return True

    def _copy(self, job: int, device_spec: Any, host_spec: Any, source: list[Any], target: list[Any]) -> None:
        began = time.monotonic()
        blocks = torch.as_tensor(device_spec.block_ids, dtype=torch.long).split(list(device_spec.group_sizes))
        names = host_spec.chunk_ids if hasattr(host_spec, "chunk_ids") else host_spec.block_ids
        rows = torch.as_tensor(names, dtype=torch.long).split(list(device_spec.group_sizes))
        nbytes = 0
        for refs, of_device, of_host in zip(self._groups, blocks, rows):
            read, written = (of_device, of_host) if source is self._device else (of_host, of_device)
            for tensor in {ref.tensor_idx for ref in refs}:
                taken = source[tensor][read]
                if wrong_loads and source is self._host:
                    taken = torch.zeros_like(taken)
                target[tensor][written] = taken
                nbytes += taken.numel()
        self._done.append(TransferResult(job, True, nbytes, max(time.monotonic() - began, 1e-6)))

    def get_finished(self) -> list[TransferResult]:
        done, self._done = self._done, []
        return done

    def wait(self, job_ids: set[int]) -> None:
        pass

    def shutdown(self) -> None:
        self._device.clear()
        self._host.clear()
        self._region.cleanup()


class CpuTieringSpec(TieringOffloadingSpec):
    def get_worker(self, kv_caches: Any) -> OffloadingWorker:
        if self._worker is None:
            region = SharedOffloadRegion(
                engine_id=self._engine_id, num_chunks=self.num_chunks, rank=self.config.parallel.rank,
                kv_bytes_per_chunk=self.kv_bytes_per_chunk, cpu_page_size=self.cpu_page_size_per_worker,
            )
            self._worker = CopyingWorker(kv_caches, region)
        return self._worker

"""Ways to run vLLM that it does not take on processors by itself: its V2 model runner, whose kernels Triton interprets here, and asynchronous
scheduling. Or a way of other versions: random roots of block hashes. `choose` is called before vLLM is imported, `scheduling` and `roots` after
that."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any


class _Interpreter:
    """Stands for a driver of Triton; vLLM asks it for no more."""

    @staticmethod
    def is_active() -> bool:
        return True


def choose() -> None:
    """TERRACE_TEST_RUNNER says which model runner: `V1` or `V2`."""
    runner = os.environ.get("TERRACE_TEST_RUNNER", "V1")
    os.environ["VLLM_USE_V2_MODEL_RUNNER"] = str(int(runner == "V2"))
    if runner == "V2":
        os.environ["TRITON_INTERPRET"] = "1"
        from triton.backends import backends

        backends["cpu"] = SimpleNamespace(driver=_Interpreter, compiler=None)


def roots() -> None:
    """Random roots of block hashes if TERRACE_TEST_RANDOM_ROOT is set, as vLLM before 0.32 has them without PYTHONHASHSEED."""
    if "TERRACE_TEST_RANDOM_ROOT" in os.environ:
        from vllm.v1.core import kv_cache_utils

        kv_cache_utils.resolve_none_hash_seed = lambda hash_fn: os.urandom(32).hex()


def scheduling() -> None:
    """Asynchronous if TERRACE_TEST_ASYNCHRONOUS is set: vLLM's platform of processors switches that off."""
    if "TERRACE_TEST_ASYNCHRONOUS" not in os.environ:
        return
    from vllm.platforms.cpu import CpuPlatform

    right = CpuPlatform.check_and_update_config.__func__

    def check_and_update_config(cls: Any, vllm_config: Any) -> None:
        right(cls, vllm_config)
        vllm_config.scheduler_config.async_scheduling = True

    CpuPlatform.check_and_update_config = classmethod(check_and_update_config)

"""A vLLM engine in one process, for tests: a line of JSON on descriptor IN for each command, and one on OUT for its answer.
vllm_engine.py MODEL SOCKET IN OUT; TERRACE_TEST_DOOR says how it reaches Terrace: `tier`, `connector`, or `none`. vllm_ways.py has what else
the environment says."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import sys
import time
from typing import Any

import vllm_ways

vllm_ways.choose()
from vllm import LLM, SamplingParams  # noqa: E402
from vllm.config import KVTransferConfig  # noqa: E402
from vllm.lora.request import LoRARequest  # noqa: E402

BLOCK = 32
GARBAGE = 0x4141414141414141  # numbers of 12
LOOKUP_SECONDS = 30.0  # a late answer is a miss, which a busy machine must not make of it


class Engine:
    def __init__(self, model: str, socket: str) -> None:
        self.door = DOORS[os.environ.get("TERRACE_TEST_DOOR", "tier")]()
        self.adapter = os.environ.get("TERRACE_TEST_ADAPTER", "")
        adapters = {"enable_lora": True, "max_lora_rank": 8, "max_loras": 1} if self.adapter else {}
        step = os.environ.get("TERRACE_TEST_STEP_TOKENS")
        steps = {"max_num_batched_tokens": int(step)} if step else {}
        ranks = int(os.environ.get("TERRACE_TEST_RANKS", "1"))
        stages = int(os.environ.get("TERRACE_TEST_STAGES", "1"))
        self.llm = LLM(
            model, skip_tokenizer_init=True, dtype="bfloat16", max_model_len=2560, max_num_seqs=8, block_size=BLOCK,
            num_gpu_blocks_override=256, enforce_eager=True, enable_prefix_caching=True, seed=0,
            distributed_executor_backend="uni" if ranks * stages == 1 else "mp", tensor_parallel_size=ranks,
            pipeline_parallel_size=stages, disable_log_stats=False, kv_transfer_config=self.door.config(socket),
            **adapters, **steps,
        )

    def generate(self, prompts: list[list[int]], tokens: int = 16, adapted: bool = False,
                 parameters: list[dict] | None = None) -> dict:
        """`parameters`: `kv_transfer_params` of each prompt."""
        settings = [SamplingParams(temperature=0, max_tokens=tokens, ignore_eos=True, detokenize=False,
                                   extra_args={"kv_transfer_params": parameters[i]} if parameters else None)
                    for i in range(len(prompts))]
        adapter = LoRARequest("support", 1, self.adapter) if adapted else None
        began = time.monotonic()
        done = self.llm.generate([{"prompt_token_ids": prompt} for prompt in prompts], settings, use_tqdm=False, lora_request=adapter)
        return {
            "tokens": [list(one.outputs[0].token_ids) for one in done],
            "cached": [one.num_cached_tokens for one in done],
            "seconds": time.monotonic() - began,
        }

    def settle(self) -> dict:
        """Until no transfer is under way."""
        return {"pending": self.door.settle(self)}

    def wait_for_lookups(self, seconds: float = LOOKUP_SECONDS) -> dict:
        """From now on a lookup counts as a miss after so long."""
        self.door.wait_for_lookups(self, seconds)
        return {}

    def run_dry(self) -> dict:
        """Makes the steps that an engine in a process of its own makes after the last request."""
        core = self.llm.llm_engine.engine_core.engine_core
        steps = 0
        while core.scheduler.has_requests():
            core.step_fn()
            steps += 1
        return {"steps": steps, "kept": self.door.kept()}

    def forget(self) -> dict:
        """What comes next can only come from the daemon."""
        return {"reset": self.llm.reset_prefix_cache(reset_connector=self.door.has_a_pool)}

    def wrong_loads(self, on: bool) -> dict:
        self.door.wrong_loads(on)
        return {}

    def failing_loads(self, kept: int | None) -> dict:
        """From now on all but the first `kept` chunks of a load do not come, and their blocks have garbage in them. None: all come."""
        self.door.failing_loads(kept)
        return {}

    def die_after_storing(self, chunks: int) -> dict:
        """This process is killed as soon as the daemon has said that it has so many more chunks."""
        self.door.die_after_storing(chunks)
        return {}

    def kill_worker(self, rank: int) -> dict:
        """Of several."""
        core = self.llm.llm_engine.engine_core.engine_core
        os.kill(core.model_executor.workers[rank].proc.pid, signal.SIGKILL)
        return {}

    def way(self) -> dict:
        config = self.llm.llm_engine.vllm_config
        return {"runner": "V2" if config.use_v2_model_runner else "V1", "asynchronous": config.scheduler_config.async_scheduling}

    def metrics(self) -> dict:
        """Counters of vLLM's /metrics, those without labels beyond the engine's."""
        return {one.name: one.value for one in self.llm.get_metrics() if hasattr(one, "value")}

    def clear(self) -> dict:
        """With what the daemon has."""
        return {"reset": self.llm.reset_prefix_cache(reset_connector=True)}

    def end(self) -> dict:
        self.llm.llm_engine.engine_core.shutdown()
        return {}


class Tier:
    has_a_pool = True

    def config(self, socket: str) -> KVTransferConfig:
        import cpu_offloading

        self._offloading = cpu_offloading
        extra = {
            "spec_name": "CpuTieringSpec", "spec_module_path": "cpu_offloading", "cpu_bytes_to_use": 32 << 20,
            "secondary_tiers": [{"type": "TerraceTier", "module_path": "terrace.vllm.tier", "socket": socket,
                                 "lookup_seconds": LOOKUP_SECONDS}],
        }
        return KVTransferConfig(kv_connector="OffloadingConnector", kv_role="kv_both", kv_connector_extra_config=extra)

    def settle(self, engine: Engine) -> bool:
        """By empty steps. The connector knows also what has not come to the pool yet: the tier's manager has heard nothing of that."""
        connector = engine.llm.llm_engine.engine_core.engine_core.scheduler.connector
        end = time.monotonic() + 30
        while connector.has_pending_push_work() and time.monotonic() < end:
            engine.generate([[1, 2, 3]], 1)
        return connector.has_pending_push_work()

    def wait_for_lookups(self, engine: Engine, seconds: float) -> None:
        scheduler = engine.llm.llm_engine.engine_core.engine_core.scheduler
        (tier,) = scheduler.connector.connector_scheduler.manager.secondary_tiers
        tier._cache._limits = dataclasses.replace(tier._cache._limits, lookup=seconds)

    def wrong_loads(self, on: bool) -> None:
        self._offloading.wrong_loads = on


class Connector:
    has_a_pool = False

    def config(self, socket: str) -> KVTransferConfig:
        options = json.loads(os.environ.get("TERRACE_TEST_OPTIONS", "{}"))
        return KVTransferConfig(
            kv_connector="TerraceConnector", kv_connector_module_path="terrace.vllm.connector", kv_role="kv_both",
            kv_load_failure_policy="recompute", kv_connector_extra_config={"socket": socket, "lookup_seconds": LOOKUP_SECONDS, **options},
        )

    def settle(self, engine: Engine) -> bool:
        from vllm.distributed.kv_transfer import get_kv_transfer_group

        return not get_kv_transfer_group()._worker.drain(30)

    def wait_for_lookups(self, engine: Engine, seconds: float) -> None:
        engine.llm.llm_engine.engine_core.engine_core.scheduler.connector._scheduler._lookup_seconds = seconds

    def kept(self) -> int:
        from vllm.distributed.kv_transfer import get_kv_transfer_group

        return get_kv_transfer_group()._worker._stores.kept

    def wrong_loads(self, on: bool) -> None:
        from vllm.distributed.kv_transfer import get_kv_transfer_group

        mover = get_kv_transfer_group()._worker._staging.mover
        if not on:
            del mover.scatter
            return
        right = mover.scatter

        def wrong(layer: str, rows: Any, slot: int) -> None:
            right(layer, rows, slot)
            for plane in mover._layers[layer][1]:
                plane.rows[rows] = 0

        mover.scatter = wrong

    def die_after_storing(self, chunks: int) -> None:
        from vllm.distributed.kv_transfer import get_kv_transfer_group

        worker = get_kv_transfer_group()._worker
        end, until = worker._stores._on_stored, worker.counters.stored_chunks + chunks

        def die(result: Any) -> None:
            end(result)
            if worker.counters.stored_chunks >= until:
                os.kill(os.getpid(), signal.SIGKILL)

        worker._stores._on_stored = die

    def failing_loads(self, kept: int | None) -> None:
        from vllm.distributed.kv_transfer import get_kv_transfer_group

        worker = get_kv_transfer_group()._worker
        mover = worker._staging.mover
        if kept is None:
            del mover.scatter, worker._end_load
            worker._layered._on_end = worker._end_load
            return
        scatter, end_load = mover.scatter, worker._end_load

        def garbage(layer: str, rows: Any, slot: int) -> None:
            scatter(layer, rows, slot)
            for plane in mover._layers[layer][1]:
                plane.rows[rows[kept:]] = GARBAGE

        def fail(load: Any) -> None:
            load.fail(kept)
            end_load(load)

        mover.scatter, worker._end_load, worker._layered._on_end = garbage, fail, fail


class NoDoor:
    has_a_pool = False

    def config(self, socket: str) -> None:
        return None

    def settle(self, engine: Engine) -> bool:
        return False


DOORS = {"tier": Tier, "connector": Connector, "none": NoDoor}


def pools() -> list[str]:
    """The files of this process's host pools."""
    with open("/proc/self/maps") as maps:
        return sorted({line.split()[-1] for line in maps if "/dev/shm/vllm_offload_" in line})


def main(model: str, socket: str, inward: str, outward: str) -> None:
    vllm_ways.scheduling()
    vllm_ways.roots()
    engine = Engine(model, socket)
    with os.fdopen(int(inward)) as commands, os.fdopen(int(outward), "w") as answers:
        print(json.dumps({"pools": pools(), "clients": [os.getpid()]}), file=answers, flush=True)
        for line in commands:
            command, arguments = json.loads(line)
            print(json.dumps(getattr(engine, command)(**arguments)), file=answers, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

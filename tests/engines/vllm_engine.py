"""A vLLM engine in one process, for tests: a line of JSON on descriptor IN for each command, and one on OUT for its answer.
vllm_engine.py MODEL SOCKET IN OUT"""

import json
import os
import sys
import time

from vllm import LLM, SamplingParams
from vllm.config import KVTransferConfig

import cpu_offloading

BLOCK = 32


class Engine:
    def __init__(self, model: str, socket: str) -> None:
        extra = {
            "spec_name": "CpuTieringSpec", "spec_module_path": "cpu_offloading", "cpu_bytes_to_use": 32 << 20,
            "secondary_tiers": [{"type": "TerraceTier", "module_path": "terrace.vllm.tier", "socket": socket}],
        }
        self.llm = LLM(
            model, skip_tokenizer_init=True, dtype="bfloat16", max_model_len=2560, max_num_seqs=8, block_size=BLOCK,
            num_gpu_blocks_override=256, enforce_eager=True, enable_prefix_caching=True, seed=0,
            distributed_executor_backend="uni",
            kv_transfer_config=KVTransferConfig(
                kv_connector="OffloadingConnector", kv_role="kv_both", kv_connector_extra_config=extra
            ),
        )

    def generate(self, prompts: list[list[int]], tokens: int = 16) -> dict:
        settings = SamplingParams(temperature=0, max_tokens=tokens, ignore_eos=True, detokenize=False)
        began = time.monotonic()
        done = self.llm.generate([{"prompt_token_ids": prompt} for prompt in prompts], settings, use_tqdm=False)
        return {
            "tokens": [list(one.outputs[0].token_ids) for one in done],
            "cached": [one.num_cached_tokens for one in done],
            "seconds": time.monotonic() - began,
        }

    def settle(self) -> dict:
        """Empty steps until no transfer is under way."""
        scheduler = self.llm.llm_engine.engine_core.engine_core.scheduler
        manager = scheduler.connector.connector_scheduler.manager
        end = time.monotonic() + 30
        while manager.has_pending_work() and time.monotonic() < end:
            self.generate([[1, 2, 3]], 1)
        return {"pending": manager.has_pending_work()}

    def forget(self) -> dict:
        """Empties the device's cache and the host pool: what comes next can only come from the daemon."""
        return {"reset": self.llm.reset_prefix_cache(reset_connector=True)}

    def wrong_loads(self, on: bool) -> dict:
        cpu_offloading.wrong_loads = on
        return {}

    def end(self) -> dict:
        self.llm.llm_engine.engine_core.shutdown()
        return {}


def pools() -> list[str]:
    """The files of this process's host pools."""
    with open("/proc/self/maps") as maps:
        return sorted({line.split()[-1] for line in maps if "/dev/shm/vllm_offload_" in line})


def main(model: str, socket: str, inward: str, outward: str) -> None:
    engine = Engine(model, socket)
    with os.fdopen(int(inward)) as commands, os.fdopen(int(outward), "w") as answers:
        print(json.dumps({"pools": pools(), "clients": [os.getpid()]}), file=answers, flush=True)
        for line in commands:
            command, arguments = json.loads(line)
            print(json.dumps(getattr(engine, command)(**arguments)), file=answers, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""An SGLang engine, for tests: a line of JSON on descriptor IN for each command, and one on OUT for its answer.
sglang_engine.py MODEL SOCKET IN OUT"""

import json
import os
import sys
import time

import psutil
import sglang

PAGE = 32


class Engine:
    def __init__(self, model: str, socket: str) -> None:
        extra = {
            "backend_name": "terrace", "module_path": "terrace.sglang.hicache", "class_name": "TerraceHiCache",
            "interface_v1": 1, "allocator": "shm", "prefetch_threshold": PAGE, "socket": socket,
            "lookup_seconds": 10.0,  # a late answer is a miss, which a busy machine must not make of it
            **json.loads(os.environ.get("TERRACE_TEST_EXTRA", "{}")),
        }
        self.engine = sglang.Engine(
            model_path=model, skip_tokenizer_init=True, device="cpu", attention_backend="torch_native",
            sampling_backend="pytorch", grammar_backend="none", disable_cuda_graph=True, disable_overlap_schedule=True,
            page_size=PAGE, max_total_tokens=8192, mem_fraction_static=0.2, max_running_requests=4, context_length=2560,
            dtype="bfloat16", log_level="info", random_seed=0, enable_cache_report=True, enable_hierarchical_cache=True,
            hicache_ratio=2.0, hicache_write_policy="write_through", hicache_io_backend="direct",
            hicache_mem_layout="page_first_direct", hicache_storage_prefetch_policy="wait_complete",
            tp_size=int(os.environ.get("TERRACE_TEST_RANKS", "1")), hicache_storage_backend="dynamic", hicache_storage_backend_extra_config=json.dumps(extra),
        )

    def generate(self, prompts: list[list[int]], tokens: int = 16) -> dict:
        settings = {"temperature": 0, "max_new_tokens": tokens, "ignore_eos": True}
        began = time.monotonic()
        done = self.engine.generate(input_ids=prompts, sampling_params=settings)
        told = [one["meta_info"] for one in done]
        return {
            "tokens": [one["output_ids"] for one in done],
            "cached": [one.get("cached_tokens", 0) for one in told],
            "stored": [(one.get("cached_tokens_details") or {}).get("storage", 0) for one in told],
            "seconds": time.monotonic() - began,
        }

    def forget(self) -> dict:
        """Empties the device's cache and the host pool: what comes next can only come from the daemon."""
        return {"reset": bool(self.engine.flush_cache().success)}

    def end(self) -> dict:
        self.engine.shutdown()
        return {}


def clients() -> list[int]:
    """The processes that have a socket to the daemon."""
    return [child.pid for child in psutil.Process().children(recursive=True)]


def main(model: str, socket: str, inward: str, outward: str) -> None:
    engine = Engine(model, socket)
    with os.fdopen(int(inward)) as commands, os.fdopen(int(outward), "w") as answers:
        print(json.dumps({"pools": [], "clients": clients()}), file=answers, flush=True)
        for line in commands:
            command, arguments = json.loads(line)
            print(json.dumps(getattr(engine, command)(**arguments)), file=answers, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Measures the time to the first token of a prompt of 2,048 tokens in a real vLLM on processors: with KV from
Terrace, with vLLM's own prefix cache (the limit), and computed."""

from __future__ import annotations

import sys
from statistics import median

from daemon import Daemon
from engine import Engine
from figures import report
from waiting import prompts_of

ROUNDS = 9
TOKENS = 2048


def seconds(engine: Engine, prompt: list[int], cached: int) -> float:
    made = engine.call("generate", prompts=[prompt], tokens=1)
    (found,) = made["cached"]
    assert found == 0 if cached == 0 else found >= cached, found  # the tier may find the last block as well
    return float(made["seconds"]) * 1e3


def main() -> None:
    server = Daemon(256 << 20)
    try:
        for door in ("connector", "tier"):
            engine = Engine(server.socket, TERRACE_TEST_DOOR=door).ready()
            try:
                measure(door, engine)
            finally:
                engine.kill()
    finally:
        server.stop()


def measure(door: str, engine: Engine) -> None:
    whole = (TOKENS - 1) // 32 * 32
    warm: list[float] = []
    own: list[float] = []
    computed: list[float] = []
    for i, prompt in enumerate(prompts_of(1, ROUNDS + 1, TOKENS)):
        engine.call("forget")
        first = seconds(engine, prompt, 0)
        engine.call("generate", prompts=[prompt], tokens=8)  # the tier stores in the steps after the first
        engine.call("settle")
        engine.call("forget")
        again = seconds(engine, prompt, whole)
        by_itself = seconds(engine, prompt, whole)
        if i > 0:  # the first round warms up
            computed.append(first)
            warm.append(again)
            own.append(by_itself)
    report(f"vllm_warm_{door}", "ms", warm, own, computed=round(median(computed), 3))


if __name__ == "__main__":
    sys.exit(main())

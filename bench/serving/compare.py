"""Plays the same conversations to a vLLM server in each way of keeping KV, and says what a user notices.

    compare.py MODEL [--way NAME]... [--rounds N] [--json FILE]

MODEL: a folder made by model.py. Prints a table; `run` beside this file prepares what it needs.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from dataclasses import asdict, dataclass, field
from pathlib import Path

import psutil
from transformers import AutoTokenizer

import conversations as load
import ways

BLOCK_TOKENS = 32
ENGINE_BLOCKS = 96
HOST_BYTES = 1 << 30
SHAPE = load.Shape(conversations=10, turns=4, system_prompts=2, system_tokens=512, turn_tokens=(160, 360), think_seconds=4.0, answer_tokens=16)
SEED = 1


@dataclass
class Answer:
    first_seconds: float  #: from the request to its first token
    seconds: float
    prompt_tokens: int
    cached_tokens: int  #: of them, those that were not computed
    text: str


@dataclass
class Run:
    answers: list[list[Answer]]  #: of each conversation, in order
    seconds: float
    engine_seconds: float  #: of processors
    cache_seconds: float
    cache_bytes: int  #: of memory, of the cache's process
    disk_bytes: int


@dataclass
class Figures:
    way: str
    first_p50: float
    first_p99: float
    tokens_per_second: float
    not_computed: float
    engine_seconds: float
    cache_seconds: float
    cache_bytes: int
    disk_bytes: int
    equal_answers: float
    firsts: list[float] = field(default_factory=list)


class Engine:
    """A vLLM server that listens when the context is entered."""

    def __init__(self, model: str, options: list[str]) -> None:
        self.port = ways.free_port()
        self._log = tempfile.NamedTemporaryFile(prefix="terrace-serving-vllm-", suffix=".log")
        command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", model, "--served-model-name", "model",
                   "--host", "127.0.0.1", "--port", str(self.port), "--dtype", "bfloat16", "--max-model-len", str(SHAPE.most_tokens),
                   "--block-size", str(BLOCK_TOKENS), "--num-gpu-blocks-override", str(ENGINE_BLOCKS), "--max-num-seqs", "4",
                   "--enforce-eager", "--enable-prompt-tokens-details", "--disable-uvicorn-access-log", *options]
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log)

    def __enter__(self) -> Engine:
        ways.until_answers(f"http://127.0.0.1:{self.port}/health", self._process, Path(self._log.name))
        return self

    def __exit__(self, *_: object) -> None:
        children = psutil.Process(self._process.pid).children(recursive=True)
        ways.end(self._process)
        for child in psutil.wait_procs(children, 30)[1]:
            child.kill()

    def ask(self, prompt: list[int], tokens: int) -> Answer:
        body = {"model": "model", "prompt": prompt, "max_tokens": tokens, "temperature": 0, "ignore_eos": True, "stream": True,
                "stream_options": {"include_usage": True}}
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/v1/completions", data=json.dumps(body).encode(),
                                         headers={"content-type": "application/json"})
        began = time.monotonic()
        first, text, usage = None, "", {}
        with urllib.request.urlopen(request) as lines:
            for line in lines:
                if not line.startswith(b"data: {"):
                    continue
                part = json.loads(line.removeprefix(b"data: "))
                if part["choices"]:
                    first = first or time.monotonic() - began
                    text += part["choices"][0]["text"]
                usage = part.get("usage") or usage
        if first is None:
            raise RuntimeError(f"the engine gave no token for a prompt of {len(prompt)} tokens")
        details = usage.get("prompt_tokens_details") or {}
        return Answer(first, time.monotonic() - began, usage["prompt_tokens"], details.get("cached_tokens") or 0, text)

    def processor_seconds(self) -> float:
        return processor_seconds(self._process.pid)


def processor_seconds(process: int) -> float:
    """Of a process and its children."""
    parent = psutil.Process(process)
    return sum(sum(one.cpu_times()[:2]) for one in [parent, *parent.children(recursive=True)])


def memory_bytes(process: int) -> int:
    """Of a process and its children; what several of them map counts once."""
    parent = psutil.Process(process)
    return sum(one.memory_full_info().pss for one in [parent, *parent.children(recursive=True)])


def disk_bytes(folder: Path) -> int:
    return sum(file.stat().st_blocks * 512 for file in folder.rglob("*") if file.is_file())


def play(engine: Engine, conversations: list[load.Conversation]) -> list[list[Answer]]:
    """Each conversation is a user who reads an answer, thinks, and asks again."""
    answers: list[list[Answer]] = [[] for _ in conversations]
    failures: list[BaseException] = []

    def converse(number: int) -> None:
        try:
            for turn in conversations[number]:
                time.sleep(turn.think_seconds)
                answers[number].append(engine.ask(turn.prompt, SHAPE.answer_tokens))
        except BaseException as failure:
            failures.append(failure)

    users = [threading.Thread(target=converse, args=[number]) for number in range(len(conversations))]
    for user in users:
        user.start()
    for user in users:
        user.join()
    if failures:
        raise failures[0]
    return answers


def run(way: str, model: str, conversations: list[load.Conversation], warm: list[int]) -> Run:
    with ways.WAYS[way](HOST_BYTES) as cache, Engine(model, cache.options) as engine:
        engine.ask(warm, SHAPE.answer_tokens)  # what an engine prepares at its first request
        engine_before = engine.processor_seconds()
        cache_before = processor_seconds(cache.process) if cache.process else 0.0
        began = time.monotonic()
        answers = play(engine, conversations)
        return Run(
            answers, time.monotonic() - began, engine.processor_seconds() - engine_before,
            processor_seconds(cache.process) - cache_before if cache.process else 0.0,
            memory_bytes(cache.process) if cache.process else 0, disk_bytes(cache.folder) if cache.folder else 0,
        )


def figures_of(way: str, runs: list[Run], right: list[Run]) -> Figures:
    """`right`: runs without a cache, whose answers are compared."""
    answers = [answer for one in runs for conversation in one.answers for answer in conversation]
    expected = [answer.text for conversation in right[0].answers for answer in conversation] * len(runs)
    firsts = sorted(answer.first_seconds for answer in answers)
    return Figures(
        way, statistics.median(firsts), firsts[min(len(firsts) - 1, int(len(firsts) * 0.99))],
        sum(SHAPE.answer_tokens + answer.prompt_tokens for answer in answers) / sum(one.seconds for one in runs),
        sum(answer.cached_tokens for answer in answers) / sum(answer.prompt_tokens for answer in answers),
        statistics.mean(one.engine_seconds for one in runs), statistics.mean(one.cache_seconds for one in runs),
        max(one.cache_bytes for one in runs), max(one.disk_bytes for one in runs),
        sum(answer.text == text for answer, text in zip(answers, expected, strict=True)) / len(answers), firsts,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--way", action="append", choices=list(ways.WAYS))
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    text = AutoTokenizer.from_pretrained(given.model)(load.pages())["input_ids"]
    conversations = load.make(SHAPE, text, SEED)
    warm = text[-SHAPE.system_tokens :]
    distinct = load.distinct_tokens(conversations, SHAPE)
    say(f"{SHAPE.conversations} conversations of {SHAPE.turns} turns; KV of {distinct} tokens, the engine has room for "
        f"{ENGINE_BLOCKS * BLOCK_TOKENS}")
    runs: dict[str, list[Run]] = {}
    for number in range(given.rounds):
        for way in given.way or ways.WAYS:
            say(f"round {number + 1} of {given.rounds}: {way} ...")
            runs.setdefault(way, []).append(run(way, given.model, conversations, warm))
            one = figures_of(way, runs[way][-1:], runs.get("no cache", runs[way]))
            say(f"  first token {one.first_p50:.2f} s, {one.not_computed:.0%} not computed, {runs[way][-1].seconds:.0f} s")
    table = [figures_of(way, made, runs.get("no cache", made)) for way, made in runs.items()]
    show(table)
    if given.json:
        given.json.write_text(json.dumps([asdict(one) for one in table], indent=1))


def show(table: list[Figures]) -> None:
    print("| way | first token p50 | p99 | tokens a second | prompt not computed | processor s, engine | cache | memory of the cache | "
          "answers equal |\n|---|---|---|---|---|---|---|---|---|")
    for one in table:
        print(f"| {one.way} | {one.first_p50:.2f} s | {one.first_p99:.2f} s | {one.tokens_per_second:.0f} | {one.not_computed:.0%} | "
              f"{one.engine_seconds:.0f} | {one.cache_seconds:.2f} | {one.cache_bytes / (1 << 20):.0f} MiB | {one.equal_answers:.0%} |")


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()

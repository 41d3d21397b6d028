"""LMCache's multiprocess server with its own client, as its `lmcache bench server` has them."""

from __future__ import annotations

import contextlib
import itertools
import json
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

import numpy
import torch
from lmcache.cli.commands.bench.server_bench.client import RequestContext, ServerBenchClient
from lmcache.cli.commands.bench.server_bench.config import BenchConfig
from lmcache.cli.commands.bench.server_bench.helpers import _make_key

from peer import BLOCK_TOKENS, CHUNK_TOKENS, LAYERS, Peer, Shape, Words
from store import Store, free_port

SECONDS = 120.0
Asked = tuple[RequestContext, Any]


class LmcachePeer(Peer):
    name = "lmcache"

    def __init__(self, shape: Shape, host_gib: float, disk: str = "", store: Store | None = None) -> None:
        """The server's memory is a segment of shared memory, which its client copies to and from. Its disk is
        the adapter with threads in C++, without the page cache. Its client of a store is in C++ as well, with the
        eight threads that it has by default."""
        port, self._http = free_port(), free_port()
        self._log = tempfile.NamedTemporaryFile(prefix="terrace-peer-", suffix=".log")
        command = [sys.executable, "-m", "lmcache.cli.main", "server", "--host", "127.0.0.1", "--port", str(port),
                   "--http-host", "127.0.0.1", "--http-port", str(self._http), "--l1-size-gb", str(host_gib),
                   "--no-l1-use-lazy", "--eviction-policy", "LRU", "--supported-transfer-mode", "auto",
                   "--shm-name", f"terrace-peer-{port}", "--disable-observability"]
        self._disk = Path(disk, "lmcache") if disk else None
        if disk:
            adapter = {"type": "fs_native", "base_path": str(self._disk), "num_workers": 4, "use_odirect": True}
            command += ["--l2-adapter", json.dumps(adapter)]
        if store:
            command += ["--l2-adapter", json.dumps({"type": "resp", "host": "127.0.0.1", "port": store.port})]
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log)
        self.pid = self._process.pid
        self._numbers = itertools.count(1)
        config = BenchConfig(
            rpc_url=f"tcp://127.0.0.1:{port}", http_url=f"http://127.0.0.1:{self._http}", mode="cpu",
            transfer_mode="engine_driven", tp_size=1, use_mla=False, num_tokens=CHUNK_TOKENS,
            kvcache_shape_spec=f"(2,{shape.blocks},{BLOCK_TOKENS},{shape.heads},{shape.head_size}):bfloat16:{LAYERS}",
            num_blocks=shape.blocks, block_size=BLOCK_TOKENS,
        )
        self._await()
        self._client = ServerBenchClient(config, lambda line: None)
        self._client.start()
        for layer in self._client._workers[0].kv_caches.values():
            layer.fill_(1)  # touches its pages
        self._found: Asked | None = None
        self._chunks = 0

    def request(self, tokens: list[int]) -> Asked:
        made = RequestContext(
            sequence_id=0, request_id=f"request-{next(self._numbers)}", request_kind="bench", token_ids=tuple(tokens),
            num_full_tokens=len(tokens), total_chunks=len(tokens) // CHUNK_TOKENS, chunk_size=CHUNK_TOKENS, block_offset=0,
            num_blocks=len(tokens) // BLOCK_TOKENS,
        )
        return made, _make_key(made.token_ids, made.request_id, start=0, end=made.num_full_tokens)

    def store(self, request: Asked) -> bool:
        context, _ = request
        done = self._client.store(context, 0, context.num_full_tokens)
        self._client.end_session(context)
        return done is not None and done.succeeded

    def lookup(self, request: Asked) -> int:
        context, key = request
        calls = self._client._req_client
        calls.lookup(key, 1).result(timeout=SECONDS)
        self._chunks = int(calls.wait_prefetch_status(context.request_id, SECONDS).result(timeout=SECONDS))
        self._found = request
        return self._chunks

    def release(self) -> None:
        context, key = self._take()
        calls = self._client._req_client
        calls.free_lookup_locks(key, 1).result(timeout=SECONDS)
        calls.end_session(context.request_id).result(timeout=SECONDS)

    def load(self) -> None:
        context, _ = self._take()
        done = self._client.retrieve(context, 0, self._chunks * CHUNK_TOKENS)
        assert done is not None and done.succeeded, done
        self._client.end_session(context)

    def forget(self) -> None:
        self._call("/cache/clear", {})

    def await_disk(self, prompts: int, chunks: int) -> None:
        assert self._disk is not None
        while not self._disk.exists() or sum(path.suffix == ".data" for path in self._disk.iterdir()) < prompts * chunks:
            time.sleep(0.002)

    def forget_memory(self, request: Asked) -> None:
        time.sleep(0.3)  # the server releases its write locks after the files are there
        self.forget()

    def kv(self) -> list[Words]:
        halves = [half for layer in self._client._workers[0].kv_caches.values() for half in layer]
        return [half.view(torch.int64).numpy().view(numpy.uint64).reshape(half.shape[0], -1) for half in halves]

    def close(self) -> None:
        self._client.close()
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _take(self) -> Asked:
        assert self._found is not None
        found, self._found = self._found, None
        return found

    def _await(self) -> None:
        end = time.monotonic() + SECONDS
        while True:
            with contextlib.suppress(OSError):
                self._call("/healthcheck")
                return
            if self._process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"LMCache's server does not serve, see {self._log.name}")
            time.sleep(0.1)

    def _call(self, path: str, body: dict[str, str] | None = None) -> object:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self._http}{path}", data=data,
                                         headers={"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            return json.loads(answer.read() or b"null")

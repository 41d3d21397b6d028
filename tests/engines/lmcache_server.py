"""A real LMCache server with Terrace as its second level, and LMCache's own client for it."""

from __future__ import annotations

import contextlib
import itertools
import json
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

import torch
from daemon import PATIENCE
from lmcache.cli.commands.bench.server_bench.client import ServerBenchClient
from lmcache.cli.commands.bench.server_bench.config import BenchConfig

CHUNKS = 8  # of a prompt, with 256 tokens each
CHUNK_BYTES = 512 << 10
BLOCKS = 256
START_SECONDS = 240  # on a busy machine; 6 on a quiet one

_requests = itertools.count(1)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def connector(daemon: str, **params: Any) -> dict[str, Any]:
    """The second level of a server that uses Terrace's plugin. `params`: further ones of the connector."""
    return {"type": "native_plugin", "module_path": "terrace.lmcache.connector", "class_name": "TerraceConnector",
            "adapter_params": {"socket": daemon, "revision": "of the tests", **params}}


class LmcacheServer:
    """`prompt`: a number; each has tokens and KV of its own."""

    def __init__(self, adapter: dict[str, Any], workers: int = 1) -> None:
        """`adapter`: of its second level. `workers`: of its client, each with KV of its own."""
        self._workers = workers
        self.port, self.http = free_port(), free_port()
        self.log = tempfile.NamedTemporaryFile(prefix="terrace-lmcache-", suffix=".log")
        command = [sys.executable, "-m", "lmcache.cli.main", "server", "--host", "127.0.0.1", "--port", str(self.port),
                   "--http-host", "127.0.0.1", "--http-port", str(self.http), "--l1-size-gb", "0.25", "--no-l1-use-lazy",
                   "--eviction-policy", "LRU", "--supported-transfer-mode", "auto", "--disable-observability",
                   "--l2-adapter", json.dumps(adapter)]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
                                        start_new_session=True)
        self._client: ServerBenchClient | None = None

    def ready(self) -> LmcacheServer:
        end = time.monotonic() + START_SECONDS
        while self._client is None:
            if self.process.poll() is not None or time.monotonic() > end:
                raise AssertionError(f"LMCache's server does not serve:\n{self.log_text()}")
            with contextlib.suppress(OSError):
                self.call("/healthcheck")
                self._client = ServerBenchClient(self._config(), lambda line: None)
                self._client.start()
        return self

    def store(self, prompt: int) -> list[str]:
        """The checksums of its chunks. The server writes them to its second level afterwards."""
        client, request = self._asked(prompt)
        noise = torch.Generator().manual_seed(prompt)
        for worker in client._workers:
            for layer in worker.kv_caches.values():
                layer.copy_(torch.randn(layer.shape, generator=noise))
        done = client.store(request, 0, request.num_full_tokens)
        assert done is not None and done.succeeded, done
        sums = client.compute_checksums(request, 0, request.num_full_tokens)
        client.end_session(request)
        assert sums is not None
        return sums

    def forget(self) -> None:
        """Empties the first level: what comes next can only come from Terrace."""
        self.call("/cache/clear", {})

    def load(self, prompt: int) -> tuple[int, list[str] | None]:
        """How many leading chunks were found, and the checksums of all chunks after they were read."""
        client, request = self._asked(prompt)
        found = client.lookup(request)
        assert found.succeeded, found
        tokens = found.hit_chunks * request.chunk_size
        client.zero_destination(request, 0, request.num_full_tokens)
        if tokens != 0:
            done = client.retrieve(request, 0, tokens)
            assert done is not None and done.succeeded, done
        sums = client.compute_checksums(request, 0, request.num_full_tokens)
        client.end_session(request)
        return found.hit_chunks, sums

    def call(self, path: str, body: dict[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.http}{path}", data=data,
                                         headers={"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.loads(answer.read() or b"null")

    def end(self) -> None:
        """In order."""
        if self._client is not None:
            self._client.close()
            self._client = None
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise AssertionError(f"LMCache's server does not end:\n{self.log_text()}") from None

    def kill(self) -> None:
        if self._client is not None:
            with contextlib.suppress(Exception):  # of a server that may have gone
                self._client.close()
            self._client = None
        self.process.kill()
        self.process.wait()

    def log_text(self) -> str:
        return Path(self.log.name).read_text(errors="replace")[-6000:]

    def _config(self) -> BenchConfig:
        return BenchConfig(
            rpc_url=f"tcp://127.0.0.1:{self.port}", http_url=f"http://127.0.0.1:{self.http}", mode="cpu",
            transfer_mode="engine_driven", tp_size=self._workers, use_mla=False, num_tokens=CHUNKS * 256,
            kvcache_shape_spec=f"(2,{BLOCKS},16,2,64):bfloat16:4", num_blocks=BLOCKS, block_size=16,
        )

    def _asked(self, prompt: int) -> tuple[ServerBenchClient, Any]:
        client = self.ready()._client
        assert client is not None
        request = client.create_request(prompt, f"request-{next(_requests)}", "test")
        assert request is not None and request.total_chunks == CHUNKS
        return client, request

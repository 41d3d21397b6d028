"""Runs terraced with its default configuration except for the sizes of its memory and disk, with the Python
client."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import numpy
import terrace

from peer import BLOCK_TOKENS, CHUNK_TOKENS, DISK_BYTES, LAYERS, Peer, Shape, Words
from store import Store

SECONDS = 120.0
VALUE_BYTES = 1 << 20  # of a value in a store; larger objects have several


class TerracePeer(Peer):
    name = "terrace"

    def __init__(self, shape: Shape, host_gib: float, disk: str = "", store: Store | None = None) -> None:
        """With a remote store everything is written to it once it is stored, as LMCache's server does. By default only what
        is used twice, or leaves host memory after a use, is."""
        self._shape = shape
        self.values_per_chunk = -(-shape.chunk_bytes // VALUE_BYTES)
        self._folder = Path(tempfile.mkdtemp(prefix="terrace-peer-"))
        configuration = self._folder / "terraced.toml"
        configuration.write_text(f"""[[listen]]
path = "{self._folder / "socket"}"
[host]
bytes = {int(host_gib * (1 << 30))}
[disk]
{f'path = "{disk}"' if disk else ""}
bytes = {DISK_BYTES if disk else 0}
[metrics]
address = "127.0.0.1:0"
{self._remote(store) if store else ""}
""")
        with open(self._folder / "log", "wb") as log:
            self._process = subprocess.Popen([os.environ["TERRACED"], "--config", configuration], stdout=log, stderr=log)
        self.pid = self._process.pid
        self._daemon = self._connect()
        for tier in (["disk"] if disk else []) + (["remote"] if store else []):
            while "ready" not in [one.state for one in self._tiers() if one.tier == tier]:
                time.sleep(0.01)
        pool = terrace.Pool("kv", object_bytes=shape.chunk_bytes)
        self._space = self._daemon.open_space(terrace.SpaceSpec("bench", "bf16", "paged", [pool]), timeout=SECONDS)
        self._kv = terrace.Memory(2 * LAYERS * shape.blocks * shape.piece_bytes)
        view = memoryview(self._kv)
        for at in range(0, view.nbytes, 4096):  # touches its pages
            view[at] = 1
        self._region = self._daemon.register_region(self._kv, timeout=SECONDS)
        self._found: terrace.Lookup | None = None

    def request(self, tokens: list[int]) -> list[int]:
        return tokens

    def request_of_vllm(self, tokens: list[int]) -> terrace.Prefix:
        """Sends digests, which vLLM has computed for itself."""
        return terrace.Prefix.of_digests(self._daemon.lookup(self._space, tokens, digests=True, timeout=SECONDS).digests)

    def store(self, request: list[int]) -> bool:
        chunks = len(request) // CHUNK_TOKENS
        done = self._daemon.store(self._space, request, self._region, self._runs(chunks), runs_per_object=self._counts(chunks),
                                  timeout=SECONDS)
        return done.stored_chunks + done.present_chunks == chunks

    def lookup(self, request: list[int] | terrace.Prefix) -> int:
        self._found = self._daemon.lookup(self._space, request, lease=True, timeout=SECONDS)
        return self._found.found_chunks

    def count(self, request: list[int]) -> int:
        return self._daemon.lookup(self._space, request, timeout=SECONDS).found_chunks

    def release(self) -> None:
        found, self._found = self._found, None
        if found is not None and found.lease is not None:
            found.lease.release()

    def load(self) -> None:
        found = self._found
        assert found is not None and found.lease is not None
        chunks = found.found_chunks
        done = self._daemon.load(self._space, found.lease, self._region, self._runs(chunks),
                                 runs_per_object=self._counts(chunks), timeout=SECONDS)
        assert done.delivered_chunks == chunks, done
        self.release()

    def forget(self) -> None:
        self._daemon.clear(timeout=SECONDS)

    def await_disk(self, prompts: int, chunks: int) -> None:
        while sum(tier.objects for tier in self._tiers() if tier.tier == "disk") < prompts * chunks:
            time.sleep(0.002)

    def forget_memory(self, request: list[int]) -> None:
        """Uses the command for operators."""
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as tokens:
            print(*request, file=tokens, flush=True)
            subprocess.run(
                [os.environ["TERRACE"], "evict", "--socket", self._folder / "socket", "--tier", "host", "--model", "bench",
                 "--dtype", "bf16", "--layout", "paged", "--pool", f"kv:{self._shape.chunk_bytes}",
                 "--tokens", f"@{tokens.name}"],
                check=True, stdout=subprocess.DEVNULL,
            )

    def kv(self) -> list[Words]:
        return list(numpy.frombuffer(memoryview(self._kv), numpy.uint64).reshape(2 * LAYERS, self._shape.blocks, -1))

    def close(self) -> None:
        self._daemon.close()
        self._process.terminate()
        self._process.wait()
        shutil.rmtree(self._folder)

    def _remote(self, store: Store) -> str:
        key = self._folder / "realm-key"
        key.touch(mode=0o600)
        key.write_bytes(os.urandom(32))
        return f"""[[remote]]
address = "127.0.0.1:{store.port}"
realm_key_file = "{key}"
demotion = "write_through"
"""

    def _tiers(self) -> list[terrace.status.TierStatus]:
        return list(self._daemon.status(timeout=SECONDS).groups[0].tiers)

    def _connect(self) -> terrace.Connection:
        end = time.monotonic() + SECONDS
        while True:
            with contextlib.suppress(terrace.errors.Error):
                return terrace.connect(str(self._folder / "socket"), name="bench", timeout=SECONDS)
            if self._process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"terraced does not serve, see {self._folder / 'log'}")
            time.sleep(0.01)

    def _runs(self, chunks: int) -> terrace.Rows:
        """Returns a run for K and V of each layer and block, because an engine's blocks lie anywhere."""
        of_chunk = CHUNK_TOKENS // BLOCK_TOKENS
        planes = numpy.arange(2 * LAYERS)[None, :, None] * self._shape.blocks
        blocks = (numpy.arange(chunks)[:, None, None] * of_chunk) + numpy.arange(of_chunk)[None, None, :]
        return terrace.Rows((planes + blocks).reshape(-1), self._shape.piece_bytes)

    def _counts(self, chunks: int) -> list[int]:
        return [2 * LAYERS * (CHUNK_TOKENS // BLOCK_TOKENS)] * chunks

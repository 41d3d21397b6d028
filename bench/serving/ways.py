"""The ways in which an engine keeps KV: each is a context that starts what the engine needs beside it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

START_SECONDS = 600.0  # only turns a hang into a failure


@dataclass
class Cache:
    """What runs beside an engine."""

    options: list[str] = field(default_factory=list)  #: of the engine
    process: int | None = None  #: its process; None: the cache is part of the engine
    folder: Path | None = None  #: where its files are


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def end(process: subprocess.Popen) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def transfer(connector: str, module: str = "", extra: dict | None = None, **more: object) -> list[str]:
    """The engine's option that names a connector."""
    config = {"kv_connector": connector, "kv_role": "kv_both", "kv_connector_extra_config": extra or {}, **more}
    if module:
        config["kv_connector_module_path"] = module
    return ["--kv-transfer-config", json.dumps(config)]


@contextlib.contextmanager
def no_cache(host_bytes: int) -> Iterator[Cache]:
    yield Cache(["--no-enable-prefix-caching"])


@contextlib.contextmanager
def prefix_cache(host_bytes: int) -> Iterator[Cache]:
    yield Cache()


@contextlib.contextmanager
def offloading(host_bytes: int) -> Iterator[Cache]:
    """vLLM's own. Its copies need a GPU; tests/engines/cpu_offloading.py copies between tensors instead."""
    extra = {"spec_name": "CpuTieringSpec", "spec_module_path": "cpu_offloading", "cpu_bytes_to_use": host_bytes}
    yield Cache(transfer("OffloadingConnector", extra=extra))


@contextlib.contextmanager
def lmcache(host_bytes: int) -> Iterator[Cache]:
    """Its server and its connector."""
    port, http = free_port(), free_port()
    log = tempfile.NamedTemporaryFile(prefix="terrace-serving-lmcache-", suffix=".log", delete=False)
    command = [sys.executable, "-m", "lmcache.cli.main", "server", "--host", "127.0.0.1", "--port", str(port), "--http-host", "127.0.0.1",
               "--http-port", str(http), "--l1-size-gb", str(host_bytes / (1 << 30)), "--no-l1-use-lazy", "--eviction-policy", "LRU",
               "--supported-transfer-mode", "auto", "--shm-name", f"terrace-serving-{port}", "--disable-observability"]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        until_answers(f"http://127.0.0.1:{http}/healthcheck", process, Path(log.name))
        extra = {"lmcache.mp.host": "tcp://127.0.0.1", "lmcache.mp.port": port}
        yield Cache(transfer("LMCacheMPConnector", "lmcache.integration.vllm.lmcache_mp_connector", extra), process.pid)
    finally:
        end(process)


@contextlib.contextmanager
def terraced(host_bytes: int) -> Iterator[tuple[str, Cache]]:
    with tempfile.TemporaryDirectory(prefix="terrace-serving-") as folder:
        path = f"{folder}/socket"
        config = Path(folder, "terraced.toml")
        config.write_text(f'[[listen]]\npath = "{path}"\n[host]\nbytes = {host_bytes}\n[disk]\nbytes = 0\n[metrics]\naddress = ""\n')
        with open(Path(folder, "log"), "wb") as log, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ready:
            ready.bind(f"{folder}/ready")
            ready.settimeout(START_SECONDS)
            process = subprocess.Popen([os.environ["TERRACED"], "--config", str(config)], stdout=log, stderr=log,
                                       env={**os.environ, "NOTIFY_SOCKET": f"{folder}/ready"})
            try:
                while b"READY=1" not in ready.recv(4096):
                    pass
                yield path, Cache(process=process.pid, folder=Path(folder))
            finally:
                end(process)


@contextlib.contextmanager
def terrace(host_bytes: int) -> Iterator[Cache]:
    """The connector."""
    with terraced(host_bytes) as (path, cache):
        cache.options = transfer("TerraceConnector", "terrace.vllm.connector", {"socket": path}, kv_load_failure_policy="recompute")
        yield cache


@contextlib.contextmanager
def terrace_tier(host_bytes: int) -> Iterator[Cache]:
    """The tier below vLLM's own offloading, which has a quarter of the memory."""
    with terraced(host_bytes * 3 // 4) as (path, cache):
        tier = {"type": "TerraceTier", "module_path": "terrace.vllm.tier", "socket": path}
        extra = {"spec_name": "CpuTieringSpec", "spec_module_path": "cpu_offloading", "cpu_bytes_to_use": host_bytes // 4,
                 "secondary_tiers": [tier]}
        cache.options = transfer("OffloadingConnector", extra=extra)
        yield cache


WAYS = {
    "no cache": no_cache, "prefix cache": prefix_cache, "OffloadingConnector": offloading, "LMCache": lmcache,
    "Terrace connector": terrace, "Terrace tier": terrace_tier,
}


def until_answers(url: str, process: subprocess.Popen, log: Path) -> None:
    """Until a server of this process answers."""
    began = time.monotonic()
    while True:
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=10):
            return
        if process.poll() is not None or time.monotonic() - began > START_SECONDS:
            raise SystemExit(f"the server does not start:\n{log.read_text(errors='replace')[-4000:]}")
        time.sleep(0.2)  # neither server tells when it serves

"""Measures what clients notice of a GPU's process: how soon the daemon serves, how long lookups take while
host memory is being pinned, and when a killed client has left nothing behind.

    serving.py --terraced PROGRAM --folder FOLDER [--device cuda|cpu] [--host-bytes N] [--region-bytes N] [--rounds N]

Prints a line of JSON for each figure, and what it is doing to stderr. Needs the package terrace, and for a
GPU PyTorch. On a processor (`--device cpu`) the device in host memory stands in for the GPU.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from statistics import quantiles

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path += [HERE, os.path.join(HERE, "../../tests/python")]

import terrace  # noqa: E402
from daemon import OBJECT_BYTES, SPEC, Daemon, chain_of  # noqa: E402
from figures import report  # noqa: E402
from terrace.status import DeviceStatus  # noqa: E402

PATIENCE = 60.0
CHUNKS = 128
LOOKUPS = 2_000


def say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


# ---- the client that is killed: it loads until then ----


def client(socket: str, device: str, region_bytes: int) -> None:
    if device == "cuda":
        import torch

        memory = torch.zeros(region_bytes, dtype=torch.uint8, device="cuda")
    else:
        memory = terrace.Memory(region_bytes)
    with terrace.connect(socket, name="serving", timeout=PATIENCE) as daemon:
        space = daemon.open_space(SPEC, timeout=PATIENCE)
        region = daemon.register_device_region(memory, device="" if device == "cuda" else "host", timeout=PATIENCE)
        print("registered", flush=True)
        chain = chain_of(1, CHUNKS)
        while True:
            daemon.load(space, terrace.Prefix.of_digests(chain), region,
                        [(i * OBJECT_BYTES, OBJECT_BYTES) for i in range(CHUNKS)], timeout=PATIENCE)


class Client:
    def __init__(self, socket: str, given: argparse.Namespace) -> None:
        command = [sys.executable, os.path.abspath(__file__), "client", socket, given.device, str(given.region_bytes)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def registered(self) -> None:
        assert self.process.stdout is not None
        if self.process.stdout.readline() != "registered\n":
            raise SystemExit("the client could not register memory")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


# ---- what is measured ----


class Observer:
    def __init__(self, server: Daemon) -> None:
        self.daemon = terrace.connect(server.socket, name="observer", timeout=PATIENCE)
        self.space = self.daemon.open_space(SPEC, timeout=PATIENCE)
        self.prefix = terrace.Prefix.of_digests(chain_of(1, CHUNKS))

    def store(self) -> None:
        memory = terrace.Memory(CHUNKS * OBJECT_BYTES)
        with self.daemon.register_region(memory, timeout=PATIENCE) as region:
            self.daemon.store(self.space, self.prefix, region, [(i * OBJECT_BYTES, OBJECT_BYTES) for i in range(CHUNKS)],
                              timeout=PATIENCE)

    def lookup_us(self) -> float:
        began = time.perf_counter()
        found = self.daemon.lookup(self.space, self.prefix, timeout=PATIENCE)
        took = (time.perf_counter() - began) * 1e6
        assert found.found_chunks == CHUNKS, found
        return took

    def device(self) -> DeviceStatus | None:
        devices = self.daemon.status(timeout=PATIENCE).devices
        return devices[0] if devices else None

    def pinned(self) -> int:
        device = self.device()
        return device.pinned_bytes if device else 0


def tell(name: str, took: list[float], **more: float) -> None:
    parts = quantiles(took, n=100)
    report(name, "us", [parts[49]], p99=round(parts[98], 1), most=round(max(took), 1), lookups=len(took), **more)


def until(condition: Callable[[], bool]) -> float:
    """Waits until the condition holds, and returns the milliseconds."""
    began = time.perf_counter()
    while not condition():
        if time.perf_counter() - began > PATIENCE:
            raise SystemExit("not within a minute")
    return (time.perf_counter() - began) * 1e3


def lookups_while_pinning(observer: Observer) -> tuple[list[float], float, int]:
    """Measures from the first piece until nothing more has been pinned for two seconds. Also returns the
    seconds that it took, and the bytes pinned."""
    took: list[float] = []
    until(lambda: observer.pinned() != 0)
    began = changed = time.perf_counter()
    pinned = 0
    while time.perf_counter() - changed < 2:
        took += [observer.lookup_us() for _ in range(100)]
        if (now := observer.pinned()) != pinned:
            pinned, changed = now, time.perf_counter()
    return took, changed - began, pinned


def measure(given: argparse.Namespace) -> None:
    ready, gone = [], []
    for i in range(given.rounds):
        began = time.perf_counter()
        server = Daemon(given.host_bytes, workers=0)
        ready.append((time.perf_counter() - began) * 1e3)
        try:
            observer = Observer(server)
            observer.store()
            if i == 0:
                say("lookups before a GPU is used")
                tell("lookup_before_pinning", [observer.lookup_us() for _ in range(LOOKUPS)])
            one = Client(server.socket, given)
            one.registered()
            if i == 0:
                say("lookups while host memory is being pinned")
                took, seconds, pinned = lookups_while_pinning(observer)
                tell("lookup_while_pinning", took, pinned_bytes=pinned, seconds=round(seconds, 3))
                tell("lookup_after_pinning", [observer.lookup_us() for _ in range(LOOKUPS)])
            loaded = (observer.device() or sys.exit("no device")).loaded_bytes
            until(lambda: (device := observer.device()) is not None and device.loaded_bytes > loaded)
            one.kill()
            gone.append(until(lambda: (device := observer.device()) is not None and device.regions == 0))
            observer.daemon.close()
        finally:
            server.stop()
    report("daemon_ready", "ms", ready, host_bytes=given.host_bytes)
    report("killed_client_gone", "ms", gone, most=round(max(gone), 3))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--terraced", required=True)
    parser.add_argument("--folder", required=True, help="for the daemon's socket")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--host-bytes", type=int, default=64 << 30)
    parser.add_argument("--region-bytes", type=int, default=1 << 30)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    os.environ["TERRACED"] = os.path.abspath(given.terraced)
    os.makedirs(given.folder, exist_ok=True)
    tempfile.tempdir = os.path.abspath(given.folder)
    measure(given)


if __name__ == "__main__":
    if sys.argv[1:2] == ["client"]:
        client(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    else:
        main()

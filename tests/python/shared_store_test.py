"""Machines that share a store: long lookups, a store that is too small, and a network that breaks."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import unittest
from collections.abc import Callable, Sequence

import terrace
from daemon import PATIENCE, Daemon, chain_of
from shared_store import SharedStore, objects_in_store, remote_tier, without_server
from vllm_connector_test import until

SMALL = 4096  # bytes of an object
SPEC = terrace.SpaceSpec("m", "u8", "shared", [terrace.Pool("kv", object_bytes=SMALL)], chunk_tokens=16)


class Machine:
    """A daemon with a client whose region has room for `chunks`."""

    def __init__(self, daemon: Daemon, chunks: int = 256) -> None:
        self.daemon = daemon
        self.client = terrace.connect(daemon.socket, timeout=PATIENCE)
        self.space = self.client.open_space(SPEC, timeout=PATIENCE)
        self.memory = terrace.Memory(chunks * SMALL)
        self.region = self.client.register_region(self.memory, timeout=PATIENCE)

    def store(self, chain: Sequence[bytes]) -> None:
        view = memoryview(self.memory)
        for i, digest in enumerate(chain):
            view[i * SMALL:(i + 1) * SMALL] = self.content(digest)
        done = self.client.store(self.space, terrace.Prefix.of_digests(chain), self.region, self.runs(chain), timeout=PATIENCE)
        assert done.stored_chunks + done.present_chunks == len(chain), done

    def found(self, chain: Sequence[bytes]) -> int:
        return self.client.lookup(self.space, terrace.Prefix.of_digests(chain), timeout=PATIENCE).found_chunks

    def load(self, chain: Sequence[bytes]) -> int:
        """Returns how many chunks came. All of their bytes are right."""
        view = memoryview(self.memory)
        view[:] = bytes(len(view))
        loaded = self.client.load(self.space, terrace.Prefix.of_digests(chain), self.region, self.runs(chain), timeout=PATIENCE)
        for i, digest in enumerate(chain[:loaded.delivered_chunks]):
            assert bytes(view[i * SMALL:(i + 1) * SMALL]) == self.content(digest), f"chunk {i} is wrong"
        return loaded.delivered_chunks

    @staticmethod
    def content(digest: bytes) -> bytes:
        return digest * (SMALL // len(digest))

    @staticmethod
    def runs(chain: Sequence[bytes]) -> list[tuple[int, int]]:
        return [(i * SMALL, SMALL) for i in range(len(chain))]


class Machines(unittest.TestCase):
    def starting(self, make: Callable[[], Daemon], chunks: int = 256) -> Machine:
        daemon = make()
        self.addCleanup(daemon.stop)
        until(lambda: remote_tier(daemon).state == "ready")
        return Machine(daemon, chunks)

    def store(self, *options: str, bind: tuple[str, int] | None = None) -> SharedStore:
        made = SharedStore(*options, bind=bind)
        self.addCleanup(made.stop)
        return made


@without_server
class Shared(Machines):
    def test_a_lookup_finds_ten_thousand_chunks_of_another_machine(self) -> None:
        store = self.store()
        chain = chain_of(1, 10_000)
        one = self.starting(lambda: store.machine(128 << 20), len(chain))
        one.store(chain)
        until(lambda: objects_in_store(one.daemon) == len(chain))
        two = self.starting(lambda: store.machine(128 << 20), len(chain))
        until(lambda: two.found(chain) == len(chain))
        self.assertEqual(two.load(chain), len(chain))

    def test_a_store_that_is_too_small_loses_chunks_and_never_bytes(self) -> None:
        store = self.store("--maxmemory", "4mb", "--maxmemory-policy", "allkeys-lru")
        one = self.starting(store.machine)
        chains = [chain_of(seed, 128) for seed in range(1, 33)]  # 16 MiB
        for chain in chains:
            one.store(chain)
        two = self.starting(store.machine)
        came = [two.load(chain) for chain in chains for _ in range(2)]
        self.assertLess(sum(came), 2 * 128 * len(chains), "the store had to evict")
        one.store(chain_of(99, 8))
        until(lambda: two.load(chain_of(99, 8)) == 8)


def command(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)


@without_server
@unittest.skipUnless(shutil.which("ip") and os.geteuid() == 0, "needs root and the package `iproute2`, for a network of its own")
class PartedNetwork(Machines):
    def setUp(self) -> None:
        self.name = f"terrace-{os.getpid()}"
        self.inside = ("ip", "netns", "exec", self.name)
        number = os.getpid() % 200 + 1
        self.here, there = f"10.213.{number}.1", f"10.213.{number}.2"
        outer, inner = f"tro{os.getpid()}"[:15], f"tri{os.getpid()}"[:15]
        self.inner = inner
        try:
            command("ip", "netns", "add", self.name)
            self.addCleanup(command, "ip", "netns", "del", self.name)
            command("ip", "link", "add", outer, "type", "veth", "peer", "name", inner)
            self.addCleanup(subprocess.run, ["ip", "link", "del", outer], capture_output=True)
            command("ip", "link", "set", inner, "netns", self.name)
            command("ip", "address", "add", f"{self.here}/24", "dev", outer)
            command("ip", "link", "set", outer, "up")
            command(*self.inside, "ip", "address", "add", f"{there}/24", "dev", inner)
        except subprocess.CalledProcessError as refused:
            self.skipTest(f"no network of its own can be made: {refused.stderr.decode().strip()}")
        self.set_link("up")

    def set_link(self, state: str) -> None:
        command(*self.inside, "ip", "link", "set", self.inner, state)

    def test_a_machine_behind_a_broken_network_misses_and_comes_back(self) -> None:
        store = self.store(bind=(self.here, 7391))
        one = self.starting(lambda: store.machine(lookup_budget="40ms"))
        two = self.starting(lambda: store.machine(lookup_budget="40ms", inside=self.inside))
        kept, cleared, more = chain_of(1, 16), chain_of(2, 16), chain_of(3, 16)
        one.store(kept)
        until(lambda: two.load(kept[:8]) == 8)
        self.set_link("down")
        self.assertEqual(two.load(kept), 8, "what it has itself")
        until(lambda: remote_tier(two.daemon).state == "degraded")
        self.assertEqual(two.found(kept), 8)
        two.store(more)
        self.assertEqual(two.load(more), 16, "stores and loads go on without it")
        self.set_link("up")
        until(lambda: two.load(kept) == 16)
        one.store(cleared)
        until(lambda: two.found(cleared) == 16)
        self.set_link("down")
        one.client.clear(one.space, timeout=PATIENCE)
        self.set_link("up")
        until(lambda: remote_tier(two.daemon).state == "ready" and two.found(cleared) == 0)
        self.assertEqual((two.load(kept), two.load(cleared)), (0, 0), "a clear reaches it when the network is there again")


def free_port(host: str) -> int:
    with socket.socket() as tried:
        tried.bind((host, 0))
        return int(tried.getsockname()[1])


@without_server
class NamedStore(Machines):
    def test_a_store_is_found_by_the_name_of_its_host(self) -> None:
        store = self.store(bind=("127.0.0.1", free_port("127.0.0.1")))
        by_name = f"localhost:{store.address.rsplit(':', 1)[1]}"
        chain = chain_of(1, 8)
        one = self.starting(lambda: store.machine(at=by_name))
        one.store(chain)
        two = self.starting(store.machine)
        until(lambda: two.load(chain) == 8)

    def test_a_name_that_nobody_knows_is_an_outage(self) -> None:
        store = self.store()
        for at in ("nowhere.invalid:6379", "sentinel://nowhere.invalid:26379/kv", "cluster://nowhere.invalid:6379"):
            with self.subTest(at):
                daemon = store.machine(at=at)
                self.addCleanup(daemon.stop)
                until(lambda: "its name " in remote_tier(daemon).reason)
                alone = Machine(daemon)
                alone.store(chain_of(1, 8))
                self.assertEqual(alone.load(chain_of(1, 8)), 8, "host memory serves")

    @unittest.skipUnless(os.geteuid() == 0, "needs root, for an /etc/hosts of its own")
    def test_a_name_that_moves_is_followed(self) -> None:
        port = free_port("127.0.0.1")
        first, second = (self.store(bind=(host, port)) for host in ("127.0.0.1", "127.0.0.2"))
        hosts = first.folder / "hosts"
        hosts.write_text("")
        inside = ("unshare", "--mount", "sh", "-c", f'mount --bind {hosts} /etc/hosts && exec "$@"', "sh")
        if subprocess.run([*inside, "true"], capture_output=True).returncode != 0:
            self.skipTest("no /etc/hosts of its own can be made")
        daemon = first.machine(at=f"store.test:{port}", inside=inside)
        self.addCleanup(daemon.stop)
        until(lambda: "its name " in remote_tier(daemon).reason)
        hosts.write_text("127.0.0.1 store.test\n")
        until(lambda: remote_tier(daemon).state == "ready")
        one, chain = Machine(daemon), chain_of(1, 8)
        hosts.write_text("127.0.0.2 store.test\n")
        one.store(chain[:4])
        other = self.starting(first.machine)
        until(lambda: other.found(chain) == 4)
        first.process.kill()
        one.store(chain_of(2, 8))
        other = self.starting(second.machine)
        until(lambda: one.load(chain_of(2, 8)) == 8 and other.load(chain_of(2, 8)) == 8)


if __name__ == "__main__":
    unittest.main()

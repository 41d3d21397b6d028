"""The time to the first token behind a long prefix: computed, and restored from each tier by the Python client, as an engine would.

    ttft.py --terraced PROGRAM --folder FOLDER [--device cuda|cpu] [--shape 8b|tiny|thin] [--prefix TOKENS] [--rounds N] [--seconds N]

Prints a line of JSON for each figure as soon as it is known, and what it is doing to stderr. Before each restore the KV is overwritten;
afterwards it and the logits must be those of the KV that was never moved, bit for bit, and all bytes must be of the tier in question.
Needs PyTorch and the package terrace. On a processor (`--device cpu`) the device in host memory stands in for the GPU.
"""

from __future__ import annotations

import argparse
import array
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from statistics import median

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path += [HERE, os.path.join(HERE, "../../tests/python")]
BEGAN = time.monotonic()
PATIENCE = 60.0
CHUNK_BLOCKS = 16


def say(what: str) -> None:
    print(f"{time.monotonic() - BEGAN:6.1f} s  {what}", file=sys.stderr, flush=True)


say("importing PyTorch")
import torch  # noqa: E402

import terrace  # noqa: E402
from daemon import Daemon  # noqa: E402
from decoder import BLOCK_TOKENS, SHAPES, Decoder  # noqa: E402
from figures import report  # noqa: E402
from terrace import Tier  # noqa: E402

CHUNK_TOKENS = CHUNK_BLOCKS * BLOCK_TOKENS
SMALL_CHUNKS = 4  # below so many chunks of this size they are smaller


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--terraced", required=True)
    parser.add_argument("--folder", required=True, help="for the daemon's disk tier")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--shape", choices=sorted(SHAPES))
    parser.add_argument("--prefix", type=int, help="tokens")
    parser.add_argument("--new", type=int, default=24, help="tokens behind the prefix")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=90, help="after which no further round begins")
    parser.add_argument("--host-bytes", type=int)
    given = parser.parse_args()
    on_gpu = given.device == "cuda"
    given.shape = given.shape or ("8b" if on_gpu else "tiny")
    given.prefix = given.prefix or (32_768 if on_gpu else 64)
    return given


class Run:
    def __init__(self, given: argparse.Namespace) -> None:
        self.given = given
        self.shape = SHAPES[given.shape]
        self.on_gpu = given.device == "cuda"
        self.chunk_tokens = CHUNK_TOKENS if given.prefix >= SMALL_CHUNKS * CHUNK_TOKENS else BLOCK_TOKENS
        self.chunks = given.prefix // self.chunk_tokens
        if given.prefix % self.chunk_tokens:
            raise SystemExit(f"expected a prefix of whole chunks of {self.chunk_tokens} tokens, got {given.prefix}")
        self.prefix_blocks = given.prefix // BLOCK_TOKENS
        self.blocks = self.prefix_blocks + given.new // BLOCK_TOKENS + 8
        self.object_bytes = self.chunk_tokens // BLOCK_TOKENS * self.shape.block_bytes * self.shape.planes
        self.prefix_bytes = self.chunks * self.object_bytes
        self.uuid = "host"
        if self.on_gpu:
            torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = True
            self.uuid = f"GPU-{str(torch.cuda.get_device_properties(0).uuid).removeprefix('GPU-')}"

    # ---- what is there ----

    def start_daemon(self) -> Daemon:
        least = 64 << 20
        host = self.given.host_bytes or max(3 * self.prefix_bytes, least)
        slot = (self.object_bytes + 4095) // 4096 * 4096 + 4096  # all objects have one size
        tier = max(self.prefix_bytes * 5 // 4, least // 2) // slot * slot
        return Daemon(host, disk_bytes=max(3 * self.prefix_bytes, 2 * least), workers=0,
                      gpu=f'tier_device = "{self.uuid}"\ntier_bytes = {tier}\n'
                          # One client that leases most of a tier: what a lease may not hold there is loaded from host memory.
                          "[lease]\nhost_percent = 100\nconnection_percent = 100\n",
                      disk=f'allocator = "paged:{slot}"\n')

    def make_kv(self) -> tuple[torch.Tensor, object]:
        """With the memory that is registered."""
        size = (self.shape.layers, 2, self.blocks, BLOCK_TOKENS, self.shape.kv_heads, self.shape.head_dim)
        if self.on_gpu:
            kv = torch.empty(size, dtype=torch.bfloat16, device="cuda")
            return kv, kv
        memory = terrace.Memory(self.blocks * self.shape.block_bytes * self.shape.planes)
        return torch.from_dlpack(memory).view(torch.bfloat16).view(size), memory

    def prepare(self, starting: Future[Daemon]) -> None:
        self.kv, memory = self.make_kv()
        shuffled = torch.randperm(self.blocks, generator=torch.Generator().manual_seed(3))
        self.table = shuffled.to(self.kv.device)
        tokens = torch.randint(self.shape.vocabulary, (self.given.prefix + self.given.new,),
                               generator=torch.Generator().manual_seed(11))
        self.prompt = array.array("I", tokens.tolist())
        self.tokens = tokens.to(self.kv.device)
        say(f"making the model {self.given.shape}")
        self.model = Decoder(self.shape, self.kv, len(tokens))
        self.sync()
        say("waiting for the daemon")
        self.server = starting.result()
        self.daemon = terrace.connect(self.server.socket, name="ttft", timeout=PATIENCE)
        self.space = self.daemon.open_space(terrace.SpaceSpec(
            model="ttft", dtype="bf16", layout="paged", chunk_tokens=self.chunk_tokens,
            pools=[terrace.Pool("kv", object_bytes=self.object_bytes)]))
        say("registering the KV")
        self.region = self.daemon.register_device_region(memory, device="" if self.on_gpu else "host")
        # A block is a piece in each plane; the blocks of a chunk follow each other in its object.
        plane = self.blocks * self.shape.block_bytes
        self.runs = terrace.Rows(array.array("q", shuffled[: self.prefix_blocks].tolist()), self.shape.block_bytes, stride=plane,
                                 count=self.shape.planes)
        self.runs_per_object = [self.chunk_tokens // BLOCK_TOKENS] * self.chunks
        self.prefix = terrace.Prefix.of_tokens(self.prompt[: self.given.prefix])

    def wait_for_pins(self) -> int:
        """Until the GPU reads host memory itself, or no more of it than now."""
        host = next(tier.capacity_bytes for tier in self.daemon.status().groups[0].tiers if tier.tier == "host")
        pinned, since = -1, time.monotonic()
        while time.monotonic() - since < 2 and pinned < host:
            now = next(each.pinned_bytes for each in self.daemon.status().devices if each.device == self.uuid)
            if now != pinned:
                pinned, since = now, time.monotonic()
            time.sleep(0.02)
        return pinned

    def sync(self) -> None:
        if self.on_gpu:
            torch.cuda.synchronize()

    def timed(self, work: Callable[[], object]) -> float:
        """Milliseconds."""
        self.sync()
        began = time.perf_counter()
        work()
        self.sync()
        return (time.perf_counter() - began) * 1e3

    def late(self) -> bool:
        return time.monotonic() - BEGAN > self.given.seconds

    # ---- computing ----

    def compute_new(self) -> torch.Tensor:
        return self.model.forward(self.tokens[self.given.prefix :], self.table, self.given.prefix)

    def ways(self) -> dict[str, Callable[..., torch.Tensor]]:
        """To compute the prompt to its first token, from its beginning or behind so many tokens. They give the logits."""
        whole = len(self.tokens)

        def in_pieces(piece: int) -> Callable[..., torch.Tensor]:
            def compute(start: int = 0) -> torch.Tensor:
                logits = self.model.prefill(self.tokens, self.table, piece, start)
                logits.argmax().item()
                return logits

            return compute

        def by_cudnn(start: int = 0) -> torch.Tensor:
            from torch.nn.attention import SDPBackend, sdpa_kernel

            if start > 0:  # it may lack the mask; what PyTorch chooses takes 1 % longer
                return in_pieces(whole)(start)
            with sdpa_kernel([SDPBackend.CUDNN_ATTENTION]):
                return in_pieces(whole)(start)

        ways = {"whole": in_pieces(whole), "pieces of 8192": in_pieces(8192), "pieces of 4096": in_pieces(4096)}
        return {"whole with cuDNN": by_cudnn, **ways} if self.on_gpu else ways

    def choose_way(self) -> tuple[str, Callable[..., torch.Tensor]]:
        """The fastest, the second time."""
        took: dict[str, float] = {}
        for name, way in self.ways().items():
            try:
                way()
                took[name] = self.timed(way)
                say(f"computing the prompt, {name}: {took[name]:.1f} ms")
            except RuntimeError as reason:
                say(f"computing the prompt, {name}: {reason}")
                if "out of memory" in str(reason):
                    torch.cuda.empty_cache()
        fastest = min(took, key=took.__getitem__)
        return fastest, self.ways()[fastest]

    # ---- restoring ----

    def restore(self) -> dict[str, float]:
        """As an engine would: what is there, a lease, a load, and the new tokens. Milliseconds."""
        self.sync()
        began = time.perf_counter()
        found = self.daemon.lookup(self.space, self.prompt, lease=True, timeout=PATIENCE)
        assert found.found_chunks == self.chunks and found.lease is not None, found
        looked_up = time.perf_counter()
        with found.lease as lease:
            loaded = self.daemon.load(None, lease, self.region, self.runs, runs_per_object=self.runs_per_object, timeout=PATIENCE)
            here = time.perf_counter()
            logits = self.compute_new()
            logits.argmax().item()
            ended = time.perf_counter()
        assert loaded.delivered_chunks == self.chunks, loaded
        self.bytes_by_tier = loaded.bytes_by_tier
        self.logits = logits
        return {"ttft": (ended - began) * 1e3, "lookup": (looked_up - began) * 1e3, "load": (here - looked_up) * 1e3,
                "compute": (ended - here) * 1e3}

    def restore_or_compute(self, tokens_per_s: int, compute: Callable[..., torch.Tensor]) -> dict[str, float]:
        """As an engine that declares how fast it computes: what the daemon says is slower to load is computed. Milliseconds, and
        tokens that were loaded."""
        self.sync()
        began = time.perf_counter()
        declared = terrace.Options(prefill_tokens_per_s=tokens_per_s)
        found = self.daemon.lookup(self.space, self.prompt, lease=True, options=declared, timeout=PATIENCE)
        assert found.found_chunks + found.recompute_chunks == self.chunks, found
        loaded = found.found_chunks * self.chunk_tokens
        if found.lease is not None:
            with found.lease as lease:
                blocks = loaded // BLOCK_TOKENS
                runs = terrace.Rows(array.array("q", self.table[:blocks].tolist()), self.shape.block_bytes,
                                    stride=self.blocks * self.shape.block_bytes, count=self.shape.planes)
                self.daemon.load(None, lease, self.region, runs, runs_per_object=self.runs_per_object[: found.found_chunks],
                                 timeout=PATIENCE)
        self.logits = compute(loaded)
        return {"ttft": (time.perf_counter() - began) * 1e3, "loaded": float(loaded)}

    def spoil(self) -> None:
        self.kv.fill_(float("nan"))

    def check(self, tier: Tier) -> None:
        came = dict(enumerate(self.bytes_by_tier))
        if came.get(tier, 0) != self.prefix_bytes:
            raise SystemExit(f"expected {self.prefix_bytes} bytes from {tier.name}, got {list(self.bytes_by_tier)}")
        places = self.table[: self.prefix_blocks]
        same = all(torch.equal(mine[places], kept[places]) for mine, kept in zip(self.kv.flatten(0, 1), self.kept_kv.flatten(0, 1)))
        if not same:
            raise SystemExit(f"the KV from {tier.name} is not what was stored")
        if not torch.equal(self.logits, self.kept_logits):
            raise SystemExit(f"the logits with KV from {tier.name} are not those with the KV that stayed in place")

    def move_to(self, tier: Tier) -> None:
        """All of it, and held by nobody: the tier begins when memory is registered, and what is being written is held."""
        until = time.monotonic() + PATIENCE
        while True:
            moved = self.daemon.move(self.space, self.prefix, tier, timeout=PATIENCE)
            if moved.moved_chunks + moved.present_chunks == moved.requested_chunks and moved.held_chunks == 0:
                return
            if time.monotonic() > until:
                raise SystemExit(f"the prefix cannot be moved to {tier.name}: {moved}")
            time.sleep(0.01)

    def away_from_gpu(self) -> None:
        """Also what is about to come there after a load."""
        self.move_to(Tier.GPU)
        self.daemon.evict(self.space, self.prefix, [Tier.GPU], timeout=PATIENCE)

    # ---- figures ----

    def measure_copies(self) -> dict[str, list[float]]:
        """GB/s of one copy of the prefix's size: from pinned memory, and on the device."""
        count = self.prefix_bytes // 2
        target = self.kv.flatten()[:count]
        host = torch.empty(count, dtype=torch.bfloat16, pin_memory=self.on_gpu).fill_(1)
        rates = lambda source: [self.prefix_bytes / 1e6 / self.timed(lambda: target.copy_(source, non_blocking=True))
                                for _ in range(self.given.rounds + 1)][1:]
        found = {"host": rates(host), "gpu": rates(self.kept_kv.flatten()[:count])}
        for name, values in found.items():
            report(f"copy_{name}", "GB/s", values)
        return found

    def measure_tier(self, tier: Tier, before: Callable[[], None], copies: list[float]) -> None:
        name = tier.name.lower()
        say(f"restoring from {name}")
        rounds: list[dict[str, float]] = []
        for i in range(self.given.rounds + 1):
            if len(rounds) > 1 and self.late():
                break
            before()
            self.spoil()
            took = self.restore()
            self.check(tier)
            if i > 0:  # the first warms up
                rounds.append(took)
        parts = {part: [one[part] for one in rounds] for part in rounds[0]}
        spread = max(parts["ttft"]) - min(parts["ttft"])
        report(f"ttft_{name}", "ms", parts["ttft"], self.computed[: len(rounds)], same_bits=True, bytes=self.prefix_bytes,
               spread=round(spread, 3), **{f"{part}_ms": round(median(parts[part]), 3) for part in ("lookup", "load", "compute")})
        report(f"load_{name}", "GB/s", [self.prefix_bytes / 1e6 / took for took in parts["load"]], copies[: len(rounds)])

    def measure_declared(self, before: Callable[[], None], compute: Callable[..., torch.Tensor]) -> None:
        """From disk, by a client that says how fast it computes."""
        speed = round(len(self.tokens) / (median(self.computed) / 1e3))
        say(f"from disk, computing {speed} tokens/s")
        rounds = []
        for i in range(self.given.rounds + 1):
            if len(rounds) > 1 and self.late():
                break
            before()
            self.spoil()
            took = self.restore_or_compute(speed, compute)
            alike = torch.cosine_similarity(self.logits.float(), self.kept_logits.float(), 0).item()
            if alike < 0.99:
                raise SystemExit(f"the logits with KV from the disk are others: {alike}")
            if i > 0:  # the first learns how fast the disk is
                rounds.append(took)
        report("ttft_disk_declared", "ms", [one["ttft"] for one in rounds], self.computed[: len(rounds)], tokens_per_s=speed,
               loaded_tokens=median(one["loaded"] for one in rounds))

    def measure(self) -> None:
        name = torch.cuda.get_device_name() if self.on_gpu else "processors"
        way, compute = self.choose_way()
        # The prefix alone, as it is stored, and what follows from it where it is.
        self.model.prefill(self.tokens[: self.given.prefix], self.table, 8192)
        self.kept_logits = self.compute_new()
        self.kept_kv = self.kv.clone()
        again = self.compute_new()
        assert torch.equal(again, self.kept_logits), "the same computation gives other bits"
        self.computed = [self.timed(compute) for _ in range(self.given.rounds)]
        report("ttft_computed", "ms", self.computed, spread=round(max(self.computed) - min(self.computed), 3),
               tokens=len(self.tokens), prefix_bytes=self.prefix_bytes)
        new = [self.timed(lambda: self.compute_new().argmax().item()) for _ in range(self.given.rounds)]
        report("compute_new", "ms", new)
        # Another order of the same sums: nearly the same logits.
        alike = torch.cosine_similarity(compute().float(), self.kept_logits.float(), 0).item()
        print(json.dumps({"name": "setting", "device": name, "shape": self.given.shape, "way": way, "alike": round(alike, 5),
                          "torch": torch.__version__, "attention": self.model.attention.__name__,
                          "chunk_tokens": self.chunk_tokens}), flush=True)

        say("waiting until host memory is pinned")
        pinned = self.wait_for_pins()
        print(json.dumps({"name": "pinned", "value": pinned, "unit": "bytes"}), flush=True)
        copies = self.measure_copies()
        self.kv.copy_(self.kept_kv)
        self.sync()
        say("storing the prefix")
        took = self.timed(lambda: self.daemon.store(self.space, self.prefix, self.region, self.runs,
                                                    runs_per_object=self.runs_per_object, timeout=PATIENCE))
        report("store", "GB/s", [self.prefix_bytes / 1e6 / took])

        say("moving the prefix to the GPU tier")
        self.move_to(Tier.GPU)
        self.measure_tier(Tier.GPU, lambda: None, copies["gpu"])
        self.measure_tier(Tier.HOST, self.away_from_gpu, copies["host"])

        def to_disk() -> None:
            self.daemon.evict(self.space, self.prefix, [Tier.GPU], timeout=PATIENCE)
            self.move_to(Tier.DISK)

        self.away_from_gpu()
        self.measure_tier(Tier.DISK, to_disk, copies["host"])
        self.measure_declared(to_disk, compute)
        say("done")


def tell_log(starting: Future[Daemon]) -> None:
    """The end of what the daemon said; its folder goes with it."""
    if starting.exception() is None:
        print((starting.result().folder / "log").read_text(errors="replace")[-4000:], file=sys.stderr, flush=True)


def main() -> None:
    given = parse()
    os.environ["TERRACED"] = os.path.abspath(given.terraced)
    os.makedirs(given.folder, exist_ok=True)
    tempfile.tempdir = os.path.abspath(given.folder)  # where Daemon makes its folder
    run = Run(given)
    say("starting the daemon")
    with ThreadPoolExecutor(1) as beside, torch.inference_mode():
        starting = beside.submit(run.start_daemon)
        try:
            run.prepare(starting)
            run.measure()
            run.region.unregister(timeout=PATIENCE)
            run.daemon.close()
        except BaseException:
            tell_log(starting)
            raise
        finally:
            if starting.exception() is None:
                starting.result().stop()


if __name__ == "__main__":
    main()

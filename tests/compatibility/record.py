#!/usr/bin/env python3
"""Records what a release promises to read later: the frames of a client and a volume. Run it once for a version of the protocol or
of the disk format that a release has, and commit what it writes. It leaves what is there: a recording is never made anew.

    record.py TERRACED

Writes protocol_VERSION.fbs (the schema without its comments), protocol_VERSION.json (frames that flatc makes of it, and what came of
them), and volume_VERSION.gz. The volume's objects are of fixed bytes (recorded_client.py); its ids are random.
"""

import gzip
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import recorded_client
from recorded_client import (CHUNKS, DISK, HEADER, KV, MARKS, MEMORY, READY, REGION, STATE, VOLUME_FILE, Client, Schema, constant,
                             contents_of)

HERE = pathlib.Path(__file__).resolve().parent
ROOT = recorded_client.ROOT

TOKENS = 16  # of a chunk
MARK = {name: int.from_bytes(value, "little") for name, value in MARKS.items()}
LEASE = list(MARKS["lease"])


def digest(number):
    return [number] * 32


def digests(numbers):
    return {"digests": [byte for number in numbers for byte in digest(number)], "digest_width": 32}


def run(offset, size):
    return {"offset": offset, "bytes": size, "stride": 0, "count": 1}


def runs(chunks):
    """A run for each object: what kv and state of each chunk take, one after the other."""
    return [one for at in range(0, chunks * (KV + STATE), KV + STATE) for one in (run(at, KV), run(at + KV, STATE))]


def space(model, algorithm="sha256_cbor"):
    return {"model": model, "revision": "r1", "dtype": "bfloat16", "layout": "recorded", "chunk_tokens": TOKENS, "hash_block_tokens": TOKENS,
            "world_size": 1, "salt": "pepper", "algorithm": algorithm, "seed": "0",
            "pools": [{"name": "kv", "object_bytes": KV}, {"name": "state", "object_bytes": STATE, "hit_rule": "trailing_chunks", "trailing": 1}]}


# Name, kind, table and contents. They have the fields that a client needs, and none that came last.
def requests(version):
    chain = list(range(1, CHUNKS + 1))
    tokens = list(range(100, 100 + 2 * TOKENS))
    here = {"space": MARK["space"]}
    there = {**here, "region": MARK["region"]}
    yield "hello", 1, "Hello", {"version": version, "client_name": "recorded"}
    yield "open_space", 2, "OpenSpace", space("recorded")
    yield "open_other_space", 2, "OpenSpace", space("other")
    yield "open_space_of_sha256", 2, "OpenSpace", space("recorded", "sha256")
    yield "open_space_of_xxh3", 2, "OpenSpace", space("recorded", "xxh3_128")
    yield "register_region", 3, "RegisterRegion", {"kind": "memfd", "bytes": REGION}
    yield "store", 9, "Store", {**there, "prefix": digests(chain), "runs": runs(CHUNKS)}
    yield "store_late", 9, "Store", {**there, "prefix": digests([41, 42]), "runs": runs(2)}
    yield "store_evicted", 9, "Store", {**there, "prefix": digests([51, 52]), "runs": runs(2)}
    yield "store_tokens", 9, "Store", {**there, "prefix": {"tokens": tokens}, "runs": runs(2)}
    yield "lookup", 6, "Lookup", {**here, "prefix": digests(chain), "lease": True}
    yield "lookup_late", 6, "Lookup", {**here, "prefix": digests([41, 42]), "lease": True}
    yield "lookup_evicted", 6, "Lookup", {**here, "prefix": digests([51, 52])}
    yield "lookup_tokens", 6, "Lookup", {**here, "prefix": {"tokens": tokens}, "digests": True}
    leased = {"lease": LEASE, "region": MARK["region"]}
    for name, chunks in (("load", CHUNKS), ("load_late", 2)):  # a lease holds of the second pool what the end of its prefix needs
        yield name, 8, "Load", {**leased, "runs": [run(i * KV, KV) for i in range(chunks)], "pools": [0]}
        yield f"{name}_state", 8, "Load", {**leased, "first_chunk": chunks - 1, "runs": [run(chunks * KV, STATE)], "pools": [1]}
    yield "load_prefix", 8, "Load", {**there, "prefix": digests(chain), "chunks": 2, "runs": runs(2)}
    yield "read_lease", 7, "ReadLease", {"lease": LEASE, "pools": [0]}
    yield "map_segment", 5, "MapSegment", {"segment": MARK["segment"]}
    yield "release", 13, "Release", {"lease": LEASE}
    yield "reserve", 10, "Reserve", {**here, "prefix": digests([61])}
    yield "commit", 11, "Commit", {"reservation": MARK["reservation"]}
    yield "lookup_committed", 6, "Lookup", {**here, "prefix": digests([61])}
    for name, numbers in (("move", chain), ("move_late", [41, 42]), ("move_evicted", [51, 52])):
        yield name, 34, "Move", {**here, "prefix": digests(numbers), "to": 2}
    yield "evict", 33, "Evict", {**here, "prefix": digests([51, 52])}
    yield "clear_space", 17, "Clear", here
    yield "end_inference", 16, "EndInference", {"inference": 7, "output_tokens": 3, "reason": "stop"}
    yield "status", 15, "Status", {}


def frame(schema_file, kind, table, contents, request):
    with tempfile.TemporaryDirectory() as folder:
        text = pathlib.Path(folder, "one.json")
        text.write_text(json.dumps(contents))
        subprocess.run(["flatc", "-b", "--root-type", f"terrace.wire.{table}", "-o", folder, schema_file, text], check=True)
        body = pathlib.Path(folder, "one.bin").read_bytes()
    body += bytes(-len(body) % 8)
    return HEADER.pack(HEADER.size + len(body), kind, 1 if table == "RegisterRegion" else 0, request) + body


def without_comments(text):
    lines = (re.sub(r"\s*//.*", "", line) for line in text.splitlines())
    return "\n".join(line for line in lines if line) + "\n"


def fill(region, numbers):
    region[:len(numbers) * (KV + STATE)] = contents_of(numbers)


class Recorder:
    """A daemon in a folder of its own that can be started again."""

    def __init__(self, program, frames, schema, configuration):
        self.program, self.frames, self.schema, self.configuration = program, frames, schema, configuration
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="terrace-record-"))

    def start(self, line):
        self.daemon = recorded_client.Daemon(self.program, self.folder, self.configuration)
        if not self.daemon.await_line(line):
            raise SystemExit(self.daemon.log)

    def client(self):
        client = Client(self.daemon.socket, self.frames, self.schema)
        client.greet()
        return client


def record_volume(program, frames, schema):
    """A volume with a checkpoint and a journal behind it, a space that was cleared, and objects that were evicted."""
    recorder = Recorder(program, frames, schema, DISK)
    recorder.start("joined")
    client = recorder.client()
    region = client.register(REGION)
    for name in ("open_other_space", "open_space"):
        client.open_space(name)
        fill(region, range(1, CHUNKS + 1))
        client.ask("store", "StoreAnswer")
        moved = client.ask("move", "MoveAnswer")
        assert moved["requested_chunks"] == CHUNKS, moved
    client.close()
    assert recorder.daemon.end() == 0  # writes a checkpoint
    recorder.start("joined")
    client = recorder.client()
    region = client.register(REGION)
    client.open_space("open_space")
    for numbers, store, move in (([41, 42], "store_late", "move_late"), ([51, 52], "store_evicted", "move_evicted")):
        fill(region, numbers)
        client.ask(store, "StoreAnswer")
        client.ask(move, "MoveAnswer")
    client.ask("evict", "EvictAnswer")
    client.open_space("open_other_space")
    client.ask("clear_space", "ClearAnswer")
    recorder.daemon.end(kill=True)
    return recorded_client.give_to_machine((recorder.folder / VOLUME_FILE).read_bytes(), bytes(16))


def record_answers(program, frames, schema):
    """What later daemons must answer as well: identities that clients have stored, and digests of tokens."""
    recorder = Recorder(program, frames, schema, MEMORY)
    recorder.start(READY)
    client = recorder.client()
    client.register(REGION)
    answers = {}
    for name in ("open_space", "open_other_space", "open_space_of_sha256", "open_space_of_xxh3"):
        opened = client.open_space(name)
        answers[name] = {"fingerprint": bytes(opened["fingerprint"]).hex(),
                         "digests": bytes(client.ask("lookup_tokens", "LookupAnswer")["digests"]).hex()}
    client.close()
    recorder.daemon.end()
    return answers


def record_protocol(program, version, schema_file, file):
    schema_file.write_text(without_comments((ROOT / "src/protocol/terrace.fbs").read_text()))
    frames = {name: frame(schema_file, kind, table, contents, 1 + i).hex()
              for i, (name, kind, table, contents) in enumerate(requests(version))}
    answers = record_answers(program, frames, Schema(schema_file.read_text()))
    file.write_text(json.dumps({"frames": frames, "answers": answers}, indent=1) + "\n")
    print(f"{file.name}: {len(frames)} frames")


def main():
    program = os.path.abspath(sys.argv[1])
    version = constant("src/protocol/kinds.hpp", "version")
    schema_file, file = HERE / f"protocol_{version}.fbs", HERE / f"protocol_{version}.json"
    if not file.exists():
        record_protocol(program, version, schema_file, file)
    volume_file = HERE / f"volume_{constant('src/storage/superblock.hpp', 'superblock_version')}.gz"
    if not volume_file.exists():
        volume = record_volume(program, json.loads(file.read_text())["frames"], Schema(schema_file.read_text()))
        volume_file.write_bytes(gzip.compress(volume, 9, mtime=0))
        print(f"{volume_file.name}: {len(volume)} bytes, {volume_file.stat().st_size} here")


if __name__ == "__main__":
    main()

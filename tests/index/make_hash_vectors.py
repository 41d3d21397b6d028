#!/usr/bin/python3
"""Makes tests/index/hash_vectors.txt with hashlib, cbor2 and xxhash: an implementation that shares no code with ours.

    make_hash_vectors.py                 print the vectors
    make_hash_vectors.py --check FILE    compare them with FILE; exit status 77 when cbor2 or xxhash is missing
"""
import hashlib
import random
import sys

try:
    import cbor2
    import xxhash
except ImportError as missing:
    print(f"skipped: {missing} (packages python3-cbor2, python3-xxhash)")
    sys.exit(77)


def sha(data):
    return hashlib.sha256(data).digest()


def xxh3(data):
    return xxhash.xxh3_128(data).digest()


def cbor(value):
    return cbor2.dumps(value, canonical=True)


def extra_keys(case, first, end):
    items = [(i, begin - first) for i, begin, count in case["items"] if begin < end and begin + count > first]
    lora = case["lora"] or None
    salt = (case["salt"] or None) if first == 0 else None
    if case["algorithm"] == "sha256_cbor":  # as vLLM has them
        return [key for key in (lora, *items, salt) if key is not None]
    return [lora, items, salt] if lora or items or salt else []


def hash_block(algorithm, parent, tokens, extra):
    if algorithm == "sha256_cbor":
        return sha(cbor([parent, tokens, extra or None]))
    function = sha if algorithm == "sha256" else xxh3
    if extra:
        parent = function(b"terrace extra keys v2" + bytes([len(parent)]) + parent + cbor(extra))
    return function(parent + b"".join(t.to_bytes(4, "little") for t in tokens))


def root(algorithm, seed):
    if algorithm == "sha256_cbor":
        return sha(cbor(seed))
    if not seed:
        return b""
    return (sha if algorithm == "sha256" else xxh3)(seed.encode())


def chain(case):
    count, start, step, modulus = case["tokens"]
    tokens = [(start + i * step) % modulus for i in range(count)]
    parent = case["parent"] or root(case["algorithm"], case["seed"])
    digests = []
    for at in range(0, count - case["block"] + 1, case["block"]):
        first = case["first"] + at
        extra = extra_keys(case, first, first + case["block"])
        parent = hash_block(case["algorithm"], parent, tokens[at : at + case["block"]], extra)
        digests.append(parent)
    return digests


def print_chain(algorithm, **given):
    case = dict(seed="", block=16, lora="", salt="", items=[], tokens=(48, 0, 1, 1 << 32), parent=b"", first=0)
    case.update(given, algorithm=algorithm)
    items = ";".join(f"{i.encode().hex()}@{b}+{n}" for i, b, n in case["items"])
    print("chain", algorithm, *(f"{name}={value}" for name, value in (
        ("seed", case["seed"].encode().hex()), ("block", case["block"]), ("lora", case["lora"].encode().hex()),
        ("salt", case["salt"].encode().hex()), ("items", items), ("tokens", ":".join(map(str, case["tokens"]))),
        ("parent", case["parent"].hex()), ("first", case["first"]),
        ("digests", ",".join(d.hex() for d in chain(case))))))


def print_chains():
    numbers = random.Random(20)
    for algorithm in ("sha256_cbor", "sha256", "xxh3_128"):
        width = 16 if algorithm == "xxh3_128" else 32
        parent = bytes(range(100, 100 + width))
        print_chain(algorithm)
        print_chain(algorithm, seed="0")
        print_chain(algorithm, seed="s" * 300, tokens=(40, 20, 1, 1 << 32))
        print_chain(algorithm, tokens=(64, 250, 3, 300), block=1)  # around the heads of 24 and 256
        print_chain(algorithm, tokens=(64, 65500, 3, 1 << 32), block=4)
        print_chain(algorithm, tokens=(64, 4294967200, 3, 1 << 32), block=64)
        print_chain(algorithm, tokens=(1024, 7, 7919, 151936), block=256)
        print_chain(algorithm, seed="0", salt="tenant-a")
        print_chain(algorithm, seed="0", lora="tenant-a")
        print_chain(algorithm, seed="0", lora="adapter-β", salt="tenant-a")
        print_chain(algorithm, items=[("image-1", 10, 3), ("image-2", 13, 30)], lora="l")
        print_chain(algorithm, items=[("image-1", 0, 16), ("image-2", 16, 300)], tokens=(320, 0, 1, 1 << 32))
        print_chain(algorithm, parent=parent, first=256, salt="unused", items=[("early", 0, 200), ("here", 250, 20)])
        print_chain(algorithm, parent=parent, salt="a seed of its own")
        for _ in range(5):
            print_chain(algorithm, seed=str(numbers.randrange(100)), block=numbers.choice([1, 8, 16, 32]),
                        lora=numbers.choice(["", "lora"]), salt=numbers.choice(["", "salt"]),
                        items=[("item", numbers.randrange(60), 1 + numbers.randrange(90))],
                        tokens=(numbers.randrange(200), numbers.randrange(1 << 32), numbers.randrange(1 << 32), 1 << 32))


def print_tags():
    digest = bytes(range(32))
    for width, tags in ((32, ["a"]), (32, ["user=1", "b", "a"]), (16, ["a"]), (8, ["t" * 256])):
        unique = sorted(set(tags))
        head = cbor("terrace tags v1") + cbor(unique)
        print("tags", f"width={width}", f"tags={','.join(t.encode().hex() for t in tags)}", f"digest={digest[:width].hex()}",
              f"tagged={sha(head + digest[:width])[:width].hex()}")


def print_first_blocks():
    block = bytes(range(32))
    for width, lora, salt in ((32, "support", ""), (32, "", "support"), (32, "adapter-β", "tenant-a"), (16, "l", "s" * 256)):
        head = cbor("terrace first block v1") + cbor([lora, salt])
        print("first_block", f"width={width}", f"lora={lora.encode().hex()}", f"salt={salt.encode().hex()}",
              f"digest={block[:width].hex()}", f"key={sha(head + block[:width])[:width].hex()}")


def print_fingerprint():
    """The spec of Fingerprint.HasItsGoldenValue in space_spec_test.cpp."""
    def number(n):
        return n.to_bytes(8, "little")

    def text(s):
        return number(len(s.encode())) + s.encode()

    data = text("terrace space v1") + text("m/Llama") + text("r1") + text("bfloat16") + text("KV_2LTD")
    data += number(256) + number(16) + number(4) + text("tenant") + number(1) + text("0") + number(2)
    data += text("kv") + number(1 << 20) + number(0) + number(0) + number(0)
    data += text("mamba") + number(4096) + number(1) + number(2) + number(1)
    print("fingerprint", sha(data).hex())


def print_all():
    print_chains()
    print_tags()
    print_first_blocks()
    print_fingerprint()


if sys.argv[1:2] == ["--check"]:
    import contextlib
    import io

    made = io.StringIO()
    with contextlib.redirect_stdout(made):
        print_all()
    with open(sys.argv[2], encoding="utf-8") as file:
        kept = file.read()
    if kept != made.getvalue():
        sys.exit(f"{sys.argv[2]} differs from what this script makes: write it anew and see what changed")
else:
    print_all()

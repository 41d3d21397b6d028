"""Plugins of the remote tier: the process that hosts them, and those that ship, without a daemon."""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import unittest
from collections.abc import Sequence
from pathlib import Path
from unittest import mock

from terrace.remote import NoRoom, Store, fs, host, parse_bytes

REPOSITORY = Path(__file__).resolve().parents[2]
ROOM = 64 << 10

# A client that gives a Mooncake store memory, until its input ends.
GIVER = """
import socket, sys
while socket.socket().connect_ex(("127.0.0.1", int(sys.argv[1]))):
    pass
from mooncake.store import MooncakeDistributedStore
store = MooncakeDistributedStore()
assert store.setup("127.0.0.1", "P2PHANDSHAKE", 64 << 20, 16 << 20, "tcp", "", "127.0.0.1:" + sys.argv[1]) == 0
print("gives", flush=True)
sys.stdin.read()
import os
os._exit(0)
"""


def has_mooncake() -> bool:
    try:
        return importlib.util.find_spec("mooncake.store") is not None and bool(importlib.import_module("mooncake.store"))
    except ImportError:
        return False


HAS_MOONCAKE = has_mooncake()


def buffer_of(data: bytes) -> memoryview:
    return memoryview(bytearray(data))


class Shelf:
    """A store in memory."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}
        self.failure: Exception | None = None

    def exists(self, keys: Sequence[str]) -> list[bool]:
        if self.failure:
            raise self.failure
        return [key in self.values for key in keys]

    def get_into(self, keys: Sequence[str], buffers: Sequence[memoryview]) -> list[int]:
        for key, buffer in zip(keys, buffers):
            value = self.values.get(key, b"")
            if len(value) <= len(buffer):
                buffer[: len(value)] = value
        return [len(self.values[key]) if key in self.values else -1 for key in keys]

    def put_from(self, keys: Sequence[str], buffers: Sequence[memoryview]) -> None:
        self.values.update((key, bytes(buffer)) for key, buffer in zip(keys, buffers))

    def remove(self, keys: Sequence[str]) -> None:
        for key in keys:
            self.values.pop(key, None)


def request(verb: int, number: int, items: Sequence[tuple[str, int, int]]) -> bytes:
    """Items are a key, a begin and a number of bytes: as src/remote/plugin_frames.hpp has them."""
    frame = struct.pack("<4sBBHQ", b"TPL1", verb, 0, len(items), number)
    for key, begin, length in items:
        frame += struct.pack("<HHII", len(key), 0, begin, length) + key.encode()
    return frame


def answer(frame: bytes) -> tuple[int, bool, int, list[int], str]:
    """Verb, failure, number of the request, numbers of the items, text."""
    magic, verb, failed, items, number, text = struct.unpack_from("<4sBBHQH6x", frame)
    assert magic == b"TPL1" and len(frame) == 24 + 8 * items + text
    return verb, bool(failed), number, list(struct.unpack_from(f"<{items}q", frame, 24)), frame[24 + 8 * items :].decode()


class Hosted(unittest.TestCase):
    def setUp(self) -> None:
        self.shelf = Shelf()
        self.buffer = memoryview(bytearray(ROOM))
        self.daemon, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.thread = threading.Thread(target=host.Host(self.shelf, theirs, self.buffer).serve)
        self.thread.start()
        self.addCleanup(self.end, theirs)

    def end(self, theirs: socket.socket) -> None:
        self.daemon.close()
        self.thread.join()
        theirs.close()

    def ask(self, verb: int, *items: tuple[str, int, int]) -> tuple[int, bool, int, list[int], str]:
        self.daemon.send(request(verb, 77, items))
        return answer(self.daemon.recv(ROOM))

    def test_each_verb_is_answered(self) -> None:
        self.buffer[4096:4101] = b"value"
        self.assertEqual(self.ask(host.PUT, ("a/{b}", 4096, 5)), (host.PUT, False, 77, [1], ""))
        self.assertEqual(self.shelf.values, {"a/{b}": b"value"})
        self.assertEqual(self.ask(host.EXISTS, ("a/{b}", 0, 0), ("c", 0, 0))[3], [1, 0])
        self.assertEqual(self.ask(host.GET, ("a/{b}", 8192, 100), ("c", 12288, 5), ("a/{b}", 0, 2))[3], [5, -1, 5])
        self.assertEqual(bytes(self.buffer[8192:8197]), b"value")
        self.assertEqual(self.ask(host.REMOVE, ("a/{b}", 0, 0), ("c", 0, 0))[3], [1, 1])
        self.assertEqual(self.shelf.values, {})

    def test_make_does_not_replace(self) -> None:
        self.shelf.values["there"] = b"first"
        self.buffer[:6] = b"second"
        self.assertEqual(self.ask(host.MAKE, ("there", 0, 6), ("new", 0, 6))[3], [0, 1])
        self.assertEqual(self.shelf.values, {"there": b"first", "new": b"second"})

    def test_what_raises_is_told_and_the_next_request_answered(self) -> None:
        self.shelf.failure = OSError("no" + "ä" * 2000)
        with mock.patch("traceback.print_exc"):
            verb, failed, number, numbers, text = self.ask(host.EXISTS, ("a", 0, 0), ("b", 0, 0))
        self.assertEqual((verb, failed, number, numbers), (host.EXISTS, True, 77, [-2, -2]))
        self.assertTrue(text.startswith("OSError: noä"))
        self.assertLessEqual(len(text.encode()), 1024)
        self.shelf.failure = NoRoom("full")
        self.assertEqual(self.ask(host.EXISTS, ("a", 0, 0)), (host.EXISTS, False, 77, [-3], "full"))
        self.shelf.failure = None
        self.assertEqual(self.ask(host.EXISTS, ("a", 0, 0))[3], [0])


class Loading(unittest.TestCase):
    def refused(self, name: str, options: str = "") -> str:
        with self.assertRaises(host.Unusable) as raised:
            host.load_plugin(name, options)
        return str(raised.exception)

    def test_mistakes_are_told_with_the_fix(self) -> None:
        self.assertRegex(self.refused("ceph"), "^there is no plugin ceph: expected fs, mooncake, nixl, or a module of yours")
        self.assertIn("has no class Store", self.refused("colorsys"))
        self.assertIn('path "relative": expected the absolute path', self.refused("fs", "path=relative"))
        self.assertIn("folder", self.refused("fs", "folder=/tmp"))
        self.assertIn('"5 GB": expected bytes such as 64GiB', self.refused("fs", "path=/tmp&bytes=5%20GB"))
        with mock.patch.dict(sys.modules, {"half": mock.Mock(Store=lambda: object())}):
            self.assertIn("has no method exists", self.refused("half"))

    def test_a_package_that_is_missing_is_named(self) -> None:
        for name, package in (("mooncake", "mooncake"), ("nixl", "nixl")):
            with self.subTest(name), mock.patch.dict(sys.modules, {package: None, f"{package}._api": None, f"{package}.store": None}):
                with tempfile.TemporaryDirectory() as folder:
                    options = "master=127.0.0.1:1" if name == "mooncake" else f"path={folder}"
                    self.assertIn(package, self.refused(name, options))

    def test_options_are_decoded(self) -> None:
        with tempfile.TemporaryDirectory(prefix="a b&") as folder:
            quoted = folder.replace(" ", "%20").replace("&", "%26")
            store = host.load_plugin("fs", f"path={quoted}&bytes=1GiB")
            store.put_from(["k"], [buffer_of(b"v")])
            self.assertEqual(list(store.exists(["k"])), [True])


class Sizes(unittest.TestCase):
    def test_units(self) -> None:
        self.assertEqual([parse_bytes(text) for text in ("0", "7B", "2KiB", "3MiB", "4GiB", "5TiB")],
                         [0, 7, 2 << 10, 3 << 20, 4 << 30, 5 << 40])
        for text in ("", "GiB", "-1", "1.5GiB", "1GB", "1 GiB", "1iGB"):
            with self.subTest(text), self.assertRaises(ValueError):
                parse_bytes(text)


class Files(unittest.TestCase):
    KEY = "terrace/t1/0123/4567/0.0/{89ab}"

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        small = mock.patch.object(fs, "BYTES_MIN", 1)
        small.start()
        self.addCleanup(small.stop)

    def store(self, limit: str = "1GiB") -> Store:
        return fs.Store(path=str(self.folder), bytes=limit)

    def files(self) -> list[Path]:
        return sorted(each for each in self.folder.rglob("*") if each.is_file())

    def read(self, store: Store, key: str, room: int = ROOM) -> bytes | None:
        buffer = memoryview(bytearray(room))
        length = store.get_into([key], [buffer])[0]
        return None if length < 0 else bytes(buffer[:length])

    def test_values_come_back_in_another_process_of_the_store(self) -> None:
        self.store().put_from([self.KEY, "empty"], [buffer_of(b"value"), buffer_of(b"")])
        other = self.store()
        self.assertEqual(other.exists([self.KEY, "empty", "none"]), [True, True, False])
        self.assertEqual(self.read(other, self.KEY), b"value")
        self.assertEqual(self.read(other, "empty"), b"")
        self.assertIsNone(self.read(other, "none"))
        other.remove([self.KEY, "none"])
        self.assertIsNone(self.read(self.store(), self.KEY))

    def test_a_value_that_is_longer_than_the_room_is_not_read(self) -> None:
        store = self.store()
        store.put_from([self.KEY], [buffer_of(b"value")])
        buffer = buffer_of(b"xxxx")
        self.assertEqual(store.get_into([self.KEY], [buffer]), [5])
        self.assertEqual(bytes(buffer), b"xxxx")

    def test_a_value_is_replaced_as_a_whole(self) -> None:
        store = self.store()
        for value in (b"first", b"second value"):
            store.put_from([self.KEY], [buffer_of(value)])
            self.assertEqual(self.read(store, self.KEY), value)
        self.assertEqual(len(self.files()), 1)

    def test_names_are_escaped_and_differ(self) -> None:
        keys = ["a/b", "a%2fb", "../../etc/passwd", ".", "a\\b", "{a}", "a:b", "k" * 500, "k" * 499]
        names = {fs.escaped(key) for key in keys}
        self.assertEqual(len(names), len(keys))
        for name in names:
            self.assertRegex(name, r"^v-[^/\\:{}]{1,253}$")
        store = self.store()
        for key in keys:
            store.put_from([key], [buffer_of(key.encode())])
        self.assertEqual([self.read(store, key) for key in keys], [key.encode() for key in keys])
        self.assertEqual({each.parent.parent for each in self.files()}, {self.folder})

    def test_damage_is_a_miss_and_removed(self) -> None:
        store = self.store()
        for damage in (lambda data: data[:-1], lambda data: data[:5], lambda data: b"", lambda data: b"x" + data[1:], lambda data: data + b"x"):
            store.put_from([self.KEY], [buffer_of(b"some value")])
            (file,) = self.files()
            file.write_bytes(damage(file.read_bytes()))
            self.assertIsNone(self.read(store, self.KEY))
            self.assertEqual(self.files(), [])

    def test_what_could_not_be_written_leaves_nothing(self) -> None:
        store = self.store()
        with mock.patch("os.rename", side_effect=OSError(28, "no space")), self.assertRaises(NoRoom):
            store.put_from([self.KEY], [buffer_of(b"value")])
        self.assertEqual(self.files(), [])
        self.assertEqual(store.exists([self.KEY]), [False])

    def test_a_failure_at_the_close_leaves_nothing_and_no_descriptor(self) -> None:
        store = self.store()
        descriptors = len(os.listdir("/proc/self/fd"))
        close, failures = os.close, [OSError(122, "quota")]

        def fail_once(descriptor: int) -> None:
            close(descriptor)
            if failures:
                raise failures.pop()

        with mock.patch("os.close", side_effect=fail_once), self.assertRaises(NoRoom):
            store.put_from(["a", "b"], [buffer_of(b"value"), buffer_of(b"other")])
        self.assertEqual(self.files(), [])
        self.assertEqual(len(os.listdir("/proc/self/fd")), descriptors)

    def test_a_value_that_cannot_be_read_is_absent_and_the_others_are_read(self) -> None:
        store = self.store()
        store.put_from(["a", "b"], [buffer_of(b"value"), buffer_of(b"other")])
        buffers = [memoryview(bytearray(5)), memoryview(bytearray(5))]
        open_file = os.open

        def stale(path: str, *rest: int, **more: int) -> int:
            if path.endswith("v-a"):
                raise OSError(116, "Stale file handle")
            return open_file(path, *rest, **more)

        with mock.patch("os.open", side_effect=stale):
            self.assertEqual(store.get_into(["a", "b"], buffers), [-1, 5])
        self.assertEqual(bytes(buffers[1]), b"other")
        self.assertEqual(len(self.files()), 2, "it may be readable later")

    def test_another_folder_at_the_path_is_not_written_to(self) -> None:
        inner = self.folder / "mounted"
        inner.mkdir()
        store = fs.Store(path=str(inner), bytes="1GiB")
        store.put_from(["a"], [buffer_of(b"value")])
        inner.rename(self.folder / "elsewhere")
        inner.mkdir()
        with self.assertRaisesRegex(NoRoom, "still mounted"):
            store.put_from(["b"], [buffer_of(b"value")])
        with self.assertRaisesRegex(NoRoom, "still mounted"):
            store.exists(["a"])
        self.assertEqual(os.listdir(inner), [])

    def test_few_bytes_are_refused(self) -> None:
        with mock.patch.object(fs, "BYTES_MIN", 64 << 20), self.assertRaisesRegex(ValueError, '"500": expected at least 64MiB'):
            self.store("500")

    def test_the_oldest_values_make_room(self) -> None:
        store = self.store("100KiB")
        store.put_from(["token"], [buffer_of(b"small")])
        os.utime(self.files()[0], (1, 1))
        for i in range(20):
            store.put_from([f"k{i}"], [buffer_of(bytes(10_000))])
            for file in self.files():
                if file.name == f"v-k{i}":
                    os.utime(file, (1000 + i, 1000 + i))
            self.assertLessEqual(sum(each.stat().st_size for each in self.files()), 100 << 10)
        there = store.exists([f"k{i}" for i in range(20)])
        self.assertEqual(there, sorted(there), "the oldest are gone")
        self.assertGreaterEqual(sum(there), 8)
        self.assertEqual(store.exists(["token"]), [True], "small values stay")

    def test_what_other_machines_have_written_counts(self) -> None:
        self.store("1MiB").put_from([f"a{i}" for i in range(9)], [buffer_of(bytes(10_000))] * 9)
        store = self.store("100KiB")
        store.put_from(["b"], [buffer_of(bytes(20_000))])
        self.assertLessEqual(sum(each.stat().st_size for each in self.files()), 100 << 10)
        self.assertEqual(store.exists(["b"]), [True])

    def test_a_value_larger_than_the_limit_is_refused(self) -> None:
        store = self.store("64KiB")
        with self.assertRaises(NoRoom):
            store.put_from(["k"], [buffer_of(bytes(100_000))])
        self.assertEqual(self.files(), [])

    def test_what_a_crash_has_left_behind_is_removed(self) -> None:
        store = self.store("64KiB")
        (self.folder / "00").mkdir()
        for name, age in (("w-old-1-1", 1), ("w-new-1-1", None)):
            (self.folder / "00" / name).write_bytes(b"half")
            if age:
                os.utime(self.folder / "00" / name, (age, age))
        store.put_from(["k"], [buffer_of(bytes(10_000))])
        self.assertEqual({each.name for each in self.files()}, {"w-new-1-1", "v-k"})


class Processes(unittest.TestCase):
    """`python3 -m terrace.remote` as the daemon runs it."""

    def start(self, name: str, options: str, path: str = "") -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.memory = os.memfd_create("buffer")
        os.truncate(self.memory, ROOM)
        given = (theirs.fileno(), self.memory)
        high = [os.dup(os.dup(os.dup(number))) for number in given]

        def place() -> None:
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (path, os.environ.get("PYTHONPATH"))))}
        self.process = subprocess.Popen([sys.executable, "-m", "terrace.remote", name, options], env=environment, close_fds=False,
                                        preexec_fn=place)
        theirs.close()
        self.addCleanup(self.process.wait)
        self.addCleanup(ours.close)
        return ours

    def ask(self, daemon: socket.socket, verb: int, *items: tuple[str, int, int]) -> list[int]:
        daemon.send(request(verb, 1, items))
        return answer(daemon.recv(ROOM))[3]

    def test_it_says_hello_serves_and_ends_with_its_socket(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            daemon = self.start("fs", f"path={folder}")
            self.assertEqual(answer(daemon.recv(ROOM)), (host.HELLO, False, 0, [], "fs 1"))
            os.pwrite(self.memory, b"value", 0)
            self.assertEqual(self.ask(daemon, host.PUT, ("k", 0, 5)), [1])
            self.assertEqual(self.ask(daemon, host.GET, ("k", 4096, 5)), [5])
            self.assertEqual(os.pread(self.memory, 5, 4096), b"value")
            daemon.close()
            self.assertEqual(self.process.wait(), 0)

    def test_what_cannot_be_used_is_refused(self) -> None:
        daemon = self.start("ceph", "")
        verb, failed, _, _, text = answer(daemon.recv(ROOM))
        self.assertEqual((verb, failed), (host.HELLO, True))
        self.assertIn("there is no plugin ceph", text)
        self.assertEqual(self.process.wait(), 2)

    def test_the_example_of_the_documents(self) -> None:
        page = (REPOSITORY / "docs" / "remote.md").read_text(encoding="utf-8")
        found = re.search(r"```python\n(# shelf\.py.*?)```", page, re.DOTALL)
        assert found
        self.assertLessEqual(found[1].count("\n"), 30)
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "shelf.py").write_text(found[1], encoding="utf-8")
            daemon = self.start("shelf", "file=" + folder + "/kv.sqlite", folder)
            self.assertEqual(answer(daemon.recv(ROOM)), (host.HELLO, False, 0, [], "shelf"))
            os.pwrite(self.memory, b"value", 0)
            self.assertEqual(self.ask(daemon, host.EXISTS, ("k", 0, 0)), [0])
            self.assertEqual(self.ask(daemon, host.PUT, ("k", 0, 5)), [1])
            self.assertEqual(self.ask(daemon, host.EXISTS, ("k", 0, 0), ("l", 0, 0)), [1, 0])
            self.assertEqual(self.ask(daemon, host.GET, ("k", 4096, 100), ("l", 8192, 5), ("k", 0, 2)), [5, -1, 5])
            self.assertEqual(os.pread(self.memory, 5, 4096), b"value")
            self.assertEqual(self.ask(daemon, host.REMOVE, ("k", 0, 0)), [1])
            self.assertEqual(self.ask(daemon, host.GET, ("k", 4096, 5)), [-1])

    @unittest.skipUnless(importlib.util.find_spec("nixl"), "the package nixl is not installed")
    def test_nixl_moves_the_files_of_fs(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            daemon = self.start("nixl", f"path={folder}")
            self.assertEqual(answer(daemon.recv(ROOM))[:2], (host.HELLO, False))
            os.pwrite(self.memory, b"value", 0)
            self.assertEqual(self.ask(daemon, host.PUT, ("k", 0, 5)), [1])
            self.assertEqual(self.ask(daemon, host.GET, ("k", 4096, 100), ("l", 8192, 5)), [5, -1])
            self.assertEqual(os.pread(self.memory, 5, 4096), b"value")
            buffer = memoryview(bytearray(5))
            self.assertEqual(fs.Store(path=folder).get_into(["k"], [buffer]), [5])
            self.assertEqual(bytes(buffer), b"value")

    @unittest.skipUnless(HAS_MOONCAKE, "Mooncake is not installed, or libibverbs is not")
    def test_mooncake_keeps_values_in_the_memory_of_its_clients(self) -> None:
        with socket.socket() as free, socket.socket() as other:
            free.bind(("127.0.0.1", 0))
            other.bind(("127.0.0.1", 0))
            port, metrics = free.getsockname()[1], other.getsockname()[1]
        program = Path(sys.executable).parent / "mooncake_master"
        master = subprocess.Popen([program, f"-rpc_port={port}", f"-metrics_port={metrics}"], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL)
        self.addCleanup(master.wait)
        self.addCleanup(master.kill)
        giver = subprocess.Popen([sys.executable, "-c", GIVER, str(port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 stderr=subprocess.DEVNULL)
        self.addCleanup(giver.communicate)
        assert giver.stdout
        self.assertEqual(giver.stdout.readline(), b"gives\n")
        daemon = self.start("mooncake", f"master=127.0.0.1:{port}")
        self.assertEqual(answer(daemon.recv(ROOM)), (host.HELLO, False, 0, [], "mooncake"))
        os.pwrite(self.memory, b"value", 0)
        self.assertEqual(self.ask(daemon, host.PUT, ("a/{k}", 0, 5)), [1])
        self.assertEqual(self.ask(daemon, host.EXISTS, ("a/{k}", 0, 0), ("l", 0, 0)), [1, 0])
        self.assertEqual(self.ask(daemon, host.GET, ("a/{k}", 4096, 100), ("l", 8192, 5), ("a/{k}", 12288, 2)), [5, -1, 5])
        self.assertEqual(os.pread(self.memory, 5, 4096), b"value")
        self.assertEqual(self.ask(daemon, host.GET, ("a/{k}", 4096, 0)), [5])
        os.pwrite(self.memory, b"other", 0)
        self.assertEqual(self.ask(daemon, host.PUT, ("a/{k}", 0, 5)), [1], "it replaces what is there")
        self.assertEqual(self.ask(daemon, host.GET, ("a/{k}", 4096, 5)), [5])
        self.assertEqual(os.pread(self.memory, 5, 4096), b"other")
        self.assertEqual(self.ask(daemon, host.REMOVE, ("a/{k}", 0, 0), ("l", 0, 0)), [1, 1])
        self.assertEqual(self.ask(daemon, host.EXISTS, ("a/{k}", 0, 0)), [0])


if __name__ == "__main__":
    unittest.main()

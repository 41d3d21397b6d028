"""A client that sends recorded frames, and reads answers by a recorded schema: nothing of it comes from today's sources.

A recorded frame has marks where a client puts what the daemon has told it: ids of a space, a region and a reservation, and a lease.
"""

import ctypes
import fcntl
import mmap
import os
import pathlib
import re
import socket
import struct
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
MEMORY = '[host]\nbytes = "16MiB"\n[disk]\nbytes = 0\n'
DISK = '[host]\nbytes = "16MiB"\n[disk]\nbytes = "4MiB"\nadmission = "always"\n'
READY = "listens on"
VOLUME_FILE = "terrace.extents"
HEADER = struct.Struct("<IHHQ")  # docs/protocol.md: length, kind, descriptors, request
ERROR, ANSWER = 0x7FFF, 0x8000
MARKS = {"space": struct.pack("<I", 0x5A5A5A01), "region": struct.pack("<I", 0x5A5A5A02), "segment": struct.pack("<I", 0x5A5A5A03),
         "reservation": struct.pack("<Q", 0x5A5A5A5A5A5A5A04), "lease": b"\x5a" * 15 + b"\x05"}
KV, STATE, CHUNKS = 12288, 4096, 6  # bytes of an object of each pool; chunks of the recorded chain
REGION = 1 << 20
SCALARS = {"bool": "?", "ubyte": "B", "ushort": "H", "uint": "I", "ulong": "Q", "int": "i", "double": "d"}


def constant(path, name):
    """A number of today's source, such as a version."""
    return int(re.search(rf"constexpr uint32_t {name} = (\d+);", (ROOT / path).read_text())[1])


class Schema:
    """The tables of a schema in the language of FlatBuffers, as far as protocols of Terrace use it."""

    def __init__(self, text):
        self.fields, self.structs, self.enums = {}, {}, set(re.findall(r"enum (\w+) : ubyte", text))
        for kind, name, body in re.findall(r"(table|struct) (\w+) \{(.*?)\}", text, re.DOTALL):
            fields = [(field, of) for field, of in re.findall(r"(\w+):(\[?\w+\]?)", body)]
            (self.fields if kind == "table" else self.structs)[name] = fields

    def read(self, table, body):
        return self.table(table, body, struct.unpack_from("<I", body)[0])

    def table(self, name, body, at):
        vtable = at - struct.unpack_from("<i", body, at)[0]
        size, = struct.unpack_from("<H", body, vtable)
        values = {}
        for number, (field, of) in enumerate(self.fields[name]):
            entry = vtable + 4 + 2 * number
            offset = struct.unpack_from("<H", body, entry)[0] if entry < vtable + size else 0
            values[field] = self.value(of, body, at + offset) if offset else None
        return values

    def value(self, of, body, at):
        of = "ubyte" if of in self.enums else of
        if of in SCALARS:
            return struct.unpack_from("<" + SCALARS[of], body, at)[0]
        if of in self.structs:
            return struct.unpack_from("<" + "".join(SCALARS[one] for _, one in self.structs[of]), body, at)
        at += struct.unpack_from("<I", body, at)[0]
        if of == "string":
            count, = struct.unpack_from("<I", body, at)
            return body[at + 4:at + 4 + count].decode()
        if of.startswith("["):
            count, = struct.unpack_from("<I", body, at)
            of = of[1:-1]
            step = (struct.calcsize("<" + "".join(SCALARS[one] for _, one in self.structs[of])) if of in self.structs
                    else struct.calcsize(SCALARS.get(of, "I")))
            return [self.value(of, body, at + 4 + i * step) for i in range(count)]
        return self.table(of, body, at)


class Daemon:
    """A daemon in a folder, with its log."""

    def __init__(self, program, folder, configuration):
        self.socket = folder / "terrace.sock"
        file = folder / "terraced.toml"
        file.write_text(f'[[listen]]\npath = "{self.socket}"\n[metrics]\naddress = ""\n' +
                        configuration)
        self.process = subprocess.Popen([program, "--config", file, "--state-dir", folder], stderr=subprocess.PIPE, text=True)
        self.log = ""

    def await_line(self, *texts):
        """Reads its log up to a line with one of these texts: that line, or nothing if it has ended."""
        for line in self.process.stderr:
            self.log += line
            if any(text in line for text in texts):
                return line
        return ""

    def end(self, kill=False):
        """Its exit code."""
        if self.process.stderr.closed:
            return self.process.returncode
        if kill:
            self.process.kill()
        elif self.process.poll() is None:
            self.process.terminate()
        self.log += self.process.stderr.read()
        self.process.stderr.close()
        return self.process.wait()


class Refused(Exception):
    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


class Client:
    def __init__(self, path, frames, schema):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        self.socket.connect(str(path))
        self.frames, self.schema = frames, schema
        self.known = {}
        self.descriptors = []

    def close(self):
        self.socket.close()
        for one in self.descriptors:
            os.close(one)

    def send(self, frame, descriptors=()):
        socket.send_fds(self.socket, [frame], list(descriptors))

    def ask(self, name, answer, descriptors=()):
        """Sends the recorded frame with this name. Returns its answer, a table with this name."""
        frame = bytes.fromhex(self.frames[name])
        for mark, value in self.known.items():
            frame = frame.replace(MARKS[mark], value)
        self.send(frame, descriptors)
        return self.receive(answer)

    def receive(self, answer):
        header = self.read(HEADER.size)
        length, kind, count, _ = HEADER.unpack(header)
        body = self.read(length - HEADER.size)
        if len(self.descriptors) < count:
            raise AssertionError(f"a frame announces {count} descriptors, and {len(self.descriptors)} came")
        if kind == ERROR:
            said = self.schema.read("Error", body)
            raise Refused(said["code"], said["text"])
        return self.schema.read(answer, body)

    def read(self, count):
        data = b""
        while len(data) < count:
            part, descriptors, _, _ = socket.recv_fds(self.socket, count - len(data), 8)
            if not part:
                raise AssertionError("the daemon has closed the connection")
            self.descriptors += descriptors
            data += part
        return data

    # ---- what every scenario needs ----

    def greet(self):
        return self.ask("hello", "HelloAnswer")

    def open_space(self, name):
        opened = self.ask(name, "OpenSpaceAnswer")
        self.known["space"] = struct.pack("<I", opened["space"])
        return opened

    def register(self, size):
        """A region of this size: its memory."""
        file = os.memfd_create("recorded", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(file, size)
        fcntl.fcntl(file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
        registered = self.ask("register_region", "RegisterRegionAnswer", [file])
        self.known["region"] = struct.pack("<I", registered["region"])
        self.descriptors.append(file)
        return mmap.mmap(file, size)

    def map(self, segment):
        """The memory of a segment of the daemon."""
        self.known["segment"] = struct.pack("<I", segment)
        mapped = self.ask("map_segment", "MapSegmentAnswer")
        access = mmap.PROT_READ | (mmap.PROT_WRITE if mapped["writable"] else 0)
        return mmap.mmap(self.descriptors[-1], mapped["bytes"], prot=access)

    def load(self, name, region, chunks):
        """Loads what the lease holds of these chunks: all of the first pool, and the last of the second."""
        region[:len(chunks) * KV + STATE] = bytes(len(chunks) * KV + STATE)
        kv, state = self.ask(name, "LoadAnswer"), self.ask(f"{name}_state", "LoadAnswer")
        expected = b"".join(object_of(chunk, 0) for chunk in chunks) + object_of(chunks[-1], 1)
        return (kv["delivered_chunks"], state["delivered_chunks"]) == (len(chunks), 1) and region[:len(expected)] == expected

    def look_up(self, name):
        found = self.ask(name, "LookupAnswer")
        if found["lease"]:
            self.known["lease"] = bytes(found["lease"])
        return found


def object_of(chunk, pool):
    """The bytes of an object. They compress well, and differ."""
    size = (KV, STATE)[pool]
    row = bytes((chunk * 17 + pool * 101 + i * (chunk + 1)) % 251 for i in range(251))
    return (row * (size // len(row) + 1))[:size]


def contents_of(chunks):
    """Of both pools, as they are stored."""
    return b"".join(object_of(chunk, pool) for chunk in chunks for pool in (0, 1))


def give_to_machine(volume, machine):
    """Makes the machine with this id the owner of a volume of version 2 (docs/disk-format.md), in both superblocks."""
    xxhash = ctypes.CDLL("libxxhash.so.0")
    xxhash.XXH3_64bits.restype = ctypes.c_uint64
    xxhash.XXH3_64bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    given = bytearray(volume)
    for at in (0, 4096):
        block = bytearray(given[at:at + 4096])
        assert block[:8] == b"TERRSTOR" and struct.unpack_from("<I", block, 8) == (2,)
        block[48:64] = machine
        block[216:224] = bytes(8)
        struct.pack_into("<Q", block, 216, xxhash.XXH3_64bits(bytes(block), len(block)))
        given[at:at + 4096] = block
    return bytes(given)

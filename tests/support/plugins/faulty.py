"""The plugin `fs` with faults, for tests: `plugin://faulty?path=FOLDER`. FOLDER/fault names what the next calls do."""

import os
import signal

from terrace.remote import fs

SOCKET = 3


class Store(fs.Store):
    version = "of tests"

    def __init__(self, path="", greeting=""):
        super().__init__(path)
        self._fault_file = os.path.join(path, "fault")
        if greeting == "crash":
            os._exit(7)
        if greeting == "garbage":
            os.write(SOCKET, b"HELO")
        if greeting == "hang":
            signal.pause()
        if greeting == "close":
            os.close(SOCKET)
            signal.pause()
        if greeting == "refuse":
            raise ValueError("there is no disk; \033[31mbuy one")

    def _fault(self):
        try:
            with open(self._fault_file, encoding="ascii") as file:
                fault = file.read()
        except FileNotFoundError:
            return ""
        if fault == "crash":
            os.kill(os.getpid(), signal.SIGKILL)
        if fault == "hang":
            signal.pause()
        if fault == "close":
            os.close(SOCKET)
            signal.pause()
        if fault == "raise":
            raise OSError("the store is on fire")
        if fault == "garbage":
            os.write(SOCKET, os.urandom(200))
        if fault == "long":
            os.write(SOCKET, bytes(100_000))
        if fault == "full":
            raise fs.NoRoom("the disk is full")
        return fault

    def exists(self, keys):
        there = super().exists(keys)
        return there[1:] if self._fault() == "few" else there

    def get_into(self, keys, buffers):
        fault = self._fault()
        lengths = super().get_into(keys, buffers)
        if fault == "wrong":
            for buffer in buffers:
                buffer[len(buffer) // 2] ^= 1
        if fault == "short":
            return [length - 1 for length in lengths]
        if fault == "liar":
            return [1 << 40 for _ in lengths]
        return lengths

    def put_from(self, keys, buffers):
        self._fault()
        super().put_from(keys, buffers)

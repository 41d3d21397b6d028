"""The plugin `fs` with faults, for tests: `plugin://faulty?path=FOLDER`. FOLDER/fault names what the next calls do,
and behind a space a part of the keys that are read so; without it all are."""

import os
import signal

from terrace.remote import ABSENT, fs

SOCKET = 3


class Store(fs.Store):
    version = "of tests"

    def __init__(self, path="", greeting=""):
        super().__init__(path)
        self._fault_file = os.path.join(path, "fault")
        self._part = ""  # of the keys
        self._other = ""  # a key that was read, without that part
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
                fault, _, self._part = file.read().partition(" ")
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
        meant = [fault != "" and self._part in key for key in keys]
        if fault == "another":
            self._other = next((key for key, is_meant in zip(keys, meant) if not is_meant and "{" in key), self._other)
            keys = [self._other if is_meant else key for key, is_meant in zip(keys, meant)]
        lengths = super().get_into(keys, buffers)
        for i, buffer in enumerate(buffers):
            if not meant[i]:
                continue
            if fault == "wrong":
                buffer[len(buffer) // 2] ^= 1
            elif fault == "short":
                lengths[i] -= 1
            elif fault == "liar":
                lengths[i] = 1 << 40
            elif fault == "absent":
                lengths[i] = ABSENT
        return lengths

    def put_from(self, keys, buffers):
        self._fault()
        super().put_from(keys, buffers)

"""Mooncake's store: `plugin://mooncake?master=10.0.0.7:50051`.

    master    address of the master
    metadata  of the transfer engine, such as http://10.0.0.7:8080/metadata; by default P2PHANDSHAKE
    protocol  tcp (by default) or rdma
    devices   RDMA devices, with commas between them
    host      name or address of this machine, for others; by default the one by which it reaches the master

The processes give the store no memory of theirs: run Mooncake's own clients for that. It evicts by its own rules; values of up to 4 KiB, such
as tokens, are pinned. It needs the package mooncake-transfer-engine, or mooncake-transfer-engine-non-cuda, and libibverbs.
"""

import socket
from collections.abc import Sequence

from . import ABSENT, NoRoom, address_of

_NO_SUCH_OBJECT, _NO_SPACE = -704, (-200, -1000)
_SMALL = 4 << 10
_LOCAL_BYTES = 64 << 20  # of a client itself; values do not pass through it


def _own_address(master: str) -> str:
    host, _, port = master.rpartition(":")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((host, int(port)))  # sends nothing
        return str(probe.getsockname()[0])


class Store:
    version = ""

    def __init__(
        self, master: str = "", metadata: str = "P2PHANDSHAKE", protocol: str = "tcp", devices: str = "", host: str = ""
    ) -> None:
        from mooncake.store import MooncakeDistributedStore, ReplicateConfig  # type: ignore[import-not-found]

        if not master.rpartition(":")[2].isdigit():
            raise ValueError(f'master "{master}": expected the address of the master, such as 10.0.0.7:50051')
        self._store = MooncakeDistributedStore()
        self._evicted, self._pinned = ReplicateConfig(), ReplicateConfig()
        self._pinned.with_hard_pin = True
        failed = self._store.setup(host or _own_address(master), metadata, 0, _LOCAL_BYTES, protocol, devices, master)
        if failed:
            raise ValueError(f"Mooncake's client cannot be used (code {failed}): is the master at {master}, and metadata as it has it?")

    def attach(self, buffer: memoryview) -> None:
        """Values are moved between the store and this memory."""
        failed = self._store.register_buffer(address_of(buffer), len(buffer))
        if failed:
            raise ValueError(f"Mooncake cannot register memory (code {failed})")

    def exists(self, keys: Sequence[str]) -> list[bool]:
        found = self._store.batch_is_exist(list(keys))
        if any(one < 0 for one in found):
            raise OSError(f"Mooncake does not say what is there (code {min(found)})")
        return [one == 1 for one in found]

    def get_into(self, keys: Sequence[str], buffers: Sequence[memoryview]) -> list[int]:
        if not all(len(buffer) for buffer in buffers):
            return [self._size(key) for key in keys]
        read = self._store.batch_get_into(list(keys), [address_of(b) for b in buffers], [len(b) for b in buffers])
        return [self._length(key, buffer, one) for key, buffer, one in zip(keys, buffers, read, strict=True)]

    def put_from(self, keys: Sequence[str], buffers: Sequence[memoryview]) -> None:
        for config, is_small in ((self._pinned, True), (self._evicted, False)):
            chosen = [(key, buffer) for key, buffer in zip(keys, buffers, strict=True) if (len(buffer) <= _SMALL) == is_small]
            if chosen:
                self._put(chosen, config)

    def _put(self, values: Sequence[tuple[str, memoryview]], config: object) -> None:
        memory = [address_of(buffer) for _, buffer in values]
        done = self._store.batch_upsert_from([key for key, _ in values], memory, [len(buffer) for _, buffer in values], config)
        for code in done:
            if code in _NO_SPACE:
                raise NoRoom("Mooncake has no room: give it more memory (global_segment_size of its clients)")
            if code:
                raise OSError(f"Mooncake did not take a value (code {code})")

    def remove(self, keys: Sequence[str]) -> None:
        for code in self._store.batch_remove(list(keys), True):
            if code not in (0, _NO_SUCH_OBJECT):
                raise OSError(f"Mooncake did not remove a value (code {code})")

    def _size(self, key: str) -> int:
        size = int(self._store.get_size(key))
        return size if size >= 0 else ABSENT

    def _length(self, key: str, buffer: memoryview, read: int) -> int:
        if read >= 0:
            return read
        size = ABSENT if read == _NO_SUCH_OBJECT else self._size(key)
        if size > len(buffer) or size == ABSENT:
            return size
        raise OSError(f"Mooncake did not deliver a value (code {read})")

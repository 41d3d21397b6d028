"""Files by NIXL, whose back ends move bytes between memory and storage: `plugin://nixl?path=/mnt/kv&bytes=1TiB`.

    path, bytes   as those of `fs`, whose files these are: both can be used on one folder
    backend       of NIXL: POSIX (by default), or another one that reads and writes files, such as GDS_MT or HF3FS

It needs the package nixl, and numpy.
"""

import os
from collections.abc import Sequence
from typing import Any

from . import address_of, fs


class Store(fs.Store):
    version = ""

    def __init__(self, path: str = "", bytes: str = "1TiB", backend: str = "POSIX") -> None:
        super().__init__(path, bytes)
        from nixl._api import nixl_agent, nixl_agent_config  # type: ignore[import-not-found]

        self._agent: Any = nixl_agent("terrace", nixl_agent_config(enable_prog_thread=False, backends=[]))
        known = self._agent.get_plugin_list()
        if backend not in known:
            raise ValueError(f"backend {backend}: NIXL has {', '.join(known)} here")
        self._agent.create_backend(backend)
        self._backend = backend
        self._begin = 0

    def attach(self, buffer: memoryview) -> None:
        """Values are moved between files and this memory."""
        self._begin = address_of(buffer)
        self._agent.register_memory([(self._begin, len(buffer), 0, "")], "DRAM", backends=[self._backend])

    def _move(self, writes: bool, pieces: Sequence[tuple[int, memoryview]]) -> None:
        pieces = [one for one in pieces if len(one[1])]
        if not pieces:
            return
        files = [(0, len(memory), descriptor, "") for descriptor, memory in pieces]
        registered = self._agent.register_memory(files, "FILE", backends=[self._backend])
        try:
            ours = self._agent.get_xfer_descs([(address_of(memory), len(memory), 0) for _, memory in pieces], "DRAM")
            theirs = self._agent.get_xfer_descs([(0, len(memory), descriptor) for descriptor, memory in pieces], "FILE")
            transfer = self._agent.initialize_xfer("WRITE" if writes else "READ", ours, theirs, "terrace", backends=[self._backend])
            try:
                state = self._agent.transfer(transfer)
                while state == "PROC":
                    os.sched_yield()  # NIXL tells of the end only when it is asked
                    state = self._agent.check_xfer_state(transfer)
            finally:
                self._agent.release_xfer_handle(transfer)
        finally:
            self._agent.deregister_memory(registered, backends=[self._backend])
        if state != "DONE":
            raise OSError(f"NIXL could not {'write' if writes else 'read'} values: {state}")

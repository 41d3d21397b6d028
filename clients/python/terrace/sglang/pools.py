"""Moves the pages of an SGLang host pool to and from the daemon: in place if they lie in shared memory, otherwise
through staging memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch  # type: ignore[import-not-found]

from .._libterrace import Memory, address_of
from ..errors import BadRequest
from ..link import HostPool
from ..pages import Pages, Runs
from ..shared import memory_of
from ..spaces import SpaceSpec

STAGING_BYTES = 16 << 20


class Door:
    """Accesses the pages of one space through one connection."""

    def __init__(self, pages: Pages, spec: SpaceSpec) -> None:
        self._pages, self._spec = pages, spec

    @property
    def connected(self) -> bool:
        return self._pages.connected

    def found(self, digests: Sequence[bytes]) -> int:
        return self._pages.found(self._spec, digests)

    def present(self, digests: Sequence[bytes]) -> list[bool]:
        return self._pages.present(self._spec, digests)

    def load(self, digests: Sequence[bytes], runs: Runs, runs_per_object: Sequence[int]) -> int:
        return self._pages.load(self._spec, digests, runs, runs_per_object)

    def store(self, digests: Sequence[bytes], runs: Runs, runs_per_object: Sequence[int], parent: bytes) -> bool:
        return self._pages.store(self._spec, digests, runs, runs_per_object, parent)

    def clear(self) -> None:
        self._pages.clear(self._spec)

    def close(self) -> None:
        self._pages.close()


OpenDoor = Callable[[HostPool, str], Door]  #: with the name of what it is for


class PagePool(Protocol):
    """The pages of one SGLang pool in the daemon. `found` and `present`, `load`, and `store` are called by one thread each."""

    def found(self, digests: Sequence[bytes]) -> int: ...
    def present(self, digests: Sequence[bytes]) -> list[bool]: ...
    def load(self, digests: Sequence[bytes], indices: Any) -> int: ...
    def store(self, digests: Sequence[bytes], indices: Any, parent: bytes = b"") -> bool: ...
    def clear(self) -> None: ...
    def close(self) -> None: ...


class _Doors:
    """Three connections, so that a lookup does not wait for a load, nor a load for a store."""

    def __init__(self, open_door: Callable[[str], Door]) -> None:
        self.questions, self.loads, self.stores = open_door("lookups"), open_door("loads"), open_door("stores")

    @property
    def connected(self) -> bool:
        return all(door.connected for door in (self.questions, self.loads, self.stores))

    def found(self, digests: Sequence[bytes]) -> int:
        return self.questions.found(digests)

    def present(self, digests: Sequence[bytes]) -> list[bool]:
        return self.questions.present(digests)

    def clear(self) -> None:
        self.questions.clear()

    def close(self) -> None:
        for door in (self.questions, self.loads, self.stores):
            door.close()


class SharedPool(_Doors):
    """A pool whose pages the daemon reads and writes in place."""

    def __init__(self, host_pool: Any, open_door: OpenDoor) -> None:
        """Raises BadRequest if the pages do not lie in one piece of shared memory."""
        self._pool = host_pool
        with memory_of(host_pool.kv_buffer.view(torch.uint8).numpy()) as place:
            self._base = place.base
            nbytes, descriptor = place.nbytes, place.descriptor
            super().__init__(lambda role: open_door(HostPool(os.dup(descriptor), nbytes), role))

    @staticmethod
    def page_runs(host_pool: Any) -> list[int]:
        """Returns the sizes of a page's runs. Raises BadRequest if they are not in shared memory."""
        buffer = getattr(host_pool, "kv_buffer", None)
        if not isinstance(buffer, torch.Tensor):
            raise BadRequest("expected a host pool of one tensor")
        with memory_of(buffer.view(torch.uint8).numpy()) as place:
            addresses, sizes = host_pool.get_page_buffer_meta(torch.arange(host_pool.page_size))
            if not all(place.base <= address and address + size <= place.base + place.nbytes
                       for address, size in zip(addresses, sizes, strict=True)):
                raise BadRequest("expected pages inside of the host pool's tensor")
            return list(sizes)

    def load(self, digests: Sequence[bytes], indices: Any) -> int:
        return self.loads.load(digests, *self._runs(digests, indices))

    def store(self, digests: Sequence[bytes], indices: Any, parent: bytes = b"") -> bool:
        return self.stores.store(digests, *self._runs(digests, indices), parent)

    def _runs(self, digests: Sequence[bytes], indices: Any) -> tuple[list[tuple[int, int]], list[int]]:
        addresses, sizes = self._pool.get_page_buffer_meta(indices)
        runs = [(address - self._base, size) for address, size in zip(addresses, sizes, strict=True)]
        return runs, [len(runs) // max(1, len(digests))] * len(digests)


class StagedPool(_Doors):
    """A pool whose pages are copied to staging memory that the daemon reads and writes: for memory of this process
    alone, and for states that lie in several buffers."""

    def __init__(self, page_bytes: int, open_door: OpenDoor, staging_bytes: int = STAGING_BYTES) -> None:
        self._page_bytes = page_bytes
        self._rows = max(1, staging_bytes // page_bytes)
        self._loading, self._storing = (_Staging(page_bytes, self._rows) for _ in range(2))
        super().__init__(lambda role: open_door((self._storing if role == "stores" else self._loading).shared(), role))

    def load_pages(self, digests: Sequence[bytes], write: Callable[[int, Any], None]) -> int:
        """Loads pages and calls `write` with the number and the bytes of each page that arrived. The bytes are valid
        during the call."""
        arrived = 0
        while arrived < len(digests):
            part = digests[arrived:arrived + self._rows]
            came = self.loads.load(part, *self._runs(len(part)))
            for row in range(came):
                write(arrived + row, self._loading.row(row))
            arrived += came
            if came < len(part):
                break
        return arrived

    def store_pages(self, digests: Sequence[bytes], pages: Sequence[Any], parent: bytes = b"") -> bool:
        """Stores pages; `pages` has a tensor for each."""
        for begin in range(0, len(digests), self._rows):
            part = digests[begin:begin + self._rows]
            for row, page in enumerate(pages[begin:begin + len(part)]):
                self._storing.row(row).copy_(as_bytes(page))
            if not self.stores.store(part, *self._runs(len(part)), parent):
                return False
            parent = part[-1] if parent else b""
        return True

    def _runs(self, pages: int) -> tuple[list[tuple[int, int]], list[int]]:
        return [(row * self._page_bytes, self._page_bytes) for row in range(pages)], [1] * pages


class CopiedPool(StagedPool):
    """The pages of a host pool, copied through staging memory."""

    def __init__(self, host_pool: Any, open_door: OpenDoor) -> None:
        self._pool = host_pool
        self._page_size = getattr(host_pool, "page_size", 1) or 1
        super().__init__(page_bytes_of(host_pool), open_door)

    def load(self, digests: Sequence[bytes], indices: Any) -> int:
        def write(number: int, data: Any) -> None:
            page = self._pool.get_dummy_flat_data_page()
            as_bytes(page).copy_(data)
            self._pool.set_from_flat_data_page(int(indices[number * self._page_size]), page)

        return self.load_pages(digests, write)

    def store(self, digests: Sequence[bytes], indices: Any, parent: bytes = b"") -> bool:
        pages = [
            self._pool.get_data_page(int(indices[i * self._page_size]), flat=True) for i in range(len(digests))
        ]
        return self.store_pages(digests, pages, parent)


class _Staging:
    def __init__(self, page_bytes: int, rows: int) -> None:
        self._memory = Memory(page_bytes * rows, name="terrace-sglang")
        self._bytes = torch.frombuffer(memoryview(self._memory), dtype=torch.uint8).view(rows, page_bytes)

    def row(self, number: int) -> Any:
        return self._bytes[number]

    def shared(self) -> HostPool:
        return HostPool(os.dup(self._memory.fileno()), self._memory.nbytes)


def as_bytes(page: Any) -> Any:
    """Returns the page's bytes, without a copy if it is contiguous."""
    return page.contiguous().view(-1).view(torch.uint8)


def page_bytes_of(host_pool: Any) -> int:
    page = host_pool.get_dummy_flat_data_page()
    return int(page.numel() * page.element_size())

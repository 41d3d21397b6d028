"""The blocking form of the client."""

from __future__ import annotations

import os
from collections.abc import Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from . import _libterrace
from ._libterrace import Memory, Prefix, Region, Space
from .devices import span_of
from .errors import BadRequest
from .shared import memory_of
from .spaces import SpaceSpec
from .status import Cleared, DaemonInfo, DaemonStatus, Moved, PoliciesStatus

if TYPE_CHECKING:
    from ._libterrace import Tokens  # declared in _libterrace.pyi alone


def default_socket() -> str:
    """Returns the daemon's socket by default, unless TERRACE_SOCKET names another. The command `terrace` finds it in
    the same way."""
    if named := os.environ.get("TERRACE_SOCKET"):
        return named
    system = "/run/terrace/terrace.sock"
    if os.getuid() == 0:
        return system
    candidates = [f"/tmp/terrace-{os.getuid()}/terrace.sock", system]
    if runtime := os.environ.get("XDG_RUNTIME_DIR"):
        candidates.insert(0, f"{runtime}/terrace.sock")
    return next((path for path in candidates if os.path.exists(path)), candidates[0])


class Connection(_libterrace.Connection):
    """A connection to a daemon. Closes at the end of a `with` block, or with `close`.

    Threads take turns on it: open one connection per thread if they should not wait for each other. Every wait
    releases the GIL. A call with a `timeout` (seconds) returns by then; one without returns when its answer comes,
    or when the daemon is gone. A child made by fork cannot use its parent's connection, and takes nothing from it.

    When the daemon is lost, every call raises `Gone` at once until `reconnect` succeeds: treat it as a miss and
    continue.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        name: str = "python",
        timeout: float | None = None,
        observes: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(os.fspath(path or default_socket()), name=name, timeout=timeout, observes=observes, **options)

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def daemon(self) -> DaemonInfo:
        return DaemonInfo(**self._daemon())

    def open_space(self, spec: SpaceSpec, *, timeout: float | None = None) -> Space:
        return self._open_space(spec, timeout)

    def register_region(self, memory: Any, nbytes: int | None = None, *, timeout: float | None = None) -> Region:
        """Lets the daemon read and write shared memory. `memory`: a `Memory`, or any object whose bytes lie in shared
        memory (terrace.shared), or a descriptor with its size in `nbytes`. The registration survives a reconnect."""
        if isinstance(memory, Memory):
            base = _libterrace.address_of(memory)[0]
            return self._register(memory.fileno(), memory.nbytes, base, memory, timeout)
        with memory_of(memory) as place:
            keeps = None if isinstance(memory, int) else memory
            return self._register(place.descriptor, nbytes or place.nbytes, place.base, keeps, timeout)

    def register_device_region(
        self, memory: Any, nbytes: int | None = None, *, device: str = "", timeout: float | None = None
    ) -> Region:
        """Lets the daemon copy from and to memory of a GPU. `memory`: a contiguous CUDA tensor, its storage, any
        object with `__cuda_array_interface__`, or an address with its size in `nbytes`. It must come from
        cudaMalloc, as PyTorch's does by default; `Unsupported` for expandable segments and cudaMallocAsync. The
        region keeps the object. Runs count from its first byte. With `device="host"`: a `Memory`, which the daemon
        treats as that of a device, for machines without a GPU.

        Requests fail with `Gone` when the daemon's process of that GPU has ended: unregister the region then, and
        register it again. Unregister it before the memory is freed or the connection closed: a region whose last
        reference goes keeps its memory until then."""
        if device == "host":
            with memory_of(memory) as place:
                keeps = None if isinstance(memory, int) else memory
                return self._register_host_device(place.descriptor, nbytes or place.nbytes, place.base, keeps, timeout)
        if device:
            raise BadRequest(f'expected "host", or no device for memory of a GPU, which tells its own, got {device!r}')
        address, whole = span_of(memory, nbytes)
        return self._register_device(address, whole, None if isinstance(memory, int) else memory, timeout)

    def move(self, space: Space, what: Prefix | Tokens, to: int, *, timeout: float | None = None) -> Moved:
        """Moves a prompt's chunks to a `Tier`; into a GPU's tier they are copied. Allowed for the daemon's own user."""
        return Moved(*self._move(space, what, to, timeout))

    def evict(
        self, space: Space, what: Prefix | Tokens, tiers: Iterable[int] = (), *, timeout: float | None = None
    ) -> Cleared:
        """Removes a prompt's chunks from these `Tier`s, or from all. Allowed for the daemon's own user."""
        return Cleared(*self._evict(space, what, tiers, timeout))

    def clear(self, space: Space | None = None, *, timeout: float | None = None) -> Cleared:
        """Forgets all objects of the space, or of the whole trust group; no restart brings them back."""
        return Cleared(*self._clear(space, timeout))

    def status(self, *, timeout: float | None = None) -> DaemonStatus:
        return DaemonStatus.of(self._status(timeout))

    def policies(self, *, timeout: float | None = None) -> PoliciesStatus:
        return PoliciesStatus.of(self._policies(timeout))


def connect(
    path: str | os.PathLike[str] | None = None,
    *,
    name: str = "python",
    timeout: float | None = None,
    observes: bool = False,
) -> Connection:
    """Connects to the daemon at `path` (default: `default_socket()`); `terrace status` shows `name`. `observes`: only
    `status` and `policies` will be called; this connects even if the daemon has as many clients as it may (else
    `Busy`)."""
    return Connection(path, name=name, timeout=timeout, observes=observes)

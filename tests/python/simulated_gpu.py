"""Memory of the simulated driver's GPUs (docs/gpu.md), as a framework in this process would have it."""

from __future__ import annotations

import ctypes
import mmap
import os
from pathlib import Path
from typing import Any

# It has the driver's file name, so that a search for libcuda.so.1 in this process finds it.
DRIVER = Path(os.environ.get("TERRACE_SIMULATED_DRIVER", "libcuda.so.1"))
#: For a daemon whose GPU processes find it as well. The existing search path is kept.
ENVIRONMENT = {
    "LD_LIBRARY_PATH": ":".join(filter(None, [str(DRIVER.parent), os.environ.get("LD_LIBRARY_PATH")])),
}

_PAGE = 2 << 20  # page of virtual memory


class _Location(ctypes.Structure):
    _fields_ = [("type", ctypes.c_uint), ("id", ctypes.c_int)]


class _Properties(ctypes.Structure):
    _fields_ = [("type", ctypes.c_uint), ("handles", ctypes.c_uint), ("location", _Location), ("win32", ctypes.c_void_p),
                ("flags", ctypes.c_ubyte * 8)]


class Gpu:
    """The first GPU; its context is current on the thread that made this object."""

    def __init__(self) -> None:
        self._driver = ctypes.CDLL(str(DRIVER))
        self.call("cuInit", 0)
        context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self.call("cuCtxPushCurrent_v2", context)
        self._stream = ctypes.c_void_p()
        self.call("cuStreamCreateWithPriority", ctypes.byref(self._stream), 1, 0)

    def call(self, name: str, *arguments: Any) -> None:
        words = [ctypes.c_uint64(one) if isinstance(one, int) and one > 0x7FFFFFFF else one for one in arguments]
        if code := getattr(self._driver, name)(*words):
            raise RuntimeError(f"{name}: error {code}")

    def ready(self, name: str, *arguments: Any) -> bool:
        """Returns the result of a call that asks. Code 600 means: not yet."""
        code = getattr(self._driver, name)(*arguments)
        if code not in (0, 600):
            raise RuntimeError(f"{name}: error {code}")
        return code == 0

    def fail(self, name: str, code: int = 2) -> None:
        """Makes the next call of this function in this process fail without an effect. The name has no version."""
        self._driver.sim_fail(name.encode(), code, 0, 1)

    def calls(self, name: str) -> int:
        self._driver.sim_calls.restype = ctypes.c_uint64
        return int(self._driver.sim_calls(name.encode()))

    def violations(self) -> list[str]:
        """Returns the rules of the driver that this process has broken."""
        text = self._driver.sim_violation
        text.argtypes, text.restype = [ctypes.c_size_t], ctypes.c_char_p
        return [text(i).decode() for i in range(self._driver.sim_violations())]

    @property
    def uuid(self) -> str:
        raw = (ctypes.c_ubyte * 16)()
        self.call("cuDeviceGetUuid_v2", raw, 0)
        text = bytes(raw).hex()
        return f"GPU-{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

    def close(self) -> None:
        self.call("cuStreamDestroy_v2", self._stream)
        self.call("cuCtxPopCurrent_v2", None)
        self.call("cuDevicePrimaryCtxRelease_v2", 0)

    @property
    def stream(self) -> int:
        """Returns a stream as PyTorch's `cuda_stream`."""
        assert self._stream.value is not None
        return self._stream.value

    def queue_copy(self, to: int, source: int, nbytes: int) -> None:
        self.call("cuMemcpyAsync", ctypes.c_uint64(to), ctypes.c_uint64(source), ctypes.c_size_t(nbytes), self._stream)

    def finish(self) -> None:
        self.call("cuStreamSynchronize", self._stream)

    def copy(self, to: int, source: int, nbytes: int) -> None:
        self.queue_copy(to, source, nbytes)
        self.finish()


class DeviceArray:
    """An allocation, with the interface that arrays of GPUs have. Call `free` after all its regions have ended."""

    def __init__(self, gpu: Gpu, nbytes: int) -> None:
        self.gpu = gpu
        self.nbytes = nbytes
        address = ctypes.c_uint64()
        gpu.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(nbytes))
        self.address = address.value

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"shape": (self.nbytes,), "typestr": "|u1", "data": (self.address, False), "version": 3}

    def free(self) -> None:
        self.gpu.call("cuMemFree_v2", ctypes.c_uint64(self.address))

    def write(self, data: bytes, offset: int = 0) -> None:
        self._through(data, len(data), lambda host: self.gpu.copy(self.address + offset, host, len(data)))

    def read(self, offset: int = 0, nbytes: int | None = None) -> bytes:
        count = self.nbytes - offset if nbytes is None else nbytes
        return self._through(b"", count, lambda host: self.gpu.copy(host, self.address + offset, count))

    def _through(self, data: bytes, count: int, copy: Any) -> bytes:
        pages = mmap.mmap(-1, count)
        pages[: len(data)] = data
        inner = ctypes.c_char.from_buffer(pages)
        host = ctypes.addressof(inner)
        self.gpu.call("cuMemHostRegister_v2", ctypes.c_uint64(host), ctypes.c_size_t(count), 3)
        try:
            copy(host)
            return pages[:]
        finally:
            self.gpu.call("cuMemHostUnregister", ctypes.c_uint64(host))
            del inner
            pages.close()


class VirtualArray:
    """Virtual memory, like that of expandable segments: no handle can share it."""

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu
        properties = _Properties(type=1, location=_Location(1, 0))
        self._physical, address = ctypes.c_uint64(), ctypes.c_uint64()
        size = ctypes.c_size_t(_PAGE)
        gpu.call("cuMemCreate", ctypes.byref(self._physical), size, ctypes.byref(properties), ctypes.c_uint64(0))
        gpu.call("cuMemAddressReserve", ctypes.byref(address), size, ctypes.c_size_t(0), ctypes.c_uint64(0), ctypes.c_uint64(0))
        self.address = address.value
        gpu.call("cuMemMap", address, size, ctypes.c_size_t(0), self._physical, ctypes.c_uint64(0))

    def free(self) -> None:
        self.gpu.call("cuMemUnmap", ctypes.c_uint64(self.address), ctypes.c_size_t(_PAGE))
        self.gpu.call("cuMemRelease", self._physical)
        self.gpu.call("cuMemAddressFree", ctypes.c_uint64(self.address), ctypes.c_size_t(_PAGE))

// Memory that Python reads or writes in place, by the buffer protocol and by DLPack.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <span>

namespace terrace::python {

namespace nb = nanobind;

/// Python's terrace.Buffer. Every view that Python makes of it keeps it, and so its owner, alive.
struct exported_bytes {
  std::span<uint8_t> bytes;
  bool writable = false;
  std::shared_ptr<const void> owner; ///< keeps the bytes where they are
  int exports = 0;                   ///< number of existing views; counted with the GIL held
};

void bind_exported_bytes(nb::module_& in);

} // namespace terrace::python

// Python's terrace.DeviceMemory and terrace.StoreCounter, which an engine's own streams use besides its KV.
#pragma once

#include <nanobind/nanobind.h>

namespace terrace::python {

void bind_stream_memory(nanobind::module_& in);

} // namespace terrace::python

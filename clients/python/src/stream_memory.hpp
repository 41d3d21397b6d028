// Python's terrace.DeviceMemory and terrace.StoreCounter: what an engine's own streams work with beside its KV.
#pragma once

#include <nanobind/nanobind.h>

namespace terrace::python {

void bind_stream_memory(nanobind::module_& in);

} // namespace terrace::python

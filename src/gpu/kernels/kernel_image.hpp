// The kernels in the form that the driver loads.
#pragma once

#include <cstddef>
#include <span>

namespace terrace::gpu {

/// Code for all known devices, and code that the driver compiles for newer ones. Empty if built without
/// NVIDIA's toolkit: then only the copy engines are used.
std::span<const std::byte> kernel_image();

/// The kernel of copy_runs.cu, which takes a `copy_batch`.
constexpr const char* copy_kernel_name = "terrace_copy_runs";

} // namespace terrace::gpu

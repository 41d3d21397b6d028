// Our kernels as the driver loads them.
#pragma once

#include <cstddef>
#include <span>

namespace terrace::gpu {

/// Code for all devices that we know, with code to be compiled by the driver for newer ones. Empty when this was built without
/// NVIDIA's toolkit: then copies are left to the copy engines.
std::span<const std::byte> kernel_image();

/// The kernel of copy_runs.cu, which takes a `copy_batch`.
constexpr const char* copy_kernel_name = "terrace_copy_runs";

} // namespace terrace::gpu

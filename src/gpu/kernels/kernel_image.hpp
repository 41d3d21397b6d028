// The kernels in the form that the driver loads. Those of checksums have a library of their own, because engines do not need them.
#pragma once

#include <cstddef>
#include <span>

namespace terrace::gpu {

/// Code for all known devices, and code that the driver compiles for newer ones. Empty if built without
/// NVIDIA's toolkit: then only the copy engines are used.
std::span<const std::byte> kernel_image();

/// The kernel of copy_runs.cu, which takes a `copy_batch`.
constexpr const char* copy_kernel_name = "terrace_copy_runs";

/// The checksum kernel. Empty if built without NVIDIA's toolkit.
std::span<const std::byte> sums_image();

/// The kernel of payload_sums.cu, which takes a `sum_batch`.
constexpr const char* sums_kernel_name = "terrace_payload_sums";

} // namespace terrace::gpu

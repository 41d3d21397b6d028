// The checksum kernel in the form that the driver loads. It is separate from the copy kernel, because engines
// do not need it.
#pragma once

#include <cstddef>
#include <span>

namespace terrace::gpu {

/// Empty if built without NVIDIA's toolkit.
std::span<const std::byte> sums_image();

/// The kernel of payload_sums.cu, which takes a `sum_batch`.
constexpr const char* sums_kernel_name = "terrace_payload_sums";

} // namespace terrace::gpu

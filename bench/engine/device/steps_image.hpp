// The kernels of the reference engine in the form that the driver loads.
#pragma once

#include <cstddef>
#include <span>

namespace terrace::bench {

/// Empty if it was built without NVIDIA's toolkit.
std::span<const std::byte> steps_image();

} // namespace terrace::bench

// A disk reader of a GPU, by cuFile.
#pragma once

#include "gpu/cuda/context.hpp"
#include "gpu/device.hpp"

namespace terrace::gpu {

/// Opens cuFile and takes `bytes` of device memory, a multiple of 4 KiB for each slot. Blocks, perhaps for a
/// second. Errors: `unsupported` if the library is missing or reads nothing directly here, or if this program
/// was built without the kernel that verifies; `no_space`; the driver's.
result<std::shared_ptr<disk_reader>> make_cuda_disk_reader(std::shared_ptr<const cuda::context> context,
                                                           uint64_t bytes);

} // namespace terrace::gpu

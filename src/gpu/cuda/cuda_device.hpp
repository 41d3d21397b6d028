// A GPU behind the device interface.
#pragma once

#include "gpu/cuda/context.hpp"
#include "gpu/device.hpp"

namespace terrace::gpu {

/// Says how the pieces of a part are copied.
enum class copy_method : uint8_t {
  /// The kernel copies small pieces, if enabled, and pieces from one place on the device to another, if it
  /// can be loaded. Otherwise strided copies of several pieces are copied as planes, and the rest as batches
  /// if the driver has them, else one by one.
  automatic,
  batch,  ///< one call, with each piece as a member
  planes, ///< each strided copy of several pieces as one 2D copy, the rest one by one
  single, ///< one call per piece
  kernel, ///< the copy kernel
};

struct cuda_device_options {
  copy_method method = copy_method::automatic;
  /// With `automatic`, copies with smaller pieces use the kernel; 0: none. The best value must be measured on
  /// the machine.
  uint64_t kernel_below_bytes = 0;
  /// Allocates device memory that is shared by descriptors instead of handles.
  bool virtual_memory = false;
};

/// The first call in a process creates the device's context. Errors: the driver's; `unsupported` if it lacks
/// anything that `options` require.
result<std::shared_ptr<device>> make_cuda_device(std::shared_ptr<const cuda::driver> driver,
                                                 const cuda::device_uuid& uuid,
                                                 cuda_device_options options = {});

} // namespace terrace::gpu

// A GPU behind the device interface.
#pragma once

#include "gpu/cuda/context.hpp"
#include "gpu/device.hpp"

namespace terrace::gpu {

/// How the pieces of a part are given to the driver.
enum class copy_method : uint8_t {
  automatic, ///< small pieces to the kernel if that is enabled, else a batch if the driver has batches, else planes
  batch,  ///< one call, each piece a member
  planes, ///< each strided copy a plane of rows
  single, ///< a call for each piece
  kernel, ///< our kernel
};

struct cuda_device_options {
  copy_method method = copy_method::automatic;
  /// Under `automatic`, copies whose pieces are smaller go to the kernel; 0: none. Where it pays must be measured on the machine.
  uint64_t kernel_below_bytes = 0;
  /// Memory of the device is made so that it is shared by descriptors instead of handles.
  bool virtual_memory = false;
};

/// The first one in a process creates the device's context. Errors: as the driver's; `unsupported` when it lacks what `options` ask for,
/// or stream memory operations.
result<std::shared_ptr<device>> make_cuda_device(std::shared_ptr<const cuda::driver> driver,
                                                 const cuda::device_uuid& uuid,
                                                 cuda_device_options options = {});

} // namespace terrace::gpu

// The devices that the conformance suite runs over, with the faults that a test causes in them.
#pragma once

#include "driver_fixture.hpp"
#include "gpu/copy_stream.hpp"
#include "gpu/cuda/cuda_device.hpp"
#include "gpu/host/host_engine.hpp"
#include "gpu/kernels/kernel_image.hpp"

#include <condition_variable>
#include <mutex>

namespace terrace::gpu {

/// One device, and its faults.
class device_under_test {
 public:
  virtual ~device_under_test() = default;
  virtual result<std::shared_ptr<device>> open() = 0;
  /// Says why the device cannot be tested here; empty if it can.
  virtual std::string absent() { return ""; }
  /// True if the calls below work.
  virtual bool has_controls() { return true; }
  /// Nothing is executed until `release`.
  virtual void hold() = 0;
  virtual void release() = 0;
  /// A part fails: the next one, or the one after the next `skip`.
  virtual void fail_part(unsigned skip) = 0;
  /// The device is lost with the next part that it executes.
  virtual void lose() = 0;
  /// Returns the rules that our use of the device broke.
  virtual std::vector<std::string> broken_rules() { return {}; }
  /// Returns the number of objects that were not given back.
  virtual size_t live() { return 0; }
};

/// Returns "host", "cuda_batch", "cuda_planes", "cuda_single", "cuda_kernel", "cuda_virtual_memory".
std::vector<std::string> device_names();
std::unique_ptr<device_under_test> make_device_under_test(const std::string& name, uint64_t seed);

} // namespace terrace::gpu

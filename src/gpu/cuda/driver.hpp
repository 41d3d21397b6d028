// The CUDA driver, found at run time: one binary runs on machines with a GPU and without.
#pragma once

#include "base/error.hpp"
#include "gpu/cuda/driver_functions.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace terrace::cuda {

/// What a device can do.
struct device_properties {
  device_ordinal ordinal = 0;
  device_uuid uuid;
  std::string name;
  uint64_t memory_bytes = 0;
  int compute_major = 0;
  int compute_minor = 0;
  int copy_engines = 0;
  bool ipc = false;               ///< memory and events can be shared by handles
  bool virtual_memory = false;    ///< memory can be shared by POSIX descriptors
  bool stream_memory_ops = false; ///< streams can write and await 32-bit values
  bool gpu_direct_rdma = false;
  bool dma_buf = false;
};

/// A loaded and initialised driver. Immutable, safe from all threads. It is never unloaded: the real one keeps threads.
class driver {
 public:
  /// Loads `library` and finds all functions. Errors: `unsupported` when there is no such library, it lacks a required function, or
  /// it finds no device; the text says which.
  static result<std::shared_ptr<const driver>> open(const std::string& library = "libcuda.so.1");

  const functions& api() const { return api_; }
  /// 1000 * major + 10 * minor of the newest CUDA that the driver knows.
  int version() const { return version_; }
  /// The optional functions that were not found, with their `cu`.
  const std::vector<std::string>& missing() const { return missing_; }

  /// All devices that the process may see, by ordinal.
  result<std::vector<device_properties>> devices() const;
  /// Errors: `not_found`.
  result<device_properties> find_device(const device_uuid& uuid) const;

  /// Nothing, or `code` as an error: `no_space`, `unsupported`, `gone` (the context is lost, see `is_sticky`), else `internal`. The
  /// text has `what` was called and the driver's own name for the code.
  result<void> check(status code, std::string_view what) const;
  std::string name_of(status code) const;

 private:
  driver() = default;

  functions api_;
  int version_ = 0;
  std::vector<std::string> missing_;
};

/// Whether every later call in the context fails with the same code, and nothing that was started is known to have ended.
bool is_sticky(status code);

/// As nvidia-smi writes it: `GPU-` and 32 hexadecimal digits in five groups.
std::string to_text(const device_uuid& uuid);
/// With or without `GPU-`. Errors: `bad_request`.
result<device_uuid> parse_uuid(std::string_view text);

/// One line for the driver, and one for each device with what it can do. Without a driver: why.
std::string report(const result<std::shared_ptr<const driver>>& found);

} // namespace terrace::cuda

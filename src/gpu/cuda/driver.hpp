// The CUDA driver, loaded at run time: one binary runs with and without a GPU.
#pragma once

#include "base/error.hpp"
#include "gpu/cuda/driver_functions.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace terrace::cuda {

/// The capabilities of a device.
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
  bool stream_memory_ops = false; ///< streams can write 32-bit values and wait for them
  bool read_only_pins = false;    ///< it pins host memory that is mapped for reading
  bool gpu_direct_rdma = false;
  bool dma_buf = false;
};

/// A loaded and initialized driver. Immutable, safe on all threads. Never unloaded, because the real one
/// keeps threads.
class driver {
 public:
  /// Loads `library` and finds all functions. Errors: `unsupported` if there is no such library, a required
  /// function is missing, or there is no device; the text says which.
  static result<std::shared_ptr<const driver>> open(const std::string& library = "libcuda.so.1");

  const functions& api() const { return api_; }
  /// 1000 * major + 10 * minor of the newest CUDA version that the driver supports.
  int version() const { return version_; }
  /// The names of the optional functions that were not found.
  const std::vector<std::string>& missing() const { return missing_; }

  /// All devices visible to the process, by ordinal.
  result<std::vector<device_properties>> devices() const;
  /// Errors: `not_found`.
  result<device_properties> find_device(const device_uuid& uuid) const;

  /// Returns no error, or `code` as an error: `no_space`, `unsupported`, `gone` (the context is lost, see
  /// `is_sticky`), otherwise `internal`. The text contains `what` and the driver's name of the code.
  result<void> check(status code, std::string_view text) const;
  std::string name_of(status code) const;

 private:
  driver() = default;

  functions api_;
  int version_ = 0;
  std::vector<std::string> missing_;
};

/// A device, and the driver that shows it.
struct located_device {
  std::shared_ptr<const driver> by;
  device_properties properties;
};
/// Errors: `bad_request` if `uuid` is not a UUID; those of `driver::open` and `find_device`.
result<located_device> locate(const std::string& uuid, const std::string& library = "libcuda.so.1");

/// True if every later call in the context fails with the same code, and nobody knows whether started work has ended.
bool is_sticky(status code);

/// Writes a UUID in nvidia-smi's format: `GPU-` and 32 hexadecimal digits in five groups.
std::string to_text(const device_uuid& uuid);
/// Reads a UUID with or without `GPU-`. Errors: `bad_request`.
result<device_uuid> parse_uuid(std::string_view text);

/// Returns one line for the driver, and one per device with its capabilities. Without a driver, the reason.
std::string report(const result<std::shared_ptr<const driver>>& found);

} // namespace terrace::cuda

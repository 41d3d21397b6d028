// The process of a GPU, as its parent sees it.
#pragma once

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "gpu/device.hpp"

#include <memory>
#include <string>
#include <sys/types.h>

namespace terrace::gpu {

// Opens a device by the name that clients give.

/// The name of the device in host memory, for machines without a GPU.
constexpr const char* host_device_name = "host";

struct opened_device {
  std::shared_ptr<device> opened;
  std::string description; ///< one line about the driver and what the device can do
};

/// Returns `name` in the form in which devices are compared: "host", or a UUID as nvidia-smi writes it.
/// Errors: `bad_request`.
result<std::string> canonical_device_name(const std::string& name);

/// Loads the driver and makes the device's context. Errors: `bad_request`, `unsupported` without a driver,
/// `not_found` for a device that the driver does not show.
result<opened_device> open_device(const std::string& name);

/// The descriptor of the socket in the process.
constexpr int process_socket = 3;

/// Move-only. Its destructor kills the process; an owner that waits for its end uses the pidfd before.
class device_child {
 public:
  /// Starts this program again with `--gpu DEVICE`. Blocks for about a millisecond. Errors: `no_space`, `internal`.
  static result<device_child> start(const std::string& device);

  device_child() = default;
  device_child(device_child&&) noexcept = default;
  device_child& operator=(device_child&& other) noexcept;
  ~device_child() { kill(); }

  pid_t pid() const { return pid_; }
  int pidfd() const { return pidfd_.get(); } ///< readable once it has ended
  /// The process ends when its socket closes. The ring shares the socket; null before the start.
  const std::shared_ptr<unique_fd>& socket() const { return socket_; }
  void kill();
  /// Call after the pidfd became readable. Returns how the process ended, in words.
  std::string reap();

 private:
  pid_t pid_ = 0;
  unique_fd pidfd_;
  std::shared_ptr<unique_fd> socket_;
};

} // namespace terrace::gpu

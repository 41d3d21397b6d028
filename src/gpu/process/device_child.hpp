// The process of a GPU, as its parent sees it.
#pragma once

#include "base/child_program.hpp"
#include "base/error.hpp"
#include "gpu/device.hpp"

#include <memory>
#include <string>

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

/// The process of a GPU, as its parent sees it: this program, started again. It ends when its socket closes.
using device_child = child_program;
constexpr int process_socket = child_program::socket_number;

/// Starts this program again with `--gpu DEVICE`. Blocks for about a millisecond. Errors: `no_space`, `not_found`.
result<device_child> start_device_child(const std::string& device);

} // namespace terrace::gpu

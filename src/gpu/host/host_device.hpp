// A device for machines without a GPU: threads that copy between mappings, in the same order as a GPU's
// streams.
#pragma once

#include "gpu/device.hpp"

#include <functional>

namespace terrace::gpu {

struct host_device_options {
  /// For tests: called before each part is copied, on the thread of its stream. The error `gone` simulates
  /// the loss of the device.
  std::function<std::optional<error>()> fault;
};

/// Its memory consists of memfds, sealed against shrinking, which other processes map by descriptor.
result<std::shared_ptr<device>> make_host_device(host_device_options options = {});

} // namespace terrace::gpu

// Completions of a device, signalled to the thread that owns the stream through a descriptor for its event
// loop.
#pragma once

#include "base/error.hpp"
#include "base/unique_fd.hpp"

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

namespace terrace::gpu {

/// A part that has ended, with the number under which it was issued.
struct over_part {
  uint64_t ticket = 0;
  std::optional<error> failure;
};

/// Multiple writers, one reader. Writers are threads of the driver or of the host device: `push` locks a
/// mutex for a few instructions and never blocks on I/O.
class completion_queue {
 public:
  /// Errors: `no_space` if the process has no descriptors left.
  static result<std::shared_ptr<completion_queue>> make();

  /// An eventfd that is readable while there are completions.
  int descriptor() const { return descriptor_.get(); }

  void push(over_part part);
  /// Adds parts that ended without failures, in this order.
  void push(std::span<const uint64_t> tickets);
  /// Makes the descriptor readable without a part.
  void signal();
  /// Returns all completions, in order of arrival. Afterwards the descriptor is not readable until there are more.
  std::vector<over_part> take();

 private:
  explicit completion_queue(unique_fd descriptor) : descriptor_(std::move(descriptor)) {}

  unique_fd descriptor_;
  std::mutex mutex_;
  std::vector<over_part> parts_;
};

} // namespace terrace::gpu

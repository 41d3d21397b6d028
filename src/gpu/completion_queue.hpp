// What a device has done, told to the thread that owns a stream by a descriptor that its event loop watches.
#pragma once

#include "base/error.hpp"
#include "base/unique_fd.hpp"

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace terrace::gpu {

/// A part that is over, by the number that it was issued under.
struct over_part {
  uint64_t ticket = 0;
  std::optional<error> failure;
};

/// Many writers, one reader. Writers are threads of the driver or of the host device: `push` takes a mutex for a few
/// instructions and never blocks on I/O.
class completion_queue {
 public:
  /// Errors: `no_space` when the process has no descriptors left.
  static result<std::shared_ptr<completion_queue>> make();

  /// An eventfd that is readable while something waits.
  int descriptor() const { return descriptor_.get(); }

  void push(over_part part);
  /// Makes the descriptor readable without a part.
  void signal();
  /// All that waits, in the order of its coming. The descriptor is not readable afterwards until there is more.
  std::vector<over_part> take();

 private:
  explicit completion_queue(unique_fd descriptor) : descriptor_(std::move(descriptor)) {}

  unique_fd descriptor_;
  std::mutex mutex_;
  std::vector<over_part> parts_;
};

} // namespace terrace::gpu

// An eventfd by which any thread ends a ring's wait. It outlives the ring, because a thread that saw the
// worker asleep may call `signal` a moment after the worker has woken up and left.
#pragma once

#include "base/unique_fd.hpp"

#include <cstdint>

namespace terrace::runtime {

class wake_event {
 public:
  wake_event();

  /// -1 when the process has no descriptors left.
  int fd() const { return fd_.get(); }
  void signal() noexcept;

  /// Where the ring's armed read puts the count.
  uint64_t* value() { return &value_; }

 private:
  unique_fd fd_;
  uint64_t value_ = 0;
};

} // namespace terrace::runtime

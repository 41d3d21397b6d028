// An eventfd through which any thread ends a ring's wait. It outlives the ring, because a thread that saw the
// worker asleep may call `signal` after the worker has woken up and ended.
#pragma once

#include "base/unique_fd.hpp"

#include <cstdint>

namespace terrace::runtime {

class wake_event {
 public:
  wake_event();

  /// -1 if the process has no descriptors left.
  int fd() const { return fd_.get(); }
  void signal() noexcept;

  /// The ring's armed read stores the count here.
  uint64_t* value() { return &value_; }

 private:
  unique_fd fd_;
  uint64_t value_ = 0;
};

} // namespace terrace::runtime

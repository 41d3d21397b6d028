// The memory that the requests of all connections of a trust group take together: unfinished frames, requests in
// flight with their objects, and answers that are not read.
#pragma once

#include "base/ids.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>

namespace terrace {

/// Thread-safe. A connection begins a request, or receives the rest of a large frame, while there is room; otherwise it
/// waits in line and is woken when there is room again. What a request is made into is counted once it has begun, and a
/// connection without requests may begin a small one: so each connection may exceed the bound by one request.
class request_memory {
 public:
  explicit request_memory(uint64_t bytes_max) : bytes_max_(bytes_max) {}

  /// True if there is room. Otherwise `wake` is called once, on any thread, unless the connection is already in line.
  bool has_room(connection_id who, const std::function<void()>& wake);

  /// The connection takes so much more or less than before; wakes the first in line if there is room. True: a flood is
  /// over, and freed memory should go back to the kernel.
  bool change(uint64_t before, uint64_t now);
  static constexpr uint64_t flood_bytes = 64ULL << 20;

  /// The connection was woken and needs no more room now, or has ended: the next in line is woken.
  void pass_on(connection_id who);

  bool full() const;
  uint64_t bytes() const;
  size_t waiting() const;

 private:
  struct waiter {
    connection_id who{};
    std::function<void()> wake;
  };
  std::function<void()> next();

  const uint64_t bytes_max_;
  mutable std::mutex mutex_;
  uint64_t bytes_ = 0;
  bool flooded_ = false; ///< there were `flood_bytes` or more, and are still more than a sixteenth of it
  std::deque<waiter> line_;
};

} // namespace terrace

// The bell of a connection tells its daemon to look at the counters that stores wait for.
//
//   bell rings = *daemon->bell();
//   ...                                              // a store with `after` a counter is in flight
//   std::atomic_ref(counter).store(7, std::memory_order_release);
//   rings.ring();
//
// On a stream of a GPU: `engine_device::write` of the counter, then `engine_device::ring`.
#pragma once

#include "base/unique_fd.hpp"

#include <cerrno>
#include <cstdint>
#include <memory>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace terrace::client {

/// A handle. Copies are the same bell, whose descriptor is closed with the last of them. It rings for the
/// connection, also after that has reconnected. Safe on all threads, in signal handlers, and in host
/// functions of a stream.
class bell {
 public:
  /// `event` is an eventfd. `connection::bell` makes the ones that a daemon hears.
  explicit bell(unique_fd event) : event_(std::make_shared<const unique_fd>(std::move(event))) {}

  /// Call it once a counter has been written. Never blocks: rings add up until the daemon has heard them.
  void ring() const noexcept {
    const uint64_t one = 1;
    int before = errno;
    while (::write(event_->get(), &one, sizeof one) < 0 && errno == EINTR) {
    }
    errno = before;
  }

  int descriptor() const { return event_->get(); }

  /// Makes this bell and all its copies ring `other` from now on, even while one of them rings. Returns false
  /// if the system refused.
  bool becomes(const unique_fd& other) const { return ::dup3(other.get(), event_->get(), O_CLOEXEC) >= 0; }

 private:
  std::shared_ptr<const unique_fd> event_;
};

} // namespace terrace::client

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
#include "client/types.hpp"

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <fcntl.h>
#include <linux/futex.h>
#include <memory>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

namespace terrace::client {

// Waits for a word that another process writes.

/// Sleeps while the word is `seen`, until somebody wakes it. May return early; the caller looks at the word again. False:
/// `until` has passed.
inline bool futex_wait(uint32_t& word, uint32_t seen, deadline until) {
  timespec left{};
  if (until) {
    auto time = *until - std::chrono::steady_clock::now();
    if (time <= time.zero())
      return false;
    auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
    left = {seconds.count(), std::chrono::nanoseconds(time - seconds).count()};
  }
  ::syscall(SYS_futex, &word, FUTEX_WAIT, seen, until ? &left : nullptr, nullptr, 0);
  return true;
}

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

// Waits for a word that another process writes.
#pragma once

#include "client/types.hpp"

#include <chrono>
#include <cstdint>
#include <ctime>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace terrace::client {

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

} // namespace terrace::client

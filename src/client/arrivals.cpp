#include "client/arrivals.hpp"

#include "client/bell.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cassert>
#include <climits>

namespace terrace::client {

namespace {

/// Set in a counter when nothing more arrives. The daemon only adds, so it leaves this bit alone.
constexpr uint32_t ended = 1U << 31;

std::atomic_ref<uint32_t> atomic(uint32_t& counter) { return std::atomic_ref<uint32_t>(counter); }

} // namespace

arrivals::arrivals(const region& memory, const registered_region& at, uint64_t offset, uint32_t count)
    : counters_(reinterpret_cast<uint32_t*>(memory.data() + offset)), at_(&at), offset_(offset),
      count_(count) {
  assert(offset % sizeof(uint32_t) == 0 && offset + count * sizeof(uint32_t) <= memory.size());
}

void arrivals::restart() const {
  for (uint32_t i = 0; i < count_; ++i)
    atomic(counters_[i]).store(0, std::memory_order_relaxed); // sending the request orders this store
}

uint32_t arrivals::chunks(uint32_t counter) const {
  assert(counter < count_);
  return atomic(counters_[counter]).load(std::memory_order_acquire) & ~ended;
}

bool arrivals::wait(uint32_t counter, uint32_t chunks, deadline until) const {
  assert(counter < count_);
  while (true) {
    uint32_t now = atomic(counters_[counter]).load(std::memory_order_acquire);
    if ((now & ~ended) >= chunks)
      return true;
    if ((now & ended) != 0)
      return false;
    if (!futex_wait(counters_[counter], now, until))
      return false;
  }
}

void arrivals::end() const {
  for (uint32_t i = 0; i < count_; ++i) {
    atomic(counters_[i]).fetch_or(ended, std::memory_order_release);
    ::syscall(SYS_futex, &counters_[i], FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  }
}

} // namespace terrace::client

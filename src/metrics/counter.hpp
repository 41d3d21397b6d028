// The atomics of every probe: numbers modified by one thread while another reads them for a scrape.
#pragma once

#include <atomic>
#include <cstdint>

namespace terrace::metrics {

/// A number that only grows. It is relaxed: a scrape may see two counters of one event at different times,
/// but never a torn value.
class counter {
 public:
  void add(uint64_t n = 1) noexcept { value_.fetch_add(n, std::memory_order_relaxed); }
  uint64_t value() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_ = 0;
};

/// A value that goes up and down.
class gauge {
 public:
  void set(uint64_t n) noexcept { value_.store(n, std::memory_order_relaxed); }
  void add(uint64_t n = 1) noexcept { value_.fetch_add(n, std::memory_order_relaxed); }
  void subtract(uint64_t n = 1) noexcept { value_.fetch_sub(n, std::memory_order_relaxed); }
  uint64_t value() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_ = 0;
};

} // namespace terrace::metrics

// Records how long actors' turns take, by kind of actor: a long turn delays all other actors of its worker.
#pragma once

#include "runtime/worker_counters.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace terrace::runtime {

/// Written by one worker, read by any thread.
class turn_times {
 public:
  /// Upper bounds in nanoseconds, inclusive; longer turns go into one more bucket.
  static constexpr std::array<uint64_t, 19> bounds_ns = {
      10'000,      25'000,        50'000,        100'000,       250'000,       500'000,     1'000'000,
      2'500'000,   5'000'000,     10'000'000,    25'000'000,    50'000'000,    100'000'000, 250'000'000,
      500'000'000, 1'000'000'000, 2'500'000'000, 5'000'000'000, 10'000'000'000};
  static constexpr size_t kinds_max = 32;

  struct kind {
    /// A string literal; null: this entry and the following ones are unused.
    std::atomic<const char*> name{nullptr};
    std::array<plain_counter, bounds_ns.size() + 1> turns;
    plain_counter sum_ns;
    plain_counter longest_ns;
  };

  /// `name`: a string literal. The last kind counts all kinds beyond `kinds_max`.
  void add(const char* name, int64_t duration_ns);

  const std::array<kind, kinds_max>& kinds() const { return kinds_; }

 private:
  kind& of(const char* name);
  std::array<kind, kinds_max> kinds_;
};

} // namespace terrace::runtime

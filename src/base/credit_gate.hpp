// Bounds what connections have sent to an actor of their trust group that it has not read yet.
#pragma once

#include <atomic>
#include <cassert>
#include <cstdint>

namespace terrace {

/// The credit of an edge from all connections of a trust group to one actor, in units of the edge. Safe on any thread.
class credit_gate {
 public:
  /// Units that may wait; a larger message has credit when nothing else waits.
  static constexpr uint64_t waiting_max = 1U << 17;

  /// A message of `units` is being sent. Returns true if it has credit; it then waits until `heard`. A sender without credit
  /// sends as well, so that the actor misses nothing, but it awaits an answer, and reads no further request until the actor has
  /// answered all of these: so each connection adds at most one message per request in flight.
  bool offer(uint64_t units) noexcept {
    uint64_t before = waiting_.fetch_add(units, std::memory_order_relaxed);
    return before == 0 || before + units <= waiting_max;
  }
  /// Returns true if a message of `units` may be sent. Otherwise it counts as skipped: the actor does without.
  bool offer_or_skip(uint64_t units) noexcept {
    if (offer(units))
      return true;
    heard(units);
    skipped_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  void heard(uint64_t units) noexcept {
    [[maybe_unused]] uint64_t before = waiting_.fetch_sub(units, std::memory_order_relaxed);
    assert(before >= units);
  }

  uint64_t waiting() const noexcept { return waiting_.load(std::memory_order_relaxed); }
  uint64_t skipped() const noexcept { return skipped_.load(std::memory_order_relaxed); } ///< messages

 private:
  std::atomic<uint64_t> waiting_{0};
  std::atomic<uint64_t> skipped_{0};
};

} // namespace terrace

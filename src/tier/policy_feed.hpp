// A bound on what connections have sent to the policy and it has not read yet.
#pragma once

#include <atomic>
#include <cstdint>

namespace terrace {

/// The credit of the edge from all connections of a trust group to its policy, in objects. With credit, a connection
/// sends and goes on. Without, it sends as well, so that the policy misses nothing, but awaits an answer, and reads no
/// further request until the policy has answered all of these: so each connection adds at most one message per request
/// in flight. Safe on any thread.
class policy_feed {
 public:
  /// Objects that may wait; a longer message has credit when nothing else waits.
  static constexpr uint64_t waiting_max = 1U << 17;

  /// A message about so many objects is being sent. True: with credit. It waits until `heard`.
  bool offer(uint64_t objects) noexcept {
    uint64_t before = waiting_.fetch_add(objects, std::memory_order_relaxed);
    return before == 0 || before + objects <= waiting_max;
  }
  void heard(uint64_t objects) noexcept { waiting_.fetch_sub(objects, std::memory_order_relaxed); }

  uint64_t waiting() const noexcept { return waiting_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> waiting_{0};
};

} // namespace terrace

// Bounds the requests that wait for the shadow policies.
#pragma once

#include <atomic>
#include <cassert>
#include <cstdint>

namespace terrace {

/// Connections check it before they send, so that shadows that fall behind skip requests instead of using
/// memory or delaying others. Safe on any thread.
class shadow_feed {
 public:
  /// Chunks that may wait; a longer request waits alone.
  static constexpr uint64_t waiting_max = 1U << 17;

  /// True if a request of this many chunks may be sent; it counts as waiting until `heard`, otherwise as
  /// skipped.
  bool offer(uint64_t chunks) noexcept {
    uint64_t before = waiting_.fetch_add(chunks, std::memory_order_relaxed);
    if (before == 0 || before + chunks <= waiting_max)
      return true;
    heard(chunks);
    skipped_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  void heard(uint64_t chunks) noexcept {
    [[maybe_unused]] uint64_t before = waiting_.fetch_sub(chunks, std::memory_order_relaxed);
    assert(before >= chunks);
  }

  /// The number of skipped requests.
  uint64_t skipped() const noexcept { return skipped_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> waiting_{0};
  std::atomic<uint64_t> skipped_{0};
};

} // namespace terrace

// Decides whether asking the kernel for another large page is worth while.
#pragma once

#include "base/large_pages.hpp"

#include <array>
#include <cstdint>
#include <mutex>

namespace terrace {

/// Where memory is fragmented, the kernel may search for a large page for milliseconds and then refuse it; a
/// virtual machine may also have given the memory back to its host. So after each page that was refused, or
/// took longer than small pages do, a pause follows in which large pages are not asked for. Each failure
/// makes the next pause four times as long, and each page made in time halves it. During a load of a TiB in
/// which every attempt fails, only 140 pages are asked for. If one attempt in three is not worth while, the
/// pauses neither gain nor lose anything. Safe on any thread.
class large_page_supply {
 public:
  static constexpr uint32_t pause_max = 1 << 12; ///< in large pages: 8 GiB

  /// Returns false during a pause, and counts the page that is not asked for.
  bool may_ask();
  void answered(large_page_answer answer);

  std::array<uint64_t, large_page_answers> answers() const; ///< how many answers of each kind

 private:
  mutable std::mutex lock_; ///< protects the members below
  uint32_t pause_ = 1;      ///< length of the pause after the next failure
  uint32_t left_ = 0;       ///< rest of the pause
  std::array<uint64_t, large_page_answers> answers_{};
};

} // namespace terrace

// Whether it is worth while to ask the kernel for another large page.
#pragma once

#include "base/large_pages.hpp"

#include <array>
#include <cstdint>
#include <mutex>

namespace terrace {

/// Where memory is in pieces, the kernel may look for a large page for milliseconds, and then refuse it; and a virtual machine may have given
/// it back to its host. So after each page that was refused, or took longer than small ones, some are not asked for: four times as many as the last
/// time, and half as many for each one that was made in time. Of a TiB that is loaded in vain, 140 are asked for. Where one in three is not worth
/// while, nothing is gained or lost. All calls are safe on any thread.
class large_page_supply {
 public:
  static constexpr uint32_t pause_max = 1 << 12; ///< large pages: 8 GiB

  /// False: it is too early. Counts.
  bool may_ask();
  void answered(large_page_answer answer);

  std::array<uint64_t, large_page_answers> answers() const; ///< how many, of each kind

 private:
  mutable std::mutex lock_; ///< protects the following
  uint32_t pause_ = 1;      ///< after the next one that was not worth while
  uint32_t left_ = 0;       ///< of the pause
  std::array<uint64_t, large_page_answers> answers_{};
};

} // namespace terrace

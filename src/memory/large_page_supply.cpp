#include "memory/large_page_supply.hpp"

#include <algorithm>

namespace terrace {

bool large_page_supply::may_ask() {
  std::lock_guard held(lock_);
  if (left_ == 0)
    return true;
  --left_;
  return false;
}

void large_page_supply::answered(large_page_answer answer) {
  std::lock_guard held(lock_);
  ++answers_[static_cast<size_t>(answer)];
  switch (answer) {
    case large_page_answer::made: pause_ = std::max(pause_ / 2, 1U); return;
    case large_page_answer::slow:
    case large_page_answer::refused:
      left_ = pause_;
      pause_ = std::min(pause_ * 4, pause_max);
      return;
    case large_page_answer::impossible: return; // it concerns one mapping and says nothing about others
  }
}

std::array<uint64_t, large_page_answers> large_page_supply::answers() const {
  std::lock_guard held(lock_);
  return answers_;
}

} // namespace terrace

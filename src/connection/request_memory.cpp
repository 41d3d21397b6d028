#include "connection/request_memory.hpp"

#include <algorithm>
#include <cassert>

namespace terrace {

/// The first in line, if there is room.
std::function<void()> request_memory::next() {
  if (bytes_ >= bytes_max_ || line_.empty())
    return nullptr;
  auto wake = std::move(line_.front().wake);
  line_.pop_front();
  return wake;
}

bool request_memory::has_room(connection_id who, const std::function<void()>& wake) {
  std::lock_guard guard(mutex_);
  if (bytes_ < bytes_max_)
    return true;
  if (std::none_of(line_.begin(), line_.end(), [&](const waiter& one) { return one.who == who; }))
    line_.push_back({who, wake});
  return false;
}

bool request_memory::change(uint64_t before, uint64_t now) {
  if (before == now)
    return false;
  bool over = false;
  std::function<void()> wake;
  {
    std::lock_guard guard(mutex_);
    assert(bytes_ >= before);
    bytes_ = bytes_ - before + now;
    if (now < before)
      wake = next();
    flooded_ = flooded_ || bytes_ >= flood_bytes_;
    if (flooded_ && bytes_ < flood_bytes_ / 16) {
      flooded_ = false;
      over = true;
    }
  }
  if (wake)
    wake();
  return over;
}

void request_memory::pass_on(connection_id who) {
  std::function<void()> wake;
  {
    std::lock_guard guard(mutex_);
    std::erase_if(line_, [&](const waiter& one) { return one.who == who; });
    wake = next();
  }
  if (wake)
    wake();
}

bool request_memory::full() const {
  std::lock_guard guard(mutex_);
  return bytes_ >= bytes_max_;
}

uint64_t request_memory::bytes() const {
  std::lock_guard guard(mutex_);
  return bytes_;
}

size_t request_memory::waiting() const {
  std::lock_guard guard(mutex_);
  return line_.size();
}

} // namespace terrace

#include "connection/request_memory.hpp"

#include <algorithm>
#include <cassert>

namespace terrace {

namespace {
void call(const std::array<std::function<void()>, 2>& wakes) {
  for (const auto& wake : wakes)
    if (wake)
      wake();
}
} // namespace

/// Returns the wake of the first request that waits for objects, if it may take them.
std::function<void()> request_memory::next_with_objects() {
  if (with_objects_.empty() || with_objects_.front().woken || !fits(with_objects_.front().bytes))
    return nullptr;
  with_objects_.front().woken = true;
  return with_objects_.front().wake;
}

/// Returns the wakes of the first in both queues, if there is room.
request_memory::wakes request_memory::next() {
  wakes found{next_with_objects(), nullptr};
  if (!has_room() || line_.empty())
    return found;
  found[1] = std::move(line_.front().wake);
  line_.pop_front();
  return found;
}

bool request_memory::has_room(connection_id who, const std::function<void()>& wake) {
  std::lock_guard guard(mutex_);
  if (has_room())
    return true;
  if (std::none_of(line_.begin(), line_.end(), [&](const waiter& one) { return one.who == who; }))
    line_.push_back({who, wake});
  return false;
}

bool request_memory::change(uint64_t before, uint64_t now) {
  if (before == now)
    return false;
  bool over = false;
  wakes woken;
  {
    std::lock_guard guard(mutex_);
    assert(bytes_ >= before);
    bytes_ = bytes_ - before + now;
    if (now < before)
      woken = next();
    flooded_ = flooded_ || bytes_ >= flood_bytes_;
    if (flooded_ && bytes_ < flood_bytes_ / 16) {
      flooded_ = false;
      objects_since_flood_ = 0;
      over = true;
    }
  }
  call(woken);
  return over;
}

bool request_memory::charge_objects(connection_id who, uint64_t bytes, const std::function<void()>& wake) {
  wakes woken;
  {
    std::lock_guard guard(mutex_);
    auto mine = std::find_if(with_objects_.begin(), with_objects_.end(),
                             [&](const waiter& one) { return one.who == who; });
    bool first = with_objects_.empty() || mine == with_objects_.begin();
    if (!first || !fits(bytes)) {
      if (mine == with_objects_.end())
        mine = with_objects_.insert(mine, {who, wake});
      mine->bytes = bytes;
      mine->woken = false;
      return false;
    }
    if (mine != with_objects_.end())
      with_objects_.erase(mine);
    assert(objects_ == 0 || bytes_ + bytes <= bytes_max_);
    bytes_ += bytes;
    objects_ += bytes;
    objects_since_flood_ += bytes;
    flooded_ = flooded_ || bytes_ >= flood_bytes_ || objects_since_flood_ >= flood_bytes_;
    woken = next();
  }
  call(woken);
  return true;
}

void request_memory::leave(connection_id who) {
  wakes woken;
  {
    std::lock_guard guard(mutex_);
    std::erase_if(with_objects_, [&](const waiter& one) { return one.who == who; });
    woken = next();
  }
  call(woken);
}

void request_memory::give_back_objects(uint64_t bytes) {
  wakes woken;
  {
    std::lock_guard guard(mutex_);
    assert(objects_ >= bytes);
    objects_ -= bytes;
    bytes_ -= bytes;
    woken = next();
  }
  call(woken);
}

uint64_t request_memory::object_bytes() const {
  std::lock_guard guard(mutex_);
  return objects_;
}

void request_memory::pass_on(connection_id who) {
  wakes woken;
  {
    std::lock_guard guard(mutex_);
    std::erase_if(line_, [&](const waiter& one) { return one.who == who; });
    woken = next();
  }
  call(woken);
}

bool request_memory::full() const {
  std::lock_guard guard(mutex_);
  return !has_room();
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

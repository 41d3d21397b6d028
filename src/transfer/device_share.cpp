#include "transfer/device_share.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace terrace {

std::shared_ptr<shared_device::member> shared_device::member_of(uint64_t group) {
  std::lock_guard guard(lock_);
  std::erase_if(members_, [](const auto& each) { return each.second.expired(); });
  auto& known = members_[group];
  auto found = known.lock();
  if (!found)
    known = found = std::make_shared<member>();
  return found;
}

void shared_device::begin(member& path) {
  if (path.active_files.fetch_add(1) != 0)
    return;
  path.arrivals.fetch_add(1);
  arrivals_.fetch_add(1);
  active_groups_.fetch_add(1);
}

void shared_device::end(member& path) {
  if (path.active_files.fetch_sub(1) == 1)
    active_groups_.fetch_sub(1);
}

device_share::device_share(std::shared_ptr<shared_device> device, uint64_t group, const io_limits& limits)
    : device_(std::move(device)), group_(device_->member_of(group)), limits_(limits),
      arrivals_(device_->arrivals_of_others(*group_)) {}

io_room device_share::room() {
  if (!std::exchange(active_, true))
    device_->begin(*group_);
  // The counters of others may change meanwhile: what is missed now counts at the next operation.
  uint64_t groups = std::max<uint64_t>(device_->active_groups(), 1);
  uint64_t arrivals = device_->arrivals_of_others(*group_);
  contended_ = groups > 1;
  if (contended_ || arrivals != arrivals_) {
    uint64_t parts = std::max<uint64_t>(groups, 2) * std::max<uint32_t>(group_->active_files, 1);
    arrivals_ = arrivals;
    limited_ = true;
    room_.bytes = std::max(limits_.shared_bytes / parts, limits_.beside_bytes);
    room_.operations = static_cast<uint32_t>(std::max<uint64_t>(limits_.depth / parts, 1));
    room_.piece_bytes = limits_.beside_bytes;
  }
  return limited_ ? room_ : io_room{};
}

void device_share::finished(uint64_t bytes) {
  if (!limited_ || contended_)
    return;
  room_.bytes += bytes;
  limited_ = room_.bytes < limits_.bytes_in_flight;
}

void device_share::idle() {
  if (std::exchange(active_, false))
    device_->end(*group_);
}

} // namespace terrace

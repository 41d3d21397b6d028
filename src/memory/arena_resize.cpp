#include "memory/arena_resize.hpp"

namespace terrace {

result<arena_resize::step> arena_resize::begin() {
  if (growing_ || !wanted_)
    return step::nothing;
  uint64_t target = *std::exchange(wanted_, std::nullopt);
  uint64_t now = memory_->size(), later = now;
  if (target == now)
    return step::nothing;
  if (target < now) {
    leaving_ = memory_->choose(now - target);
    for (uint32_t number : leaving_)
      later -= memory_->range_of(number).bytes;
  }
  if (target <= later)
    return step::remove;
  auto added = memory_->grow(target - later);
  if (!added) {
    leaving_.clear();
    return tl::unexpected(added.error());
  }
  growing_ = *added;
  return step::grow;
}

std::optional<arena_resize::joined> arena_resize::end_growth(bool failed) {
  auto added = *std::exchange(growing_, std::nullopt);
  if (failed) {
    memory_->undo(added);
    leaving_.clear();
    return std::nullopt;
  }
  joined all{added.first, added.end, added.gap_bytes, 0};
  for (uint32_t number = added.first; number < added.end; ++number)
    all.bytes += memory_->range_of(number).bytes;
  return all;
}

std::vector<std::pair<uint32_t, segmented_arena::range>> arena_resize::take_leaving() {
  std::vector<std::pair<uint32_t, segmented_arena::range>> taken;
  for (uint32_t number : std::exchange(leaving_, {})) {
    taken.emplace_back(number, memory_->range_of(number));
    memory_->retire(number);
  }
  return taken;
}

} // namespace terrace

#include "tier/objects/departure_log.hpp"

#include <algorithm>

namespace terrace {

void departure_log::add(entry_key name, tier_kind from, miss_reason why) {
  const record added{name.high, seconds_(), from, why};
  std::lock_guard lock(mutex_);
  if (records_.empty())
    records_.resize(records_max);
  auto first = records_.begin() + static_cast<std::ptrdiff_t>(set_of(name));
  auto last = first + set_records - 1;
  auto former = std::find_if(first, last, [&](const record& one) { return one.name == name.high; });
  std::move_backward(first, former, former + 1);
  *first = added;
}

std::optional<departure> departure_log::find(entry_key name) const {
  std::lock_guard lock(mutex_);
  if (records_.empty())
    return std::nullopt;
  auto first = records_.begin() + static_cast<std::ptrdiff_t>(set_of(name));
  auto last = first + set_records;
  auto found = std::find_if(first, last, [&](const record& one) {
    return one.name == name.high && one.why != miss_reason::not_stored;
  });
  if (found == last)
    return std::nullopt;
  return departure{found->why, found->from, seconds_() - found->second};
}

size_t departure_log::bytes() const {
  std::lock_guard lock(mutex_);
  return records_.size() * sizeof(record);
}

} // namespace terrace

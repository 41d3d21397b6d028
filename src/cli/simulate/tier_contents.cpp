#include "cli/simulate/tier_contents.hpp"

#include <cassert>

namespace terrace::simulate {

bool tier_contents::make_room(uint64_t chunks, const std::function<void(chunk)>& leaving) {
  if (chunks > capacity_)
    return false;
  while (!has_room(chunks)) {
    auto victims = tracker_.victims(tier_, used_ + chunks - capacity_);
    if (victims.empty())
      return false;
    for (chunk c : victims) {
      if (leaving)
        leaving(c);
      tracker_.erase(tier_, c);
      resident_[c] = false;
      --used_;
      ++evicted_;
    }
  }
  return true;
}

void tier_contents::insert(chunk which) {
  assert(!resident_[which] && has_room(1));
  tracker_.insert(tier_, which);
  resident_[which] = true;
  ++used_;
}

} // namespace terrace::simulate

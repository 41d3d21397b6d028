#include "policy/open_ages.hpp"

#include <algorithm>

namespace terrace {

open_ages::open_ages(size_t classes) : classes_(classes), counts_(levels * slots * classes) {}

void open_ages::advance(uint64_t now) {
  now >>= base_shift;
  // From the widest down, so that what a level hands on meets slots that are in their place.
  for (int level = levels - 1; level >= 0; --level) {
    uint64_t before = now_ >> level, after = now >> level;
    uint64_t steps = std::min(after - before, slots);
    for (uint64_t i = 1; i <= steps; ++i) {
      uint64_t number = before + i - slots; // it is 64 slots old when `before + i` begins
      int32_t* old = slot(level, number);
      for (size_t c = 0; c < classes_; ++c) {
        if (old[c] != 0 && before + i >= slots) {
          uint64_t time = number << level;
          for (int up = level + 1; up < levels; ++up)
            if ((now >> up) - (time >> up) < slots) {
              slot(up, time >> up)[c] += old[c];
              break;
            }
        }
        old[c] = 0;
      }
    }
  }
  now_ = now;
}

void open_ages::add(size_t of_class, uint64_t time, int change) {
  time = std::min(time >> base_shift, now_);
  for (int level = 0; level < levels; ++level)
    if ((now_ >> level) - (time >> level) < slots) {
      slot(level, time >> level)[of_class] += change;
      return;
    }
}

void open_ages::count(size_t of_class, std::array<double, age_bins::count>& into) const {
  for (int level = 0; level < levels; ++level) {
    uint64_t last = now_ >> level;
    for (uint64_t back = 0; back < slots && back <= last; ++back) {
      size_t place = (static_cast<size_t>(level) * slots + (last - back) % slots) * classes_ + of_class;
      int32_t waiting = counts_[place];
      if (waiting == 0)
        continue;
      uint64_t begin = (last - back) << level, end = std::min(begin + (uint64_t{1} << level), now_ + 1);
      uint64_t age = ((now_ + 1 - begin) + (now_ + 1 - end)) << base_shift >> 1;
      into[static_cast<size_t>(age_bins::of(age))] += waiting;
    }
  }
}

} // namespace terrace

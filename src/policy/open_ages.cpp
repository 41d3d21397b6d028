#include "policy/open_ages.hpp"

#include <algorithm>
#include <bit>

namespace terrace {

void open_ages::bring_up_to_date(column& ages) const {
  if (ages.now == now_)
    return;
  // The slots of higher levels are unchanged.
  int top = std::min(levels, static_cast<int>(std::bit_width(now_ ^ ages.now)));
  advance(ages.ages, ages.now, now_, top);
  ages.now = now_;
}

void open_ages::advance(counts& ages, uint64_t before, uint64_t now, int top) {
  // Goes from the widest level down, so that slots moved up arrive in a level that is up to date.
  for (int level = top - 1; level >= 0; --level) {
    uint64_t from = before >> level;
    uint64_t steps = std::min((now >> level) - from, slots);
    for (uint64_t i = 1; i <= steps; ++i) {
      uint64_t number = from + i - slots; // 32 slots old when `from + i` begins
      int32_t& old = ages[slot(level, number)];
      if (old != 0 && from + i >= slots) {
        uint64_t time = number << level;
        for (int up = level + 1; up < levels; ++up)
          if ((now >> up) - (time >> up) < slots) {
            ages[slot(up, time >> up)] += old;
            break;
          }
      }
      old = 0;
    }
  }
}

void open_ages::add(size_t of_class, uint64_t time, int change) {
  auto& of = columns_[of_class];
  if (!of)
    of = std::make_unique<column>(column{now_, {}});
  bring_up_to_date(*of);
  time = std::min(time >> base_shift, now_);
  for (int level = 0; level < levels; ++level)
    if ((now_ >> level) - (time >> level) < slots) {
      of->ages[slot(level, time >> level)] += change;
      return;
    }
}

void open_ages::count(size_t of_class, std::array<double, age_bins::count>& into) const {
  const auto& of = columns_[of_class];
  if (!of)
    return;
  bring_up_to_date(*of);
  for (int level = 0; level < levels; ++level) {
    uint64_t last = now_ >> level;
    for (uint64_t back = 0; back < slots && back <= last; ++back) {
      int32_t waiting = of->ages[slot(level, last - back)];
      if (waiting == 0)
        continue;
      uint64_t begin = (last - back) << level, end = std::min(begin + (uint64_t{1} << level), now_ + 1);
      uint64_t age = ((now_ + 1 - begin) + (now_ + 1 - end)) << base_shift >> 1;
      into[static_cast<size_t>(age_bins::of(age))] += waiting;
    }
  }
}

size_t open_ages::bytes() const {
  auto used = std::count_if(columns_.begin(), columns_.end(), [](const auto& of) { return of != nullptr; });
  return columns_.capacity() * sizeof(columns_[0]) + static_cast<size_t>(used) * sizeof(column);
}

} // namespace terrace

namespace terrace::foresight {

namespace {

constexpr int rounds_max = 6;
constexpr double progress_min = 1.01;

struct gain {
  double returns = 0, seconds = 0;
};

/// Returns the gain of the waiting time that gains most at this price; nothing if none gains.
gain best_wait(const outcome& future, size_t from, double price) {
  double waiting = 1, seconds = 0, most = 0;
  gain best;
  for (size_t bin = from; bin < age_bins::count; ++bin) {
    double chance = (*future.chance)[bin];
    seconds += waiting * (1 - chance / 2) * age_bins::width_seconds(static_cast<int>(bin));
    waiting *= 1 - chance;
    if (double profit = 1 - waiting - price * seconds; profit > most) {
      most = profit;
      best = {1 - waiting, seconds};
    }
    if (1 - price * seconds <= most)
      break; // no further wait gains, even if all returned now
  }
  return best;
}

} // namespace

double value(std::span<const outcome> outcomes, delay until_known, double least) {
  double price = least;
  for (int round = 0; round < rounds_max; ++round) {
    double returns = 0, seconds = 0;
    for (const outcome& future : outcomes) {
      gain best = best_wait(future, until_known.bin, price);
      returns += future.weight * best.returns;
      seconds += future.weight * (until_known.seconds + best.seconds);
    }
    if (!(returns > price * seconds * progress_min))
      break;
    price = returns / seconds;
  }
  return price;
}

} // namespace terrace::foresight

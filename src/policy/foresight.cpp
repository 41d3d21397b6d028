#include "policy/foresight.hpp"

namespace terrace::foresight {

namespace {

constexpr int rounds_max = 6;
constexpr double progress_min = 1.01;

struct gain {
  double returns = 0, seconds = 0;
};

/// Returns the gain of the waiting time that gains most at this price; nothing if none gains.
gain best_wait(const outcome& of, size_t from, double price) {
  double waiting = 1, seconds = 0, most = 0;
  gain best;
  for (size_t bin = from; bin < age_bins::count; ++bin) {
    double chance = (*of.chance)[bin];
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
    for (const outcome& of : outcomes) {
      gain best = best_wait(of, until_known.bin, price);
      returns += of.weight * best.returns;
      seconds += of.weight * (until_known.seconds + best.seconds);
    }
    if (!(returns > price * seconds * progress_min))
      break;
    price = returns / seconds;
  }
  return price;
}

} // namespace terrace::foresight

#include "policy/survival_model.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace terrace {

namespace {

constexpr int bin_count = age_bins::count;
constexpr double chance_max = 0.98; ///< no class is that sure
constexpr double chance_max_of_all = 0.9;
constexpr double prior_uses = 1000;  ///< weight of the scaled estimate of a broader class in each bin
constexpr double prior_returns = 50; ///< weight of factor 1 in a class's factor
constexpr double memory_uses = 1 << 22;

size_t index(int bin) { return static_cast<size_t>(bin); }

/// The Gittins index at every age.
void find_values(const survival_model::bins& chance, float* values) {
  for (int from = 0; from < bin_count; ++from) {
    double waiting = 1, seconds = 0, best = 0;
    for (int bin = from; bin < bin_count; ++bin) {
      double p = chance[index(bin)];
      seconds += waiting * (1 - p / 2) * age_bins::width_seconds(bin);
      waiting *= 1 - p;
      best = std::max(best, (1 - waiting) / seconds);
    }
    values[from] = static_cast<float>(best);
  }
}

struct counts {
  survival_model::bins returns{};
  survival_model::bins reached{};

  void add(const counts& more) {
    for (size_t bin = 0; bin < index(bin_count); ++bin) {
      returns[bin] += more.returns[bin];
      reached[bin] += more.reached[bin];
    }
  }
};

/// The chance of a return in each bin: what was counted, and `prior_uses` more that behave like `broader`, scaled by how
/// much likelier returns are here.
survival_model::bins estimate(const counts& of, const survival_model::bins& broader) {
  double seen = prior_returns, expected = prior_returns;
  for (size_t bin = 0; bin < index(bin_count); ++bin) {
    seen += of.returns[bin];
    expected += of.reached[bin] * broader[bin];
  }
  double factor = seen / expected;
  survival_model::bins chance;
  for (size_t bin = 0; bin < index(bin_count); ++bin) {
    double prior = std::min(chance_max_of_all, factor * broader[bin]);
    chance[bin] =
        std::min(chance_max, (of.returns[bin] + prior_uses * prior) / (of.reached[bin] + prior_uses));
  }
  return chance;
}

} // namespace

survival_model::survival_model(std::vector<size_t> pool_of)
    : pool_of_(std::move(pool_of)), classes_(pool_of_.size()), open_(pool_of_.size()),
      values_(pool_of_.size() * index(bin_count)) {
  assert(std::all_of(pool_of_.begin(), pool_of_.end(), [&](size_t pool) { return pool_of_[pool] == pool; }));
  refresh();
}

void survival_model::returned(size_t of_class, uint64_t time, uint64_t now) {
  open_.add(of_class, time, -1);
  size_t bin = index(age_bins::of(now - time));
  ++classes_[of_class].returns[bin];
  ++classes_[of_class].ended[bin];
  if (++ended_ > memory_uses)
    forget_the_past();
}

void survival_model::forgotten(size_t of_class, uint64_t time, uint64_t now) {
  open_.add(of_class, time, -1);
  ++classes_[of_class].ended[index(age_bins::of(now - time))];
  if (++ended_ > memory_uses)
    forget_the_past();
}

void survival_model::reclassified(size_t from, size_t to, uint64_t time) {
  open_.add(from, time, -1);
  open_.add(to, time, 1);
}

void survival_model::forget_the_past() {
  ended_ /= 2;
  for (class_counts& c : classes_)
    for (size_t bin = 0; bin < index(bin_count); ++bin) {
      c.returns[bin] /= 2;
      c.ended[bin] /= 2;
    }
}

survival_model::bins survival_model::reached(size_t of_class) const {
  bins sum = classes_[of_class].ended;
  open_.count(of_class, sum);
  for (int bin = bin_count - 2; bin >= 0; --bin)
    sum[index(bin)] += sum[index(bin + 1)];
  return sum;
}

void survival_model::refresh() {
  counts all;
  std::vector<counts> each(classes_.size());
  for (size_t c = 0; c < classes_.size(); ++c) {
    each[c] = {classes_[c].returns, reached(c)};
    all.add(each[c]);
  }
  for (size_t c = 0; c < classes_.size(); ++c)
    if (pool_of_[c] != c)
      each[pool_of_[c]].add(each[c]);
  bins general;
  for (size_t bin = 0; bin < index(bin_count); ++bin)
    general[bin] = (all.returns[bin] + 0.02) / (all.reached[bin] + 1);
  for (size_t c = 0; c < classes_.size(); ++c) // pools before those that lean on them
    if (pool_of_[c] == c)
      classes_[c].chance = estimate(each[c], general);
  for (size_t c = 0; c < classes_.size(); ++c) {
    if (pool_of_[c] != c)
      classes_[c].chance = estimate(each[c], classes_[pool_of_[c]].chance);
    find_values(classes_[c].chance, values_.data() + c * index(bin_count));
  }
}

size_t survival_model::bytes() const {
  return pool_of_.capacity() * sizeof(size_t) + classes_.capacity() * sizeof(class_counts) + open_.bytes() +
         values_.capacity() * sizeof(float);
}

} // namespace terrace

#include "policy/survival_model.hpp"

#include <algorithm>

namespace terrace {

namespace {

constexpr int bin_count = age_bins::count;
constexpr double chance_max = 0.98; ///< no class is that sure
constexpr double chance_max_of_all = 0.9;
constexpr double prior_uses = 1000;  ///< weight of the scaled estimate of all classes in each bin of one
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

} // namespace

survival_model::survival_model(size_t classes)
    : classes_(classes), open_(classes), values_(classes * index(bin_count)) {
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
  std::vector<bins> all_reached(classes_.size());
  bins returns{}, uses{};
  for (size_t c = 0; c < classes_.size(); ++c) {
    all_reached[c] = reached(c);
    for (size_t bin = 0; bin < index(bin_count); ++bin) {
      returns[bin] += classes_[c].returns[bin];
      uses[bin] += all_reached[c][bin];
    }
  }
  bins general;
  for (size_t bin = 0; bin < index(bin_count); ++bin)
    general[bin] = (returns[bin] + 0.02) / (uses[bin] + 1);
  for (size_t c = 0; c < classes_.size(); ++c) {
    double seen = prior_returns, expected = prior_returns;
    for (size_t bin = 0; bin < index(bin_count); ++bin) {
      seen += classes_[c].returns[bin];
      expected += all_reached[c][bin] * general[bin];
    }
    double factor = seen / expected;
    for (size_t bin = 0; bin < index(bin_count); ++bin) {
      double prior = std::min(chance_max_of_all, factor * general[bin]);
      double p = (classes_[c].returns[bin] + prior_uses * prior) / (all_reached[c][bin] + prior_uses);
      classes_[c].chance[bin] = std::min(chance_max, p);
    }
    find_values(classes_[c].chance, values_.data() + c * index(bin_count));
  }
}

size_t survival_model::bytes() const {
  return classes_.capacity() * sizeof(class_counts) + open_.bytes() + values_.capacity() * sizeof(float);
}

} // namespace terrace

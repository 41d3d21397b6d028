#include "policy/survival_model.hpp"

#include <algorithm>
#include <cassert>
#include <map>
#include <utility>

namespace terrace {

namespace {
constexpr int bin_count = age_bins::count;
size_t index(int bin) { return static_cast<size_t>(bin); }
} // namespace

struct survival_model::counts {
  bins returns{};
  bins reached{};

  void add(const counts& more) {
    for (size_t bin = 0; bin < index(bin_count); ++bin) {
      returns[bin] += more.returns[bin];
      reached[bin] += more.reached[bin];
    }
  }
};

namespace {

constexpr double chance_max = 0.98; ///< upper bound for one class
constexpr double chance_max_of_all = 0.9;
constexpr double prior_uses = 1000;   ///< weight of the scaled estimate of the broader class in each bin
constexpr double prior_chance = 0.02; ///< of a return in any bin, with the weight of one use
/// The first bin is wider than the following ones. Without data the youngest uses must be worth most, as under lru.
constexpr double prior_chance_youngest = 0.06;
constexpr double prior_returns = 50; ///< weight of factor 1 in a class's factor
constexpr double memory_uses = 1 << 22;

/// The Gittins index at every age.
void find_values(const survival_model::bins& chance, float* values) {
  survival_model::bins stay, seconds_in; // of a use still open when the bin begins
  for (int bin = 0; bin < bin_count; ++bin) {
    stay[index(bin)] = 1 - chance[index(bin)];
    seconds_in[index(bin)] = (1 - chance[index(bin)] / 2) * age_bins::width_seconds(bin);
  }
  for (int from = 0; from < bin_count; ++from) {
    double waiting = 1, seconds = 0, best = 0;
    for (size_t bin = index(from); bin < index(bin_count); ++bin) {
      seconds += waiting * seconds_in[bin];
      waiting *= stay[bin];
      if (1 - waiting > best * seconds) // divides only for the few that are better
        best = (1 - waiting) / seconds;
    }
    values[from] = static_cast<float>(best);
  }
}

/// Returns, and the returns expected if the class behaved like `broader`.
struct likelihood {
  double seen = 0, expected = 0;

  template <class Counts>
  void add(const Counts& of, const survival_model::bins& broader) {
    for (size_t bin = 0; bin < index(bin_count); ++bin) {
      seen += of.returns[bin];
      expected += of.reached[bin] * broader[bin];
    }
  }
  /// How much more likely returns are here; `before` is the factor assumed without data.
  double factor(double before) const { return (seen + prior_returns * before) / (expected + prior_returns); }
};

/// The probability of a return in each bin: the counts, plus `prior_uses` more that behave like `broader`,
/// scaled.
template <class Counts>
survival_model::bins estimate(const Counts& of, const survival_model::bins& broader, double before) {
  likelihood of_all;
  of_all.add(of, broader);
  double factor = of_all.factor(before);
  survival_model::bins chance;
  for (size_t bin = 0; bin < index(bin_count); ++bin) {
    double prior = std::min(chance_max_of_all, factor * broader[bin]);
    chance[bin] =
        std::min(chance_max, (of.returns[bin] + prior_uses * prior) / (of.reached[bin] + prior_uses));
  }
  return chance;
}

} // namespace

survival_model::survival_model(std::vector<size_t> pool_of, const survival_model* broader)
    : pool_of_(std::move(pool_of)), broader_(broader), classes_(pool_of_.size()),
      general_(std::make_unique<learned>()),
      values_(pool_of_.size(), broader ? nullptr : general_->values.data()), open_(pool_of_.size()) {
  assert(std::all_of(pool_of_.begin(), pool_of_.end(), [&](size_t pool) { return pool_of_[pool] == pool; }));
  refresh();
}

survival_model::learned& survival_model::use(size_t of_class) {
  auto& known = classes_[of_class];
  if (known)
    return *known;
  size_t pool = pool_of_[of_class];
  if (pool != of_class)
    use(pool);
  ++in_use_;
  if (broader_)
    known = std::make_unique<learned>(broader_->known(broader_->classes_[of_class] ? of_class : pool));
  else
    known = std::make_unique<learned>(pool == of_class ? *general_ : *classes_[pool]);
  known->returns = known->ended = {};
  values_[of_class] = known->values.data();
  for (size_t c = 0; !broader_ && pool == of_class && c < classes_.size(); ++c)
    if (pool_of_[c] == pool)
      values_[c] = known->values.data(); // first use of the pool: none of its members is in use
  return *known;
}

void survival_model::opened(size_t of_class, uint64_t time) {
  use(of_class);
  open_.add(of_class, time, 1);
}

void survival_model::returned(size_t of_class, uint64_t time, uint64_t now) {
  end(of_class, time, now, true);
}

void survival_model::forgotten(size_t of_class, uint64_t time, uint64_t now) {
  end(of_class, time, now, false);
}

void survival_model::end(size_t of_class, uint64_t time, uint64_t now, bool by_return) {
  open_.add(of_class, time, -1);
  learned& of = use(of_class);
  size_t bin = index(age_bins::of(now - time));
  of.returns[bin] += by_return;
  ++of.ended[bin];
  if (++ended_ > memory_uses)
    forget_the_past();
}

void survival_model::reclassified(size_t from, size_t to, uint64_t time) {
  use(to);
  open_.add(from, time, -1);
  open_.add(to, time, 1);
}

void survival_model::forget_the_past() {
  ended_ /= 2;
  for (auto& of : classes_)
    for (size_t bin = 0; of && bin < index(bin_count); ++bin) {
      of->returns[bin] /= 2;
      of->ended[bin] /= 2;
    }
}

survival_model::bins survival_model::reached(size_t of_class) const {
  bins sum = known(of_class).ended;
  open_.count(of_class, sum);
  for (int bin = bin_count - 2; bin >= 0; --bin)
    sum[index(bin)] += sum[index(bin + 1)];
  return sum;
}

const survival_model::bins& survival_model::chance(size_t of_class) const {
  if (broader_ && !classes_[of_class])
    return broader_->chance(of_class);
  return classes_[of_class] ? classes_[of_class]->chance : known(pool_of_[of_class]).chance;
}

void survival_model::refresh() {
  counts all;
  std::vector<counts> each(classes_.size());
  for (size_t c = 0; c < classes_.size(); ++c)
    if (classes_[c]) {
      each[c] = {classes_[c]->returns, reached(c)};
      all.add(each[c]);
    }
  for (size_t c = 0; c < classes_.size(); ++c)
    if (classes_[c] && pool_of_[c] != c)
      each[pool_of_[c]].add(each[c]);
  if (broader_) {
    refresh_leaning(each);
    return;
  }
  bins general;
  for (size_t bin = 0; bin < index(bin_count); ++bin)
    general[bin] = (all.returns[bin] + prior_chance) / (all.reached[bin] + 1);
  if (all.reached[0] == 0)
    general[0] = prior_chance_youngest;
  general_->chance = estimate(counts{}, general, 1);
  find_values(general_->chance, general_->values.data());
  for (size_t c = 0; c < classes_.size(); ++c)
    if (classes_[c] && pool_of_[c] == c) {
      classes_[c]->chance = estimate(each[c], general, 1);
      find_values(classes_[c]->chance, classes_[c]->values.data());
    }
  std::map<size_t, likelihood> places; // of a member behind its pool
  for (size_t c = 0; c < classes_.size(); ++c)
    if (classes_[c] && pool_of_[c] != c)
      places[c - pool_of_[c]].add(each[c], classes_[pool_of_[c]]->chance);
  for (size_t c = 0; c < classes_.size(); ++c)
    if (classes_[c] && pool_of_[c] != c) {
      double before = places[c - pool_of_[c]].factor(1);
      classes_[c]->chance = estimate(each[c], classes_[pool_of_[c]]->chance, before);
      find_values(classes_[c]->chance, classes_[c]->values.data());
    }
}

void survival_model::refresh_leaning(std::vector<counts>& each) {
  for (size_t c = 0; c < classes_.size(); ++c)
    if (classes_[c]) {
      classes_[c]->chance = estimate(each[c], broader_->chance(c), 1);
      find_values(classes_[c]->chance, classes_[c]->values.data());
    }
}

size_t survival_model::bytes() const {
  return pool_of_.capacity() * sizeof(size_t) + classes_.capacity() * sizeof(classes_[0]) +
         values_.capacity() * sizeof(values_[0]) + (in_use_ + 1) * sizeof(learned) + open_.bytes();
}

} // namespace terrace

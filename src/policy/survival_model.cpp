#include "policy/survival_model.hpp"

#include "policy/open_ages.hpp"

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
constexpr double prior_uses = 4000;   ///< weight of the scaled estimate of the broader class in each bin
constexpr double prior_chance = 0.02; ///< probability of a return in any bin, with the weight of one use
/// The first bin is wider than the following ones. Without data the youngest uses must be worth most, as under lru.
constexpr double prior_chance_youngest = 0.06;
constexpr double prior_returns = 50; ///< weight of the factor assumed without data
constexpr double fading = 0.7;       ///< weight of a bin for the factor of its neighbour
constexpr double memory_uses = 1 << 22;
constexpr double told_min = 16;         ///< how many uses must have been told before their delay is believed
constexpr double delay_seconds_min = 1; ///< a use that is told almost at once needs no foresight
/// A use that was not told anything for this many delays will probably never be.
constexpr double delays_waited = 1.5;

/// Computes the Gittins index at every age.
void find_values(const survival_model::bins& chance, float* values) {
  survival_model::bins stay, seconds_in; // for a use that is still open when the bin begins
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
      if (1 <= best * seconds)
        break; // no longer wait gains, even if all returned now
    }
    values[from] = static_cast<float>(best);
  }
}

/// The returns, and the returns expected if the class behaved like `broader`.
struct likelihood {
  double seen = 0, expected = 0;

  template <class Counts>
  void add(const Counts& sums, const survival_model::bins& broader) {
    for (size_t bin = 0; bin < index(bin_count); ++bin) {
      seen += sums.returns[bin];
      expected += sums.reached[bin] * broader[bin];
    }
  }
  /// How much more likely returns are here; `before` is the factor assumed without data.
  double factor(double before) const { return (seen + prior_returns * before) / (expected + prior_returns); }
};

/// Computes the likelihood at each bin, from this bin and, with less weight, its neighbours.
template <class Counts>
survival_model::bins factors(const Counts& sums, const survival_model::bins& broader, double before) {
  std::array<likelihood, age_bins::count> near{};
  likelihood behind;
  auto fade = [&](size_t bin) {
    behind.seen = behind.seen * fading + sums.returns[bin];
    behind.expected = behind.expected * fading + sums.reached[bin] * broader[bin];
  };
  for (size_t bin = 0; bin < index(bin_count); ++bin) {
    fade(bin);
    near[bin] = behind;
  }
  behind = {};
  for (size_t bin = index(bin_count); bin-- > 0;) {
    near[bin].seen += behind.seen * fading;
    near[bin].expected += behind.expected * fading;
    fade(bin);
  }
  survival_model::bins all;
  std::transform(near.begin(), near.end(), all.begin(),
                 [&](const likelihood& l) { return l.factor(before); });
  return all;
}

/// The probability of a return in each bin: the counts, plus `prior_uses` more that behave like `broader`,
/// scaled.
template <class Counts>
survival_model::bins estimate(const Counts& sums, const survival_model::bins& broader, double before) {
  auto factor = factors(sums, broader, before);
  survival_model::bins chance;
  for (size_t bin = 0; bin < index(bin_count); ++bin) {
    double prior = std::min(chance_max_of_all, factor[bin] * broader[bin]);
    chance[bin] =
        std::min(chance_max, (sums.returns[bin] + prior_uses * prior) / (sums.reached[bin] + prior_uses));
  }
  return chance;
}

} // namespace

survival_model::survival_model(families sums, const survival_model* broader)
    : pool_of_(std::move(sums.pool_of)), telling_(sums.telling), broader_(broader), classes_(pool_of_.size()),
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
      values_[c] = known->values.data(); // the first use of the pool: none of its members is in use
  return *known;
}

void survival_model::opened(size_t of_class, uint64_t time, int uses) {
  use(of_class);
  open_.add(of_class, time, uses);
}

void survival_model::returned(size_t of_class, uint64_t time, uint64_t now, int uses) {
  end(of_class, time, now, uses).returns[index(age_bins::of(now - time))] += uses;
}

void survival_model::forgotten(size_t of_class, uint64_t time, uint64_t now) { end(of_class, time, now, 1); }

survival_model::learned& survival_model::end(size_t of_class, uint64_t time, uint64_t now, int uses) {
  if (ended_ + uses > memory_uses)
    forget_the_past();
  open_.add(of_class, time, -uses);
  learned& model = use(of_class);
  model.ended[index(age_bins::of(now - time))] += uses;
  ended_ += uses;
  return model;
}

void survival_model::reclassified(size_t from, size_t to, uint64_t time, uint64_t now) {
  use(to);
  if (from == pool_of_[to]) {
    ++told_;
    told_seconds_ += static_cast<double>(now - time) / age_bins::ticks_per_second;
  }
  open_.add(from, time, -1);
  open_.add(to, time, 1);
}

void survival_model::forget_the_past() {
  ended_ /= 2;
  told_ /= 2;
  told_seconds_ /= 2;
  for (auto& model : classes_)
    for (size_t bin = 0; model && bin < index(bin_count); ++bin) {
      model->returns[bin] /= 2;
      model->ended[bin] /= 2;
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
  std::vector<counts> pooled(classes_.size());
  for (size_t c = 0; c < classes_.size(); ++c)
    if (classes_[c])
      pooled[c] = {classes_[c]->returns, reached(c)};
  for (size_t c = 0; c < classes_.size(); ++c)
    if (classes_[c] && in_pool(c))
      pooled[pool_of_[c]].add(pooled[c]);
  std::vector<size_t> like(classes_.size()); // the class whose estimate it has
  // For each sort that tells, by its offset behind the pool: its first member in use.
  std::map<size_t, size_t> first;
  for (size_t c = 0; c < classes_.size(); ++c) {
    like[c] = classes_[c] && tells(c) ? first.try_emplace(c - pool_of_[c], c).first->second : c;
    if (like[c] != c)
      pooled[like[c]].add(pooled[c]);
  }
  if (broader_)
    refresh_leaning(pooled);
  else
    refresh_all(pooled);
  for (size_t c = 0; c < classes_.size(); ++c)
    if (classes_[c] && like[c] == c)
      find_values(classes_[c]->chance, classes_[c]->values.data());
  for (size_t c = 0; c < classes_.size(); ++c)
    if (like[c] != c) {
      classes_[c]->chance = classes_[like[c]]->chance;
      classes_[c]->values = classes_[like[c]]->values;
    }
  foresee();
}

void survival_model::refresh_all(const std::vector<counts>& pooled) {
  counts all, in_pools;
  for (size_t c = 0; c < classes_.size(); ++c)
    if (classes_[c] && !in_pool(c)) {
      all.add(pooled[c]);
      if (has_members(c))
        in_pools.add(pooled[c]);
    }
  bins general;
  for (size_t bin = 0; bin < index(bin_count); ++bin)
    general[bin] = (all.returns[bin] + prior_chance) / (all.reached[bin] + 1);
  if (all.reached[0] == 0)
    general[0] = prior_chance_youngest;
  general_->chance = estimate(counts{}, general, 1);
  find_values(general_->chance, general_->values.data());
  bins of_pools = estimate(in_pools, general, 1);
  for (size_t c = 0; c < classes_.size(); ++c)
    if (classes_[c] && !in_pool(c))
      classes_[c]->chance = estimate(pooled[c], has_members(c) ? of_pools : general, 1);
  refresh_members(pooled, general);
}

void survival_model::refresh_members(const std::vector<counts>& pooled, const bins& general) {
  std::map<size_t, likelihood> places; // by the offset of a member behind its pool
  for (size_t c = 0; c < classes_.size(); ++c)
    if (classes_[c] && in_pool(c) && !tells(c))
      places[c - pool_of_[c]].add(pooled[c], classes_[pool_of_[c]]->chance);
  for (size_t c = 0; c < classes_.size(); ++c)
    if (classes_[c] && in_pool(c))
      classes_[c]->chance =
          tells(c) ? estimate(pooled[c], general, 1)
                   : estimate(pooled[c], classes_[pool_of_[c]]->chance, places[c - pool_of_[c]].factor(1));
}

void survival_model::refresh_leaning(const std::vector<counts>& pooled) {
  for (size_t c = 0; c < classes_.size(); ++c)
    if (classes_[c])
      classes_[c]->chance = estimate(pooled[c], broader_->chance(c), 1);
}

void survival_model::foresee() {
  if (told_ < told_min || told_seconds_ < told_ * delay_seconds_min)
    return;
  for (size_t c = 0; c < classes_.size(); ++c)
    if (classes_[c] && !in_pool(c))
      foresee(c, told_seconds_ / told_);
}

/// Raises the values of a pool at the ages at which most of its uses have not become members yet.
void survival_model::foresee(size_t pool, double delay_seconds) {
  auto bin_at = [](double seconds) {
    return index(age_bins::of(static_cast<uint64_t>(seconds * age_bins::ticks_per_second)));
  };
  std::vector<foresight::outcome> outcomes;
  for (size_t c = pool + 1; c < classes_.size() && pool_of_[c] == pool; ++c)
    if (classes_[c])
      outcomes.push_back({reached(c)[0], &classes_[c]->chance});
  if (outcomes.empty())
    return;
  learned& model = *classes_[pool];
  size_t waited = bin_at(delays_waited * delay_seconds);
  // Uses that are never told.
  outcomes.push_back({reached(pool)[std::min(waited + 1, index(bin_count - 1))], &model.chance});
  auto value =
      static_cast<float>(foresight::value(outcomes, {delay_seconds, bin_at(delay_seconds)}, model.values[0]));
  for (size_t bin = 0; bin <= waited; ++bin)
    model.values[bin] = std::max(model.values[bin], value);
}

size_t survival_model::bytes() const {
  return pool_of_.capacity() * sizeof(size_t) + classes_.capacity() * sizeof(classes_[0]) +
         values_.capacity() * sizeof(values_[0]) + (in_use_ + 1) * sizeof(learned) + open_.bytes();
}

} // namespace terrace

// Estimates the time until chunks of a class are accessed again, and the value of keeping them.
#pragma once

#include "policy/open_ages.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace terrace {

/// Learns from *uses*. A use is open until the next access to the same entry (a *return*, at some age), or
/// until the entry is forgotten. Open and forgotten uses show that no return came up to their age:
/// right-censored data. The Kaplan-Meier estimate (Kaplan, Meier 1958) takes, per age bin, the share of
/// returns among the uses that reached it. Classes with little data fall back on all classes together, scaled
/// by a factor (proportional hazards, Cox 1972). The factor of an age is learned at ages near it, because
/// entries that did not return for long are alike, whatever they were before.
///
/// A class may be a *pool* of others: its estimate is made from its own uses and theirs, and its members fall
/// back on it instead of on all classes. A pool is the class of uses about which less is known yet; they are
/// valued as the mixture. Members at the same offset behind their pools are of one sort, and the estimate of
/// a sort is the prior of each of its members. Some sorts say more about a use than its pool does (something
/// that a client told): these have one estimate, whatever the pool.
///
/// A pool is worth more than the mixture of its members before it is known which member a use becomes,
/// because the uses that pay least can be given up as soon as that is told (`foresight`).
///
/// A model may have a *broader* model that receives the same events and those of other models: each class
/// falls back on the same class there, and a class without data has the value given by the broader model.
///
/// The value of keeping an entry of class c and age a is its Gittins index (Gittins 1979; for caches, Aalto
/// et al. 2009 give the form for a hazard that rises and falls): the maximum, over all waiting times, of the
/// expected returns per second of waiting.
class survival_model {
 public:
  using bins = std::array<double, age_bins::count>;

  struct families {
    /// One element per class: the number of its pool. A class without a pool, and a pool, have their own
    /// number (asserted). The members of a pool follow it.
    std::vector<size_t> pool_of;
    /// Members at this offset behind their pool or further behind have the estimate of their sort.
    size_t telling = ~size_t{0};
  };

  /// `broader` must have the same classes and outlive this model.
  explicit survival_model(families sums, const survival_model* broader = nullptr);

  survival_model(survival_model&&) = default;

  /// `time` is in ticks, as in access_clock::ticks. `uses` that are alike may be told together.
  void opened(size_t of_class, uint64_t time, int uses = 1);
  /// The next access to the entry came at `now`.
  void returned(size_t of_class, uint64_t time, uint64_t now, int uses = 1);
  void forgotten(size_t of_class, uint64_t time, uint64_t now);
  void reclassified(size_t from, size_t to, uint64_t time, uint64_t now);

  void advance(uint64_t now) { open_.advance(now); }

  /// Recomputes the tables of values from all counts. Takes a few microseconds per class in use.
  void refresh();

  /// Returns per second, as of the last refresh; meaningful only in comparison between classes.
  float value(size_t of_class, uint64_t age) const {
    const float* known = values_[of_class];
    return known ? known[static_cast<size_t>(age_bins::of(age))] : broader_->value(of_class, age);
  }

  /// Counts the uses that reached each bin without a return, and the returns in it: the input of the estimate.
  bins reached(size_t of_class) const;
  const bins& returns(size_t of_class) const { return known(of_class).returns; }
  /// The probability of a return in each bin, given that the bin was reached, as of the last refresh.
  const bins& chance(size_t of_class) const;

  /// The number of classes that had uses, and of their pools. All others take 32 bytes each and no time.
  size_t classes_in_use() const { return in_use_; }
  size_t bytes() const;

 private:
  struct learned {
    bins returns{};
    bins ended{}; ///< uses that ended in the bin, by a return or forgotten
    bins chance{};
    std::array<float, age_bins::count> values{};
  };

  struct counts;

  learned& use(size_t of_class);
  const learned& known(size_t of_class) const { return classes_[of_class] ? *classes_[of_class] : *general_; }
  learned& end(size_t of_class, uint64_t time, uint64_t now, int uses);
  void forget_the_past();
  /// In `pooled`, the counts of a pool contain those of its members, and the counts of a sort that tells are
  /// those of the whole sort.
  void refresh_all(const std::vector<counts>& pooled);
  void refresh_leaning(const std::vector<counts>& pooled);
  void refresh_members(const std::vector<counts>& pooled, const bins& general);
  void foresee();
  void foresee(size_t pool, double delay_seconds);
  bool in_pool(size_t of_class) const { return pool_of_[of_class] != of_class; }
  bool tells(size_t of_class) const { return in_pool(of_class) && of_class - pool_of_[of_class] >= telling_; }
  bool has_members(size_t of_class) const {
    return of_class + 1 < pool_of_.size() && pool_of_[of_class + 1] == of_class;
  }

  std::vector<size_t> pool_of_;
  size_t telling_;
  const survival_model* broader_;
  std::vector<std::unique_ptr<learned>> classes_; ///< null until the class is in use
  std::unique_ptr<learned> general_;              ///< all classes together; has no counts of its own
  std::vector<const float*> values_; ///< values of the class, its pool, or all classes; null: use `broader_`
  size_t in_use_ = 0;
  open_ages open_;
  double ended_ = 0;
  double told_ = 0, told_seconds_ = 0; ///< uses that moved from a pool to a member, and how long that took
};

} // namespace terrace

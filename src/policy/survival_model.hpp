// How long until chunks of a class are used again, and what it is worth to wait.
#pragma once

#include "policy/open_ages.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace terrace {

/// Learns from *uses*. A use is open until the next use of the same entry (a *return*, at some age), or until the entry
/// is forgotten. Uses that are still open, or were forgotten, tell that no return came up to their age: right-censored
/// data, for which the Kaplan-Meier estimate (Kaplan, Meier 1958) takes in each bin of age the share of returns among
/// the uses that reached it. Sparse classes lean on all classes together, scaled by one factor each (proportional hazards,
/// Cox 1972).
///
/// A class may be a *pool* of others: its estimate is made of its own uses and of theirs, and theirs lean on it instead
/// of on all. That is the class of uses of which less is known yet: they are worth what the mixture is worth. Members at
/// the same place behind their pools are of one sort, and what is learned of a sort is where each of them begins.
///
/// A model may lean on a *broader* one that hears the same events and those of others: each class on the same class there,
/// and where nothing was heard of a class it is worth what the broader model says.
///
/// The value of keeping an entry of class c and age a is its Gittins index (Gittins 1979; for caches, Aalto et al. 2009
/// give the form for a hazard that rises and falls): the most returns to be had per second of waiting, over all times
/// to wait.
class survival_model {
 public:
  using bins = std::array<double, age_bins::count>;

  /// One class for each number, which is that of its pool; a class in no pool, and a pool, name themselves (asserted).
  /// `broader` must have the same classes and outlive it.
  explicit survival_model(std::vector<size_t> pool_of, const survival_model* broader = nullptr);

  survival_model(survival_model&&) = default;

  /// `time` in ticks, as in access_clock::ticks.
  void opened(size_t of_class, uint64_t time);
  /// The next use came, at `now`.
  void returned(size_t of_class, uint64_t time, uint64_t now);
  void forgotten(size_t of_class, uint64_t time, uint64_t now);
  void reclassified(size_t from, size_t to, uint64_t time);

  void advance(uint64_t now) { open_.advance(now); }

  /// Computes the tables of values anew from all counts. Costs a few microseconds for each class in use.
  void refresh();

  /// Returns per second; of no absolute meaning, but comparable between classes. By the last refresh.
  float value(size_t of_class, uint64_t age) const {
    const float* known = values_[of_class];
    return known ? known[static_cast<size_t>(age_bins::of(age))] : broader_->value(of_class, age);
  }

  /// Uses that reached each bin without a return, and returns in it: what the estimate is made of.
  bins reached(size_t of_class) const;
  const bins& returns(size_t of_class) const { return known(of_class).returns; }
  /// The chance of a return in each bin, given that it was reached. By the last refresh.
  const bins& chance(size_t of_class) const;

  /// Classes that had uses, and their pools: the others take 32 bytes each and no time.
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
  void end(size_t of_class, uint64_t time, uint64_t now, bool by_return);
  void forget_the_past();
  void refresh_leaning(std::vector<counts>& each);

  std::vector<size_t> pool_of_;
  const survival_model* broader_;
  std::vector<std::unique_ptr<learned>> classes_; ///< null until it is in use
  std::unique_ptr<learned> general_;              ///< all classes together; counts nothing
  std::vector<const float*> values_; ///< of the class, or of its pool, or of all; null: see `broader_`
  size_t in_use_ = 0;
  open_ages open_;
  double ended_ = 0;
};

} // namespace terrace

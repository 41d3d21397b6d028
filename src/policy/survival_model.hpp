// How long until chunks of a class are used again, and what it is worth to wait.
#pragma once

#include "policy/open_ages.hpp"

#include <array>
#include <cstdint>
#include <vector>

namespace terrace {

/// Learns from *uses*. A use is open until the next use of the same entry (a *return*, at some age), or until the entry
/// is forgotten. Uses that are still open, or were forgotten, tell that no return came up to their age: right-censored
/// data, for which the Kaplan-Meier estimate (Kaplan, Meier 1958) takes in each bin of age the share of returns among
/// the uses that reached it. Sparse classes lean on all classes together, scaled by one factor each (proportional hazards,
/// Cox 1972).
///
/// A class may be a *pool* of others: its estimate is made of its own uses and of theirs, and theirs lean on it instead
/// of on all. That is the class of uses of which less is known yet: they are worth what the mixture is worth.
///
/// The value of keeping an entry of class c and age a is its Gittins index (Gittins 1979; for caches, Aalto et al. 2009
/// give the form for a hazard that rises and falls): the most returns to be had per second of waiting, over all times
/// to wait.
class survival_model {
 public:
  using bins = std::array<double, age_bins::count>;

  /// One class for each number, which is that of its pool; a class in no pool, and a pool, name themselves (asserted).
  explicit survival_model(std::vector<size_t> pool_of);

  /// `time` in ticks, as in use_clock::ticks.
  void opened(size_t of_class, uint64_t time) { open_.add(of_class, time, 1); }
  /// The next use came, at `now`.
  void returned(size_t of_class, uint64_t time, uint64_t now);
  void forgotten(size_t of_class, uint64_t time, uint64_t now);
  void reclassified(size_t from, size_t to, uint64_t time);

  void advance(uint64_t now) { open_.advance(now); }

  /// Computes the table of values anew from all counts.
  void refresh();

  /// Returns per second; of no absolute meaning, but comparable between classes. By the last refresh.
  float value(size_t of_class, uint64_t age) const {
    return values_[of_class * age_bins::count + static_cast<size_t>(age_bins::of(age))];
  }

  /// Uses that reached each bin without a return, and returns in it: what the estimate is made of.
  bins reached(size_t of_class) const;
  const bins& returns(size_t of_class) const { return classes_[of_class].returns; }
  /// The chance of a return in each bin, given that it was reached. By the last refresh.
  const bins& chance(size_t of_class) const { return classes_[of_class].chance; }

  size_t bytes() const;

 private:
  struct class_counts {
    bins returns{};
    bins ended{}; ///< uses that ended in the bin, by a return or forgotten
    bins chance{};
  };

  void forget_the_past();

  std::vector<size_t> pool_of_;
  std::vector<class_counts> classes_;
  open_ages open_;
  std::vector<float> values_;
  double ended_ = 0;
};

} // namespace terrace

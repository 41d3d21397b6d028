// The value of keeping an entry until it becomes known which of several outcomes it has.
#pragma once

#include "policy/age_bins.hpp"

#include <array>
#include <cstddef>
#include <span>

namespace terrace::foresight {

/// One of the outcomes that a use may turn out to have.
struct outcome {
  double weight = 0; ///< how often uses had it
  const std::array<double, age_bins::count>* chance =
      nullptr; ///< the probability of a return in each bin, given that the bin was reached
};

/// The time until the outcome becomes known.
struct delay {
  double seconds = 0;
  size_t bin = 0; ///< the bin of that age
};

/// Returns the Gittins index of a use that is kept until its outcome is known, and afterwards only as long as keeping
/// it pays. This is the highest price per second at which keeping it still pays, if all outcomes pay for the delay and
/// afterwards only those pay that are worth keeping. The index of the mixture (`least`, the smallest result) would keep
/// either all outcomes or none. It is found by Dinkelbach's iteration (1967), to one percent.
double value(std::span<const outcome> outcomes, delay until_known, double least);

} // namespace terrace::foresight

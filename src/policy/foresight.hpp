// The value of keeping what is about to become known to be one thing or another.
#pragma once

#include "policy/age_bins.hpp"

#include <array>
#include <cstddef>
#include <span>

namespace terrace::foresight {

/// One thing that a use may turn out to be.
struct outcome {
  double weight = 0; ///< how often it was that
  const std::array<double, age_bins::count>* chance =
      nullptr; ///< of a return in each bin, given that it was reached
};

/// When it becomes known.
struct delay {
  double seconds = 0;
  size_t bin = 0; ///< of that age
};

/// The Gittins index of a use that is kept until it is known what it is, and then only as long as that pays: the
/// highest price per second at which keeping it still pays, if it is paid for the delay by all outcomes and from then
/// on by those that are worth it. The index of the mixture (`least`, the smallest result) would keep either all
/// outcomes or none. Found by Dinkelbach's iteration (1967), to one percent.
double value(std::span<const outcome> outcomes, delay until_known, double least);

} // namespace terrace::foresight

// The figures of `scaling` as a plot.
#pragma once

#include "bench/harness.hpp"

#include <string>
#include <vector>

namespace terrace::bench {

/// An SVG document: the ratio of each figure named `scaling_WHAT_WORKERS` to its limit, by the number of workers, a line for
/// each WHAT. Empty if there are no such figures, or not of the same numbers of workers.
std::string to_scaling_plot(const std::vector<figure>& figures);

} // namespace terrace::bench

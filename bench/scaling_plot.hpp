// Plots the figures of `scaling`.
#pragma once

#include "bench/harness.hpp"

#include <string>
#include <vector>

namespace terrace::bench {

/// Returns an SVG document: the ratio of each figure named `scaling_WHAT_WORKERS` to its limit, by the number
/// of workers, with a line for each WHAT. Empty if there are no such figures, or if their numbers of workers
/// differ.
std::string to_scaling_plot(const std::vector<figure>& figures);

} // namespace terrace::bench

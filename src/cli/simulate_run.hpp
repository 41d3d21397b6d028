// The cells of a simulation, policy by capacity by seed, each on one thread.
#pragma once

#include "cli/failure.hpp"
#include "cli/interruption.hpp"
#include "simulate/one_tier_cache.hpp"

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace terrace::cli {

struct simulated_cell {
  size_t policy = 0;   ///< of simulate_plan::policies
  size_t capacity = 0; ///< of simulate_plan::shapes
  simulate::cache_counts counts;
  double seconds = 0; ///< of processor time
};

struct simulate_plan {
  std::vector<std::string> policies; ///< names that the registry knows
  std::vector<simulate::cache_shape> shapes;
};

/// Runs every cell on `jobs` threads; the answer is in the order of the plan, capacities within policies. Shorter
/// when interrupted. `advanced` hears of chunk accesses as they are served, from any thread.
std::vector<simulated_cell> run_cells(const simulate::workload& of, const simulate_plan& plan, size_t jobs,
                                      const interruption& stop,
                                      const std::function<void(uint64_t)>& advanced);

} // namespace terrace::cli

// Runs the cells of a simulation, policy by capacity, each on one thread.
#pragma once

#include "cli/console.hpp"
#include "cli/failure.hpp"
#include "cli/simulate/tier_cache.hpp"
#include "cli/simulate/workload.hpp"
#include "cli/trace.hpp"

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace terrace::cli {

// Converts a trace into the chunks that a daemon would see.

/// Treats the traces as requests of several spaces to one daemon, in order of time. Every trace begins at the
/// same time.
trace merge_traces(std::vector<trace> several);

/// Divides each request into whole chunks of `chunk_tokens`, a multiple of the trace's blocks or a fraction
/// of one; the rest is in no chunk. Parts of a block that is not full are treated as unique to the request,
/// because the trace does not say who shares them.
outcome<simulate::workload> to_workload(const trace& requests, uint32_t chunk_tokens);

struct simulated_cell {
  size_t policy = 0;   ///< index in simulate_plan::policies
  size_t capacity = 0; ///< index in simulate_plan::shapes
  /// One run per seed, but only one if the first two are equal, because sampling does not matter then.
  std::vector<simulate::cache_counts> runs;
  double seconds = 0;  ///< processor time of all runs
  uint64_t served = 0; ///< chunk accesses in all runs

  /// Mean of one count over the runs.
  double mean(uint64_t simulate::cache_counts::*count) const;
};

struct second_tier {
  double times = 8;        ///< capacity of the disk as a multiple of host memory
  std::string disk_policy; ///< empty: the policy of host memory
  admission_rule admission = admission_rule::beats_victim;
  simulate::tier_writes writes = simulate::tier_writes::on_use;
};

struct simulate_plan {
  std::vector<std::string> policies; ///< names that the registry knows
  std::vector<simulate::cache_shape> shapes;
  std::optional<second_tier> disk;
  uint64_t seeds = 1;
  uint64_t token_ns = 0; ///< see tracker_options
};

/// Chunks on disk for a host memory of this shape.
uint64_t disk_chunks(const second_tier& disk, const simulate::cache_shape& host);

/// Runs every cell on `jobs` threads; the result is in the order of the plan, capacities within policies.
/// Empty if interrupted. `advanced` is called with chunk accesses as they are simulated (or skipped), from
/// any thread: each cell has those of the workload per seed.
std::vector<simulated_cell> run_cells(const simulate::workload& trace, const simulate_plan& plan, size_t jobs,
                                      const interruption& stop,
                                      const std::function<void(uint64_t)>& advanced);

} // namespace terrace::cli

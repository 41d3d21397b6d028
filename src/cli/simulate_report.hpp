// The result of a simulation as text, JSON and plot.
#pragma once

#include "cli/json.hpp"
#include "cli/simulate/line_plot.hpp"
#include "cli/simulate_run.hpp"

#include <string>
#include <vector>

namespace terrace::cli {

struct simulated_capacity {
  std::string label;
  uint64_t arena_bytes = 0;
  uint64_t chunks = 0;
  uint64_t disk_chunks = 0;      ///< 0: no disk
  uint64_t belady_hits = 0;      ///< chunks hit by the optimal policy, in both tiers together
  uint64_t belady_host_hits = 0; ///< chunks hit by the optimal policy in host memory alone
};

struct simulate_summary {
  std::string trace; ///< file name of the trace
  size_t requests = 0;
  uint64_t input_tokens = 0;
  uint64_t accesses = 0;
  uint64_t distinct_chunks = 0;
  uint64_t infinite_hits = 0;
  uint32_t chunk_tokens = 0;
  uint64_t object_bytes = 0;
  std::string disk;                           ///< description of the second tier; empty: none
  std::vector<simulated_capacity> capacities; ///< ascending
  std::vector<std::string> policies;
  std::vector<simulated_cell> cells; ///< ordered by policy, then by capacity

  const simulated_cell& cell(size_t policy, size_t capacity) const {
    return cells[policy * capacities.size() + capacity];
  }
  /// Returns the fraction of all input tokens in this many chunks.
  double hit_ratio(double chunks) const;
  /// Chunk accesses per second of processor time, over all capacities.
  double accesses_per_second(size_t policy) const;
};

std::string format_summary(const simulate_summary& summary);
json to_json(const simulate_summary& summary);
simulate::line_plot to_plot(const simulate_summary& summary);

} // namespace terrace::cli

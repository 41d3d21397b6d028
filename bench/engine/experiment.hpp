// The published experiment on a prefix cache: 64 requests, 54,784 prompt tokens and 1,024 generated ones, in
// three schedules.
//
// The published cache finds whole prompts only, and its gain in prefill (4.3 to 4.4 times) is possible with
// at most 14 different prompts of equal length. This experiment has that many, of 856 tokens each.
#pragma once

#include "bench/engine/engine.hpp"

#include <string_view>

namespace terrace::bench {

constexpr size_t experiment_requests = 64;
constexpr size_t experiment_prompts = 14;
constexpr size_t experiment_prompt_tokens = 54'784; ///< tokens of all requests
constexpr size_t experiment_generated_tokens = 1'024;

enum class schedule {
  naive,   ///< one request after the other, without the cache
  offline, ///< all requests exist from the beginning, and those with equal prompts are adjacent
  online,  ///< a request arrives every second step
};
std::string_view name_of(schedule which);

/// Returns the requests in the order of their arrival.
std::vector<inference> requests_of(schedule which, const model_shape& shape);

/// Returns the blocks for as many requests as run at a time.
size_t blocks_of_experiment();

/// Runs the experiment from beginning to end. `cache` may be null.
engine_times run_experiment(schedule which, language_model& model, paged_kv& kv, prefix_cache* cache);

} // namespace terrace::bench

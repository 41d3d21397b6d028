#include "cli/trace_statistics.hpp"

#include "cli/random_source.hpp"
#include "cli/trace_generator.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace terrace::cli {

namespace {

constexpr uint64_t window_ms = 10'000;
constexpr uint64_t no_parent = ~0ULL;

double dispersion(const std::vector<uint64_t>& timestamps_ms) {
  auto [first, last] = std::minmax_element(timestamps_ms.begin(), timestamps_ms.end());
  size_t windows = (*last - *first) / window_ms; // the last window is incomplete and would look too empty
  constexpr size_t windows_max = 1U << 24;
  if (windows < 2 || windows > windows_max)
    return 0;
  std::vector<uint32_t> counts(windows);
  double mean = 0, square = 0;
  for (uint64_t at : timestamps_ms)
    if (size_t window = (at - *first) / window_ms; window < windows)
      ++counts[window];
  for (uint32_t count : counts) {
    mean += count;
    square += static_cast<double>(count) * count;
  }
  mean /= static_cast<double>(windows);
  square /= static_cast<double>(windows);
  return mean > 0 ? (square - mean * mean) / mean : 0;
}

} // namespace

double trace_statistics::infinite_hit_ratio() const {
  return input_tokens == 0
             ? 0
             : static_cast<double>(hit_blocks * block_tokens) / static_cast<double>(input_tokens);
}

trace_statistics measure(const trace& requests) {
  trace_statistics sum;
  std::unordered_map<uint64_t, uint64_t> parent_of; // parent of each whole block seen
  std::unordered_set<uint64_t> prefixes; // a block is another one behind another prefix, as in a replay
  std::vector<uint64_t> timestamps, inputs, outputs, turns;
  for (const trace_request& request : requests.requests) {
    ++sum.requests;
    sum.block_tokens = request.block_tokens;
    sum.input_tokens += request.input_length;
    sum.output_tokens += request.output_length;
    timestamps.push_back(request.timestamp_ms);
    inputs.push_back(request.input_length);
    outputs.push_back(request.output_length);
    uint64_t parent = no_parent;
    uint64_t prefix = 0;
    for (size_t i = 0; i < request.full_blocks(); ++i) {
      prefix = splitmix64(prefix ^ splitmix64(request.hash_ids[i] + splitmix64_step));
      bool is_new = prefixes.insert(prefix).second; // then all longer ones of this request are new
      sum.hit_blocks += !is_new;
      sum.distinct_blocks += is_new;
      auto [known, first_time] = parent_of.try_emplace(request.hash_ids[i], parent);
      sum.contradictions += !first_time && known->second != parent;
      parent = request.hash_ids[i];
      ++sum.blocks;
    }
  }
  for (size_t conversation : conversations_of(requests)) {
    turns.resize(std::max(turns.size(), conversation + 1));
    ++turns[conversation];
  }
  sum.conversations = turns.size();
  if (!timestamps.empty()) {
    auto [first, last] = std::minmax_element(timestamps.begin(), timestamps.end());
    sum.seconds = static_cast<double>(*last - *first) / 1000;
    sum.burstiness = dispersion(timestamps);
  }
  sum.input_length = percentiles_of(std::move(inputs));
  sum.output_length = percentiles_of(std::move(outputs));
  sum.turns = percentiles_of(std::move(turns));
  return sum;
}

percentiles percentiles_of(std::vector<uint64_t> samples) {
  percentiles p;
  if (samples.empty())
    return p;
  std::sort(samples.begin(), samples.end());
  auto rank = [&](uint64_t percent) { return samples[(samples.size() * percent + 99) / 100 - 1]; };
  double sum = 0;
  for (uint64_t sample : samples)
    sum += static_cast<double>(sample);
  p.count = samples.size();
  p.mean = sum / static_cast<double>(samples.size());
  p.p50 = rank(50);
  p.p90 = rank(90);
  p.p99 = rank(99);
  p.max = samples.back();
  return p;
}

} // namespace terrace::cli

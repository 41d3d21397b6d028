#include "cli/simulate_workload.hpp"

#include "cli/random_source.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace terrace::cli {

namespace {

/// A chunk of whole blocks has the id of its last one, which names the prefix up to there. A part of a block has the
/// block's id and its place.
std::vector<uint64_t> chunk_ids(const trace_request& request, uint32_t chunk_tokens) {
  size_t named_tokens = std::min<size_t>(request.input_length, request.hash_ids.size() * trace_block_tokens);
  size_t chunks = named_tokens / chunk_tokens; // the id of a block that is not full may be missing
  std::vector<uint64_t> ids(chunks);
  for (size_t i = 0; i < chunks; ++i) {
    size_t last_token = (i + 1) * chunk_tokens - 1;
    uint64_t block = request.hash_ids[last_token / trace_block_tokens];
    if (request.space > 1)
      block = splitmix64(block + splitmix64_step * (uint64_t{request.space} << 32));
    ids[i] = chunk_tokens >= trace_block_tokens
                 ? block
                 : splitmix64(block + splitmix64_step * (1 + last_token % trace_block_tokens));
  }
  return ids;
}

} // namespace

trace merge_traces(std::vector<trace> several) {
  trace all;
  uint32_t space = 0;
  for (trace& each : several) {
    ++space;
    uint64_t begin_ms = each.requests.empty() ? 0 : each.requests.front().timestamp_ms;
    uint64_t now_ms = begin_ms;
    for (trace_request& request : each.requests) {
      now_ms = std::max(now_ms, request.timestamp_ms);
      request.timestamp_ms = now_ms - begin_ms;
      request.space = space;
      all.requests.push_back(std::move(request));
    }
  }
  std::stable_sort(all.requests.begin(), all.requests.end(),
                   [](const auto& a, const auto& b) { return a.timestamp_ms < b.timestamp_ms; });
  return all;
}

outcome<simulate::workload> to_workload(const trace& requests, uint32_t chunk_tokens) {
  if (chunk_tokens == 0 || (chunk_tokens % trace_block_tokens != 0 && trace_block_tokens % chunk_tokens != 0))
    return bad_usage(
        fmt::format("--chunk-tokens: expected a multiple of {0} (the trace's blocks) or a whole part of "
                    "it such as {1}, found {2}",
                    trace_block_tokens, trace_block_tokens / 2, chunk_tokens));
  simulate::workload made(chunk_tokens);
  uint64_t first_ms = requests.requests.empty() ? 0 : requests.requests.front().timestamp_ms;
  uint64_t now_ms = first_ms; // of a daemon, whose clock never goes back
  for (const trace_request& request : requests.requests) {
    simulate::request_facts facts;
    now_ms = std::max(now_ms, request.timestamp_ms);
    facts.at_ns = (now_ms - first_ms) * 1'000'000;
    facts.input_tokens = request.input_length;
    facts.output_tokens = request.output_length;
    facts.reason = request.reason;
    facts.session_closed = request.session_closed;
    if (request.think_ms)
      facts.think_time_ns = uint64_t{*request.think_ms} * 1'000'000;
    facts.session = request.session_number();
    facts.turn = request.turn;
    facts.space = request.space;
    made.add(facts, chunk_ids(request, chunk_tokens));
  }
  return made;
}

} // namespace terrace::cli

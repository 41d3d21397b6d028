#include "cli/simulate_workload.hpp"

#include "cli/chunk_ids.hpp"
#include "cli/random_source.hpp"

#include <algorithm>

namespace terrace::cli {

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
  if (auto fits = check_chunk_tokens(chunk_tokens); !fits)
    return tl::unexpected(fits.error());
  simulate::workload made(chunk_tokens);
  uint64_t first_ms = requests.requests.empty() ? 0 : requests.requests.front().timestamp_ms;
  uint64_t now_ms = first_ms; // clock of a daemon, which never goes back
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

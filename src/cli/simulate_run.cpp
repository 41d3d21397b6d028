#include "cli/simulate_run.hpp"

#include "cli/random_source.hpp"
#include "cli/trace.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <ctime>
#include <thread>

namespace terrace::cli {

namespace {

constexpr uint64_t report_accesses = 16'384;

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

struct run_context {
  const simulate::workload& trace;
  const simulate_plan& plan;
  const interruption& stop;
  const std::function<void(uint64_t)>& advanced;
};

/// Returns nullopt if interrupted.
std::optional<simulate::cache_counts> serve_all(const run_context& with, simulate::tier_cache cache) {
  uint64_t unreported = 0;
  for (const simulate::request& next : with.trace.requests()) {
    cache.serve(next);
    unreported += next.chunks;
    if (unreported < report_accesses)
      continue;
    with.advanced(std::exchange(unreported, 0));
    if (with.stop.requested())
      return std::nullopt;
  }
  with.advanced(unreported);
  return cache.counts();
}

std::optional<simulate::cache_counts> run_once(const run_context& with, const simulated_cell& cell,
                                               uint64_t seed) {
  const simulate::cache_shape& host = with.plan.shapes[cell.capacity];
  simulate::tracker_options options;
  options.policies = {with.plan.policies[cell.policy]};
  options.seed = seed;
  options.object_bytes = host.object_bytes;
  options.token_ns = with.plan.token_ns;
  if (!with.plan.disk)
    return serve_all(with, simulate::tier_cache(with.trace, options, host));
  const second_tier& disk = *with.plan.disk;
  options.policies.push_back(disk.disk_policy.empty() ? options.policies.front() : disk.disk_policy);
  options.remember = disk.admission == admission_rule::seen_twice;
  return serve_all(with, simulate::tier_cache(with.trace, options, host,
                                              {{disk_chunks(disk, host), disk.admission, disk.writes}}));
}

/// Returns false if interrupted.
bool run_cell(const run_context& with, simulated_cell& cell) {
  double begin = thread_seconds();
  uint64_t accesses = with.trace.accesses().size();
  for (uint64_t seed = 1; seed <= with.plan.seeds; ++seed) {
    auto counts = run_once(with, cell, seed);
    if (!counts)
      return false;
    cell.served += accesses;
    if (seed == 2 && *counts == cell.runs.front()) {
      with.advanced((with.plan.seeds - seed) * accesses);
      break;
    }
    cell.runs.push_back(*counts);
  }
  cell.seconds = thread_seconds() - begin;
  return true;
}

} // namespace

double simulated_cell::mean(uint64_t simulate::cache_counts::*count) const {
  double sum = 0;
  for (const simulate::cache_counts& run : runs)
    sum += static_cast<double>(run.*count);
  return runs.empty() ? 0 : sum / static_cast<double>(runs.size());
}

uint64_t disk_chunks(const second_tier& disk, const simulate::cache_shape& host) {
  return static_cast<uint64_t>(std::llround(disk.times * static_cast<double>(host.capacity_chunks)));
}

std::vector<simulated_cell> run_cells(const simulate::workload& trace, const simulate_plan& plan, size_t jobs,
                                      const interruption& stop,
                                      const std::function<void(uint64_t)>& advanced) {
  std::vector<simulated_cell> cells;
  for (size_t policy = 0; policy < plan.policies.size(); ++policy)
    for (size_t capacity = 0; capacity < plan.shapes.size(); ++capacity)
      cells.push_back({policy, capacity, {}, 0, 0});
  run_context with{trace, plan, stop, advanced};
  std::atomic<size_t> next{0};
  std::atomic<bool> whole{true};
  auto work = [&] {
    for (size_t i = next++; i < cells.size() && whole; i = next++)
      if (!run_cell(with, cells[i]))
        whole = false;
  };
  {
    std::vector<std::jthread> threads;
    for (size_t i = 1; i < std::min(jobs, cells.size()); ++i)
      threads.emplace_back(work);
    work();
  }
  if (!whole)
    cells.clear();
  return cells;
}

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
  uint32_t block_tokens =
      requests.requests.empty() ? trace_block_tokens : requests.requests.front().block_tokens;
  if (auto fits = check_chunk_tokens(chunk_tokens, block_tokens); !fits)
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

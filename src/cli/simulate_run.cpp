#include "cli/simulate_run.hpp"

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
  const simulate::workload& of;
  const simulate_plan& plan;
  const interruption& stop;
  const std::function<void(uint64_t)>& advanced;
};

/// Returns nullopt if interrupted.
std::optional<simulate::cache_counts> serve_all(const run_context& with, simulate::tier_cache cache) {
  uint64_t unreported = 0;
  for (const simulate::request& next : with.of.requests()) {
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
    return serve_all(with, simulate::tier_cache(with.of, options, host));
  const second_tier& disk = *with.plan.disk;
  options.policies.push_back(disk.disk_policy.empty() ? options.policies.front() : disk.disk_policy);
  options.remember = disk.admission == admission_rule::seen_twice;
  return serve_all(with, simulate::tier_cache(with.of, options, host,
                                              {{disk_chunks(disk, host), disk.admission, disk.writes}}));
}

/// Returns false if interrupted.
bool run_cell(const run_context& with, simulated_cell& cell) {
  double begin = thread_seconds();
  uint64_t accesses = with.of.accesses().size();
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

std::vector<simulated_cell> run_cells(const simulate::workload& of, const simulate_plan& plan, size_t jobs,
                                      const interruption& stop,
                                      const std::function<void(uint64_t)>& advanced) {
  std::vector<simulated_cell> cells;
  for (size_t policy = 0; policy < plan.policies.size(); ++policy)
    for (size_t capacity = 0; capacity < plan.shapes.size(); ++capacity)
      cells.push_back({policy, capacity, {}, 0, 0});
  run_context with{of, plan, stop, advanced};
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

} // namespace terrace::cli

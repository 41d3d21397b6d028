#include "cli/simulate_run.hpp"

#include <algorithm>
#include <atomic>
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

/// False when interrupted.
bool run_cell(const simulate::workload& of, const simulate_plan& plan, simulated_cell& cell,
              const interruption& stop, const std::function<void(uint64_t)>& advanced) {
  auto policy = make_eviction_policy(plan.policies[cell.policy]).value(); // the command checked the names
  double begin = thread_seconds();
  simulate::one_tier_cache cache(of, std::move(policy), plan.shapes[cell.capacity]);
  uint64_t unreported = 0;
  for (const simulate::request& next : of.requests()) {
    cache.serve(next);
    unreported += next.chunks;
    if (unreported < report_accesses)
      continue;
    advanced(std::exchange(unreported, 0));
    if (stop.requested())
      return false;
  }
  advanced(unreported);
  cell.counts = cache.counts();
  cell.seconds = thread_seconds() - begin;
  return true;
}

} // namespace

std::vector<simulated_cell> run_cells(const simulate::workload& of, const simulate_plan& plan, size_t jobs,
                                      const interruption& stop,
                                      const std::function<void(uint64_t)>& advanced) {
  std::vector<simulated_cell> cells;
  for (size_t policy = 0; policy < plan.policies.size(); ++policy)
    for (size_t capacity = 0; capacity < plan.shapes.size(); ++capacity)
      cells.push_back({policy, capacity, {}, 0});
  std::atomic<size_t> next{0};
  std::atomic<bool> whole{true};
  auto work = [&] {
    for (size_t i = next++; i < cells.size() && whole; i = next++)
      if (!run_cell(of, plan, cells[i], stop, advanced))
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

#include "daemon/limits.hpp"

#include "base/random_id.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <system_error>
#include <thread>

namespace terrace {

namespace {

// Descriptors for standard streams, signals, rings, notification, the metrics server, and opening files one
// after another.
constexpr uint64_t own_descriptors = 24;
constexpr uint64_t descriptors_for_clients = 8;
// Threads: the main thread, timers, the metrics server, and threads that block now and then.
constexpr uint64_t own_threads = 8;

uint64_t limit_of(__rlimit_resource what) {
  rlimit limit{};
  if (::getrlimit(what, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return UINT64_MAX;
  return limit.rlim_cur;
}

/// The number of further threads, at most `count`, that this process can have, and the reason if it is lower.
struct thread_trial {
  uint64_t started = 0;
  std::string why;
};

thread_trial try_threads(uint64_t count) {
  std::mutex mutex;
  std::condition_variable changed;
  bool over = false;
  std::vector<std::thread> all;
  thread_trial trial;
  try {
    for (; trial.started < count; ++trial.started)
      all.emplace_back([&] {
        std::unique_lock guard(mutex);
        changed.wait(guard, [&] { return over; });
      });
  } catch (const std::system_error& problem) {
    trial.why = problem.code().message();
  }
  {
    std::lock_guard guard(mutex);
    over = true;
  }
  changed.notify_all();
  for (std::thread& one : all)
    one.join();
  return trial;
}

std::string limited_to(uint64_t bytes) { return std::to_string(bytes) + " bytes"; }

result<void> check_file_size(uint64_t needed, const char* what) {
  uint64_t limit = limit_of(RLIMIT_FSIZE);
  if (needed <= limit)
    return {};
  return fail(errc::unsupported, "the limit on file sizes is " + limited_to(limit) + ", and " + what +
                                     " has files of " + limited_to(needed) +
                                     "; raise RLIMIT_FSIZE (ulimit -f, LimitFSIZE= in systemd)");
}

} // namespace

resource_needs needs_of(const settings& with, const environment& env) {
  resource_needs needs;
  uint64_t workers = with.daemon.workers == 0 ? env.default_workers() : with.daemon.workers;
  uint64_t copiers = with.copier.threads == 0 ? env.default_copiers() : with.copier.threads;
  needs.descriptors = own_descriptors + descriptors_for_clients + 4 * workers + with.listen.size();
  needs.threads = own_threads + workers + copiers;
  for (const group_options& group : with.groups()) {
    needs.descriptors += (group.host_bytes + with.host.segment_bytes - 1) / with.host.segment_bytes;
    needs.host_file_bytes =
        std::max(needs.host_file_bytes, std::min(group.host_bytes, with.host.segment_bytes));
    needs.threads += with.shadow.policies.empty() ? 0 : 1;
    if (group.disk_bytes == 0)
      continue;
    uint64_t paths = group.disk_files.size();
    needs.descriptors += 2 * paths;
    // Each path has a thread that opens it, and another thread prepares the metadata.
    needs.threads += 2 + paths;
    needs.disk_file_bytes = std::max(needs.disk_file_bytes, group.disk_bytes / paths);
  }
  return needs;
}

void raise_limits() {
  for (auto which : {RLIMIT_NOFILE, RLIMIT_NPROC, RLIMIT_MEMLOCK}) {
    rlimit limit{};
    if (::getrlimit(which, &limit) != 0 || limit.rlim_cur == limit.rlim_max)
      continue;
    limit.rlim_cur = limit.rlim_max;
    (void) ::setrlimit(which, &limit);
  }
  std::signal(SIGXFSZ, SIG_IGN);
}

result<void> check_limits(const resource_needs& needs) {
  if (auto random = probe_random(); !random)
    return random;
  if (auto fits = check_file_size(needs.host_file_bytes, "host memory"); !fits)
    return fits;
  if (auto fits = check_file_size(needs.disk_file_bytes, "the disk tier"); !fits)
    return fits;
  if (uint64_t limit = limit_of(RLIMIT_NOFILE); limit < needs.descriptors)
    return fail(errc::unsupported,
                "the limit on open files is " + std::to_string(limit) + ", and this configuration needs " +
                    std::to_string(needs.descriptors) +
                    " and two for each client; raise RLIMIT_NOFILE (ulimit -n, LimitNOFILE= in systemd)");
  if (auto trial = try_threads(needs.threads); trial.started < needs.threads)
    return fail(errc::unsupported,
                "only " + std::to_string(trial.started) + " of " + std::to_string(needs.threads) +
                    " threads could be started (" + trial.why +
                    "); raise RLIMIT_NPROC (ulimit -u, LimitNPROC= in systemd) or the cgroup's "
                    "pids.max (TasksMax= in systemd)");
  return {};
}

} // namespace terrace

#include "daemon/limits.hpp"

#include "base/random_id.hpp"
#include "daemon/settings_units.hpp"

#include <algorithm>
#include <charconv>
#include <condition_variable>
#include <csignal>
#include <fstream>
#include <mutex>
#include <optional>
#include <sstream>
#include <sys/resource.h>
#include <system_error>
#include <thread>
#include <unistd.h>

namespace terrace {

namespace {

// Descriptors for standard streams, signals, rings, notification, the metrics server, and opening files one
// after another.
constexpr uint64_t own_descriptors = 24;
constexpr uint64_t descriptors_for_clients = 8;
// Threads: the main thread, timers, the metrics server, and threads that block now and then.
constexpr uint64_t own_threads = 8;
constexpr uint64_t connections_to_store = 3;

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

result<void> check_file_size(uint64_t needed, const char* text) {
  uint64_t limit = limit_of(RLIMIT_FSIZE);
  if (needed <= limit)
    return {};
  return fail(errc::unsupported, "the limit on file sizes is " + limited_to(limit) + ", and " + text +
                                     " has files of " + limited_to(needed) +
                                     "; raise RLIMIT_FSIZE (ulimit -f, LimitFSIZE= in systemd)");
}

} // namespace

resource_needs needs_of(const settings& with, const environment& env) {
  resource_needs needs;
  uint64_t workers = with.daemon.workers == 0 ? env.default_workers() : with.daemon.workers;
  workers += env.transfer_workers(with.remote.size());
  uint64_t copiers = with.copier.threads == 0 ? env.default_copiers() : with.copier.threads;
  needs.descriptors = own_descriptors + descriptors_for_clients + 4 * workers + with.listen.size() +
                      connections_to_store * with.remote.size();
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

namespace {

/// Version 1 writes "no limit" as the largest number of whole pages.
constexpr uint64_t no_limit_from = uint64_t{1} << 62;

std::optional<uint64_t> number_in(const std::string& path) {
  std::ifstream file(path);
  std::string text;
  if (!std::getline(file, text))
    return std::nullopt;
  uint64_t value = 0;
  auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc() || value >= no_limit_from) // the file says "max"
    return std::nullopt;
  return value;
}

std::optional<uint64_t> total_memory(const std::string& root) {
  std::ifstream file(root + "/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    uint64_t kibibytes = 0;
    if (words >> name >> kibibytes && name == "MemTotal:")
      return kibibytes * kibibyte;
  }
  return std::nullopt;
}

/// Adds the limits of a cgroup and of those that contain it. In a container the path may be that of the host,
/// of which only the container's own cgroup is visible, at the top.
void add_cgroups(std::vector<memory_limit>& limits, const std::string& top, std::string path,
                 const std::string& file) {
  for (;;) {
    if (path == "/")
      path.clear();
    if (auto bytes = number_in(top + path + "/" + file))
      limits.push_back({*bytes, "the cgroup " + (path.empty() ? "/" : path) + " (" + file + ")"});
    if (path.empty())
      return;
    path.erase(path.rfind('/'));
  }
}

} // namespace

std::vector<memory_limit> memory_limits(const std::string& root) {
  std::vector<memory_limit> limits;
  if (auto bytes = total_memory(root))
    limits.push_back({*bytes, "the machine (MemTotal)", true});
  // The file has lines of number:controllers:path; version 2 has the number 0 and no controllers.
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos || line[second + 1] != '/')
      continue;
    std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    std::string path = line.substr(second + 1);
    if (controllers == ",,")
      add_cgroups(limits, root + "/sys/fs/cgroup", path, "memory.max");
    else if (controllers.find(",memory,") != std::string::npos)
      add_cgroups(limits, root + "/sys/fs/cgroup/memory", path, "memory.limit_in_bytes");
  }
  return limits;
}

result<void> fits_in_memory(const host_options& host, const std::vector<memory_limit>& limits) {
  const memory_limit* least = nullptr;
  for (const memory_limit& each : limits)
    if ((each.of_machine || !host.huge_pages) && (least == nullptr || each.bytes < least->bytes))
      least = &each;
  if (least == nullptr || host.bytes <= least->bytes)
    return {};
  return fail(errc::bad_request,
              "host.bytes is " + format_bytes(host.bytes) + ", but " + least->whose + " has " +
                  std::to_string(least->bytes >> 20) +
                  "MiB of memory; lower host.bytes to what the engines and the daemon itself "
                  "leave of that");
}

} // namespace terrace

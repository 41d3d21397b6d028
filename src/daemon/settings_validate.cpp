// What must hold between the options of a struct, and what the bounds of the table cannot say.
#include "actors/supervision/group_plan.hpp"
#include "base/numeric_address.hpp"
#include "daemon/settings.hpp"
#include "daemon/settings_units.hpp"
#include "gpu/process/device_child.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <sched.h>
#include <set>
#include <sys/un.h>
#include <unistd.h>

namespace terrace {
namespace {

using problems = std::vector<option_problem>;

constexpr size_t disk_paths_max = 64;

/// An absolute path without a NUL, where the kernel would cut it.
bool is_absolute(std::string_view path) {
  return path.starts_with('/') && path.find('\0') == std::string_view::npos;
}

bool is_group_name(std::string_view name) {
  return !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  });
}

/// The size behind "paged", whose name is already checked; `most`: of a slot.
void check_allocator(problems& found, const std::string& option, const std::string& allocator,
                     uint64_t most) {
  auto parsed = parse_allocator(allocator);
  if (!parsed) {
    std::string wrong = parsed.error().text;
    const std::string meant = take_suggestion(wrong);
    found.push_back(
        {option, "is \"" + allocator + "\", " + wrong, "a size behind \"paged\", and behind no other name",
         meant.empty() ? "write \"paged:4MiB\" with the size of your largest object, rounded up to 4KiB"
                       : "write \"paged:" + meant + "\""});
    return;
  }
  if (uint64_t slot = parsed->slot_bytes; slot > most || slot % page_bytes != 0)
    found.push_back({option, "has slots of " + format_bytes(slot),
                     "slots of 4KiB to " + format_bytes(most) + ", a multiple of 4KiB",
                     slot > most ? "lower it" : "round it"});
}

} // namespace

problems listen_options::contradictions() const {
  problems found;
  constexpr size_t path_max = sizeof(sockaddr_un::sun_path) - 1;
  if (!is_absolute(path))
    found.push_back(
        {"listen.path", "is \"" + path + "\"", "an absolute path", "begin it with '/', or write \"auto\""});
  else if (path.size() > path_max)
    found.push_back({"listen.path", "has " + std::to_string(path.size()) + " bytes",
                     "at most " + std::to_string(path_max) + ", the kernel's limit for sockets",
                     "choose a shorter path"});
  if (!is_group_name(group))
    found.push_back(
        {"listen.group", "is \"" + group + "\"", "1 to 64 of a-z, 0-9, '-' and '_'", "rename the group"});
  return found;
}

bool listen_options::admits(uint32_t uid, uint32_t gid, uint32_t own_uid) const {
  if (uids.empty() && gids.empty())
    return uid == own_uid || uid == 0;
  return std::find(uids.begin(), uids.end(), uid) != uids.end() ||
         std::find(gids.begin(), gids.end(), gid) != gids.end();
}

uint32_t connection_options::credit_requests() const {
  return static_cast<uint32_t>(std::min<uint64_t>(group_bytes / (4 * mebibyte), 65536));
}

uint64_t connection_options::device_staging_bytes() const {
  return std::clamp(staging_bytes / 4 / mebibyte * mebibyte, mebibyte, 16 * gibibyte);
}

uint64_t connection_options::memo_bytes() const {
  return (group_bytes - std::min<uint64_t>(group_bytes, option_values::request_bytes_min)) / 16;
}

uint64_t connection_options::credit_bytes() const {
  return std::max<uint64_t>(group_bytes / 32, option_values::request_bytes_min);
}

/// An object takes about 70 bytes, so that the leases of a connection take about a quarter of `group_bytes`.
uint32_t connection_options::lease_objects_max() const {
  return static_cast<uint32_t>(std::min<uint64_t>(group_bytes / 256, UINT32_MAX));
}

problems host_options::contradictions() const {
  problems found;
  check_allocator(found, "host.allocator", allocator, segment_bytes);
  uint32_t node = 0;
  auto [end, wrong] = std::from_chars(numa_node.data(), numa_node.data() + numa_node.size(), node);
  if (numa_node != "any" && (wrong != std::errc() || end != numa_node.data() + numa_node.size()))
    found.push_back({"host.numa_node", "is \"" + numa_node + "\"",
                     "\"any\", or the number of a node such as \"0\"",
                     "see /sys/devices/system/node/online for the nodes"});
  if (huge_pages && bytes % huge_page_bytes != 0)
    found.push_back({"host.bytes", "is " + format_bytes(bytes),
                     "a multiple of 2MiB, since host.huge_pages is true",
                     "round it to " +
                         format_bytes(std::max(huge_page_bytes, bytes / huge_page_bytes * huge_page_bytes))});
  return found;
}

problems disk_options::contradictions() const {
  problems found;
  check_allocator(found, "disk.allocator", allocator, slot_bytes_max);
  if (path.empty() || path.size() > disk_paths_max)
    found.push_back({"disk.path", "has " + std::to_string(path.size()) + " directories",
                     "1 to " + std::to_string(disk_paths_max), "list one per device, or write \"auto\""});
  for (auto one = path.begin(); one != path.end(); ++one) {
    if (!is_absolute(*one))
      found.push_back({"disk.path", "is \"" + *one + "\"", "the absolute path of a directory",
                       "begin it with '/', or write \"auto\""});
    if (std::find(path.begin(), one, *one) != one)
      found.push_back({"disk.path", "names \"" + *one + "\" twice", "another directory for each path",
                       "remove one of them"});
  }
  return found;
}

problems gpu_options::contradictions() const {
  problems found;
  if (tier_bytes == 0)
    return found;
  if (!enabled)
    found.push_back({"gpu.tier_bytes", "is set, but gpu.enabled is false", "0 without GPUs",
                     "remove it, or set enabled = true"});
  if (auto name = gpu::canonical_device_name(tier_device); !name)
    found.push_back({"gpu.tier_device", "is \"" + tier_device + "\"",
                     "the UUID of a GPU, or \"host\", with gpu.tier_bytes",
                     "name the device that has the tier; `terraced --version` lists them"});
  return found;
}

problems shadow_options::contradictions() const {
  problems found;
  if (std::set<std::string>(policies.begin(), policies.end()).size() != policies.size())
    found.push_back({"shadow.policies", "names a policy twice", "each name once", "remove one of them"});
  if (std::set<uint32_t>(capacity_percents.begin(), capacity_percents.end()).size() !=
      capacity_percents.size())
    found.push_back({"shadow.capacity_percents", "has a number twice", "each once", "remove one of them"});
  return found;
}

problems metrics_options::contradictions() const {
  problems found;
  if (!enabled())
    return found;
  auto parsed = parse_numeric_address(address);
  if (!parsed)
    found.push_back({"metrics.address", "is \"" + address + "\"", parsed.error().text,
                     "write \"127.0.0.1:9464\", \"127.0.0.1:0\" for any free port, or \"\" for no metrics"});
  if (parsed && !parsed->is_loopback() && token_file.empty())
    found.push_back({"metrics.address", "is \"" + address + "\", which other machines may reach",
                     "a metrics.token_file, because metrics contain names of models and clients",
                     "write a token into a file of mode 0600 and set metrics.token_file, or use 127.0.0.1"});
  return found;
}

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

template <class T>
std::optional<T> number(const std::string& text) {
  T value{};
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  return code == std::errc{} && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

uint32_t allowed_processors() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    return static_cast<uint32_t>(std::max(1, CPU_COUNT(&set)));
  return static_cast<uint32_t>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN))); // more than 1024 processors
}

/// systemd gives a colon-separated list if a unit requests several directories; the first is used.
std::string first_of_list(std::string list) {
  list.erase(std::min(list.find(':'), list.size()));
  return list;
}

} // namespace

environment environment::current() {
  environment env;
  env.uid = geteuid();
  env.processors = allowed_processors();
  env.runtime_directory = first_of_list(variable("RUNTIME_DIRECTORY"));
  env.state_directory = first_of_list(variable("STATE_DIRECTORY"));
  env.xdg_runtime_dir = variable("XDG_RUNTIME_DIR");
  env.xdg_state_home = variable("XDG_STATE_HOME");
  env.home = variable("HOME");
  env.notify_socket = variable("NOTIFY_SOCKET");
  // sd_watchdog_enabled(3): without WATCHDOG_PID it is meant for this process; with it, only if it is our
  // pid.
  auto pid = variable("WATCHDOG_PID");
  if (auto period = number<int64_t>(variable("WATCHDOG_USEC")); period && *period > 0)
    if (pid.empty() || number<pid_t>(pid) == getpid())
      env.watchdog = std::chrono::microseconds(*period);
  return env;
}

std::string environment::socket_path() const {
  if (!runtime_directory.empty())
    return runtime_directory + "/terrace.sock";
  if (uid == 0)
    return "/run/terrace/terrace.sock";
  if (!xdg_runtime_dir.empty())
    return xdg_runtime_dir + "/terrace.sock";
  return "/tmp/terrace-" + std::to_string(uid) + "/terrace.sock";
}

std::string environment::state_path() const {
  if (!state_directory.empty())
    return state_directory;
  if (uid == 0)
    return "/var/lib/terrace";
  if (!xdg_state_home.empty())
    return xdg_state_home + "/terrace";
  if (!home.empty())
    return home + "/.local/state/terrace";
  return "/var/tmp/terrace-" + std::to_string(uid);
}

uint32_t environment::default_workers() const { return processors <= 4 ? 1 : std::min(4U, processors / 4); }

uint32_t environment::default_copiers() const { return std::clamp(processors / 2, 2U, 8U); }

uint32_t environment::transfer_workers(size_t remotes) const {
  return static_cast<uint32_t>(std::min<size_t>(remotes, default_workers()));
}

settings default_settings(const environment& env) {
  settings defaults;
  defaults.listen.emplace_back();
  defaults.listen.back().path = env.socket_path();
  defaults.disk.path = {env.state_path()};
  return defaults;
}

} // namespace terrace

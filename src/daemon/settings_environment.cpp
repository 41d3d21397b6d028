#include "daemon/settings.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace terrace {
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

settings default_settings(const environment& env) {
  settings defaults;
  defaults.listen.emplace_back();
  defaults.listen.back().path = env.socket_path();
  defaults.disk.path = {env.state_path()};
  return defaults;
}

} // namespace terrace

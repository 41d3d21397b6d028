// [[resp]]: doors for Redis clients.
#include "base/loopback_address.hpp"
#include "daemon/settings.hpp"
#include "daemon/settings_units.hpp"

#include <sys/un.h>

#include <algorithm>

namespace terrace {

namespace {

using problems = std::vector<option_problem>;

constexpr size_t doors_max = 64;

std::string door_option(size_t door, std::string_view key) {
  return "resp[" + std::to_string(door) + "]." + std::string(key);
}

bool is_whole_path(const std::string& path) {
  return path.starts_with('/') && path.find('\0') == std::string::npos;
}

} // namespace

problems door_options::contradictions() const {
  problems found;
  constexpr size_t path_max = sizeof(sockaddr_un::sun_path) - 1;
  if (at_path() ? !is_whole_path(address) || address.size() > path_max : !parse_loopback_address(address)) {
    auto why = at_path() ? "" : ": " + parse_loopback_address(address).error().text;
    found.push_back({"resp.address", address.empty() ? "is missing" : "is \"" + address + "\"",
                     "the absolute path of a Unix socket, of at most " + std::to_string(path_max) +
                         " bytes, or a loopback address with a port" + why,
                     "write \"/run/terrace/resp.sock\" or \"127.0.0.1:6379\": values cross no network; other "
                     "machines need a proxy of their own"});
  } else if (!at_path()) {
    if (password_file.empty())
      found.push_back({"resp.password_file", "is missing",
                       "one with a port, because every user of this machine can connect to it",
                       "name a file with the password, or use a Unix socket, where permissions decide"});
    if (!uids.empty() || !gids.empty())
      found.push_back({"resp.uids", "is given with a port", "none: only a Unix socket tells who connects",
                       "remove uids and gids, or use a Unix socket"});
  }
  if (!password_file.empty() && !is_whole_path(password_file))
    found.push_back(
        {"resp.password_file", "is \"" + password_file + "\"", "an absolute path", "begin it with '/'"});
  return found;
}

problems settings::validate_doors() const {
  problems found;
  if (resp.size() > doors_max)
    found.push_back({"resp", "has " + std::to_string(resp.size()) + " sections",
                     "at most " + std::to_string(doors_max), "remove some"});
  for (size_t i = 0; i < resp.size() && i < doors_max; ++i) {
    for (option_problem& problem : resp[i].contradictions()) {
      problem.option = door_option(i, std::string_view(problem.option).substr(sizeof "resp." - 1));
      found.push_back(std::move(problem));
    }
    const door_options& door = resp[i];
    if (std::none_of(listen.begin(), listen.end(), [&](const auto& l) { return l.group == door.group; }))
      found.push_back({door_option(i, "group"), "is \"" + door.group + "\", which no socket has",
                       "the group of a [[listen]]", "correct it, or add the [[listen]]"});
    auto same = [&](const std::string& path) { return door.at_path() && path == door.address; };
    if (std::any_of(listen.begin(), listen.end(), [&](const auto& other) { return same(other.path); }) ||
        std::any_of(resp.begin(), resp.begin() + static_cast<ptrdiff_t>(i),
                    [&](const auto& other) { return same(other.address); }))
      found.push_back({door_option(i, "address"), "is \"" + door.address + "\", as is that of another socket",
                       "a different path per socket", "change one of the two paths"});
  }
  return found;
}

} // namespace terrace

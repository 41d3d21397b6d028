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
constexpr uint64_t door_value_bytes_most = 512 * mebibyte; // as in Redis

std::string door_option(size_t door, std::string_view key) {
  return "resp[" + std::to_string(door) + "]." + std::string(key);
}

bool is_whole_path(const std::string& path) {
  return path.starts_with('/') && path.find('\0') == std::string::npos;
}

} // namespace

problems door_options::validate() const {
  problems found;
  constexpr size_t path_max = sizeof(sockaddr_un::sun_path) - 1;
  if (path.empty() == address.empty())
    found.push_back({"resp.path",
                     path.empty() ? "is missing, and so is address" : "is given, and so is address",
                     "one of them: the path of a Unix socket, or a loopback address with a port",
                     "write path = \"/run/terrace/resp.sock\", or address = \"127.0.0.1:6379\""});
  if (!path.empty() && (!is_whole_path(path) || path.size() > path_max))
    found.push_back({"resp.path", "is \"" + path + "\"",
                     "an absolute path of at most " + std::to_string(path_max) + " bytes",
                     "begin it with '/'"});
  if (!address.empty()) {
    if (auto parsed = parse_loopback_address(address); !parsed)
      found.push_back(
          {"resp.address", "is \"" + address + "\"", parsed.error().text,
           "write \"127.0.0.1:6379\": values cross no network; other machines need a proxy of their own"});
    if (password_file.empty())
      found.push_back({"resp.password_file", "is missing",
                       "one beside address, because every user of this machine can connect to a port",
                       "name a file with the password, or use path, where permissions decide"});
    if (!uids.empty() || !gids.empty())
      found.push_back({"resp.uids", "is given beside address", "none: only a Unix socket tells who connects",
                       "remove uids and gids, or use path"});
  }
  if (!password_file.empty() && !is_whole_path(password_file))
    found.push_back(
        {"resp.password_file", "is \"" + password_file + "\"", "an absolute path", "begin it with '/'"});
  if (mode > 0777)
    found.push_back(
        {"resp.mode", "is " + format_permissions(mode), "at most 0777", "use the nine permission bits"});
  if (value_bytes_max < kibibyte || value_bytes_max > door_value_bytes_most)
    found.push_back({"resp.value_bytes_max", "is " + format_bytes(value_bytes_max), "1KiB to 512MiB",
                     value_bytes_max < kibibyte ? "raise it" : "lower it"});
  return found;
}

problems settings::validate_doors() const {
  problems found;
  if (resp.size() > doors_max)
    found.push_back({"resp", "has " + std::to_string(resp.size()) + " sections",
                     "at most " + std::to_string(doors_max), "remove some"});
  for (size_t i = 0; i < resp.size() && i < doors_max; ++i) {
    for (option_problem& problem : resp[i].validate()) {
      problem.option = door_option(i, std::string_view(problem.option).substr(sizeof "resp." - 1));
      found.push_back(std::move(problem));
    }
    const door_options& door = resp[i];
    if (std::none_of(listen.begin(), listen.end(), [&](const auto& l) { return l.group == door.group; }))
      found.push_back({door_option(i, "group"), "is \"" + door.group + "\", which no socket has",
                       "the group of a [[listen]]", "correct it, or add the [[listen]]"});
    auto same = [&](const auto& other) { return !door.path.empty() && other.path == door.path; };
    if (std::any_of(listen.begin(), listen.end(), same) ||
        std::any_of(resp.begin(), resp.begin() + static_cast<ptrdiff_t>(i), same))
      found.push_back({door_option(i, "path"), "is \"" + door.path + "\", as is that of another socket",
                       "a different path per socket", "change one of the two paths"});
  }
  return found;
}

} // namespace terrace

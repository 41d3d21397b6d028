#include "daemon/machine_memory.hpp"

#include "daemon/settings_units.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <sstream>

namespace terrace {

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

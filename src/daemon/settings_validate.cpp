// What must hold between the options of a struct, and what the bounds of the table cannot say.
#include "daemon/settings.hpp"

#include "base/loopback_address.hpp"
#include "daemon/settings_units.hpp"
#include "gpu/process/opened_device.hpp"
#include "protocol/limits.hpp"

#include <sys/un.h>

#include <algorithm>
#include <charconv>
#include <set>

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
    found.push_back({option, "is \"" + allocator + "\", " + parsed.error().text,
                     "a size behind \"paged\", and behind no other name",
                     "write \"paged:4MiB\" with the size of your largest object, rounded up to 4KiB"});
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

/// A frame of the maximum size must fit, or its connection would wait for credit forever.
uint64_t connection_options::credit_bytes() const {
  return std::max<uint64_t>(group_bytes / 32, protocol::frame_bytes_max);
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
  check_allocator(found, "gpu.tier_allocator", tier_allocator, slot_bytes_max);
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
  if (auto parsed = parse_loopback_address(address); !parsed)
    found.push_back({"metrics.address", "is \"" + address + "\"", parsed.error().text,
                     "write \"127.0.0.1:9464\", \"127.0.0.1:0\" for any free port, or \"\" for no metrics"});
  return found;
}

} // namespace terrace

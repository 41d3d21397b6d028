#include "daemon/settings.hpp"

#include "actors/supervision/option_values.hpp"
#include "base/loopback_address.hpp"
#include "daemon/settings_units.hpp"
#include "gpu/process/opened_device.hpp"
#include "protocol/limits.hpp"

#include <sys/un.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>

namespace terrace {
namespace {

using problems = std::vector<option_problem>;

constexpr uint64_t page_bytes = 4096;             // what O_DIRECT and every allocator align to
constexpr uint64_t slot_bytes_max = 1 * gibibyte; // a registered io_uring buffer may not be larger
constexpr uint64_t tier_bytes_min = 1 * mebibyte;
constexpr uint64_t host_bytes_max = 64 * tebibyte;
constexpr uint64_t disk_bytes_max = 1024 * tebibyte;
constexpr uint64_t region_bytes_most = 64 * tebibyte; // half of the address space of a process on x86-64

template <class Format>
void in_range(problems& found, std::string option, auto value, auto low, auto high, Format format) {
  if (value >= low && value <= high)
    return;
  found.push_back({std::move(option), "is " + format(value), format(low) + " to " + format(high),
                   value < low ? "raise it" : "lower it"});
}

void count_in_range(problems& found, std::string option, uint64_t value, uint64_t low, uint64_t high) {
  in_range(found, std::move(option), value, low, high, [](uint64_t n) { return std::to_string(n); });
}

void bytes_in_range(problems& found, std::string option, uint64_t value, uint64_t low, uint64_t high) {
  in_range(found, std::move(option), value, low, high, format_bytes);
}

void multiple_of(problems& found, std::string option, uint64_t value, uint64_t unit) {
  if (value % unit != 0)
    found.push_back({std::move(option), "is " + format_bytes(value), "a multiple of " + format_bytes(unit),
                     "round it to " + format_bytes(std::max(unit, value / unit * unit))});
}

void duration_in_range(problems& found, std::string option, std::chrono::milliseconds value,
                       std::chrono::milliseconds low, std::chrono::milliseconds high) {
  in_range(found, std::move(option), value, low, high, format_duration);
}

void one_of(problems& found, std::string option, std::string_view value,
            std::span<const std::string_view> names) {
  if (std::find(names.begin(), names.end(), value) != names.end())
    return;
  std::string list;
  for (auto name : names)
    list += (list.empty() ? "" : ", ") + std::string(name);
  auto nearest = nearest_name(value, names);
  found.push_back({std::move(option), "is \"" + std::string(value) + "\"", "one of " + list,
                   nearest.empty() ? "name one of them" : "did you mean \"" + std::string(nearest) + "\"?"});
}

/// An absolute path without a NUL, where the kernel would cut it.
bool is_absolute(std::string_view path) {
  return path.starts_with('/') && path.find('\0') == std::string_view::npos;
}

bool is_group_name(std::string_view name) {
  return !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  });
}

/// `prefix`: of the options of a tier.
void validate_slots(problems& found, const std::string& prefix, const std::string& allocator,
                    uint64_t slot_bytes) {
  if (allocator == "paged" && slot_bytes == 0) {
    found.push_back({prefix + "allocator", "is \"paged\" without a slot size", prefix + "slot_bytes",
                     "set slot_bytes to the size of your largest object, rounded up to 4KiB"});
  } else if (allocator == "paged") {
    bytes_in_range(found, prefix + "slot_bytes", slot_bytes, page_bytes, slot_bytes_max);
    multiple_of(found, prefix + "slot_bytes", slot_bytes, page_bytes);
  } else if (slot_bytes != 0) {
    found.push_back({prefix + "slot_bytes", "is set, but the allocator is \"" + allocator + "\"",
                     "0, because only \"paged\" has slots", "remove it, or set allocator = \"paged\""});
  }
}

/// Constraints common to host and disk.
template <class Tier>
void validate_tier(problems& found, const std::string& section, const Tier& tier, uint64_t bytes_max) {
  bytes_in_range(found, section + ".bytes", tier.bytes, tier_bytes_min, bytes_max);
  multiple_of(found, section + ".bytes", tier.bytes, page_bytes);
  one_of(found, section + ".allocator", tier.allocator, option_values::allocators());
  one_of(found, section + ".policy", tier.policy, option_values::policies());
  count_in_range(found, section + ".low_watermark_percent", tier.low_watermark_percent, 0, 50);
  count_in_range(found, section + ".allocation_queue", tier.allocation_queue, 1, 1'000'000);
  bytes_in_range(found, section + ".small_max_bytes", tier.small_max_bytes, page_bytes, slot_bytes_max);
  multiple_of(found, section + ".small_max_bytes", tier.small_max_bytes, page_bytes);
  count_in_range(found, section + ".small_percent", tier.small_percent, 1, 99);
  validate_slots(found, section + ".", tier.allocator, tier.slot_bytes);
}

} // namespace

problems daemon_options::validate() const {
  problems found;
  count_in_range(found, "daemon.workers", workers, 0, 64);
  if (worker_slice_us != 0)
    count_in_range(found, "daemon.worker_slice_us", worker_slice_us, 100, 100'000);
  count_in_range(found, "daemon.busy_poll", busy_poll, 0, 1000);
  one_of(found, "daemon.log_level", log_level, log_levels);
  duration_in_range(found, "daemon.shutdown_grace", shutdown_grace, std::chrono::milliseconds(0),
                    std::chrono::minutes(10));
  return found;
}

problems listen_options::validate() const {
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
  if (mode > 0777)
    found.push_back(
        {"listen.mode", "is " + format_permissions(mode), "at most 0777", "use the nine permission bits"});
  count_in_range(found, "listen.uids", uids.size(), 0, 1024);
  count_in_range(found, "listen.gids", gids.size(), 0, 1024);
  if (write_in_place)
    found.push_back({"listen.write_in_place", "is true",
                     "false, because arenas writable by clients are not "
                     "available in this version (unsupported)",
                     "remove it; clients write through staging memory or from a region"});
  if (host_bytes) {
    bytes_in_range(found, "listen.host_bytes", *host_bytes, tier_bytes_min, host_bytes_max);
    multiple_of(found, "listen.host_bytes", *host_bytes, page_bytes);
  }
  if (disk_bytes) {
    bytes_in_range(found, "listen.disk_bytes", *disk_bytes, tier_bytes_min, disk_bytes_max);
    multiple_of(found, "listen.disk_bytes", *disk_bytes, page_bytes);
  }
  return found;
}

bool listen_options::admits(uint32_t uid, uint32_t gid, uint32_t own_uid) const {
  if (uids.empty() && gids.empty())
    return uid == own_uid || uid == 0;
  return std::find(uids.begin(), uids.end(), uid) != uids.end() ||
         std::find(gids.begin(), gids.end(), gid) != gids.end();
}

problems connection_options::validate() const {
  problems found;
  count_in_range(found, "connection.credit_requests", credit_requests, 1, 65536);
  // A frame of the maximum size must fit, or its connection would wait for credit forever.
  bytes_in_range(found, "connection.credit_bytes", credit_bytes, protocol::frame_bytes_max, 4 * gibibyte);
  bytes_in_range(found, "connection.staging_bytes", staging_bytes, tier_bytes_min, tebibyte);
  multiple_of(found, "connection.staging_bytes", staging_bytes, page_bytes);
  count_in_range(found, "connection.reservations_max", reservations_max, 1, 1'048'576);
  count_in_range(found, "connection.spaces_max", spaces_max, 1, 1'048'576);
  count_in_range(found, "connection.group_spaces_max", group_spaces_max, 1, 16'777'216);
  count_in_range(found, "connection.regions_max", regions_max, 1, 65536);
  bytes_in_range(found, "connection.region_bytes", region_bytes, mebibyte, region_bytes_most);
  bytes_in_range(found, "connection.region_bytes_group", region_bytes_group, region_bytes,
                 std::max(region_bytes, region_bytes_most));
  bytes_in_range(found, "connection.region_bytes_total", region_bytes_total, region_bytes_group,
                 std::max(region_bytes_group, region_bytes_most));
  count_in_range(found, "connection.leases_max", leases_max, 1, 16'777'216);
  count_in_range(found, "connection.lease_objects_max", lease_objects_max, 1, 1'073'741'824);
  count_in_range(found, "connection.sessions_max", sessions_max, 1, 1'048'576);
  bytes_in_range(found, "connection.session_bytes", session_bytes, page_bytes, tebibyte);
  count_in_range(found, "connection.sessions_group_max", sessions_group_max, sessions_max, 16'777'216);
  bytes_in_range(found, "connection.session_bytes_group", session_bytes_group, session_bytes,
                 std::max(session_bytes, tebibyte));
  count_in_range(found, "connection.prompts_max", prompts_max, 0, 1'048'576);
  bytes_in_range(found, "connection.prompt_bytes", prompt_bytes, page_bytes, tebibyte);
  bytes_in_range(found, "connection.memo_bytes", memo_bytes, 0, tebibyte);
  bytes_in_range(found, "connection.group_bytes", group_bytes, protocol::frame_bytes_max, tebibyte);
  count_in_range(found, "connection.connections_max", connections_max, 1, 65536);
  duration_in_range(found, "connection.request_deadline_max", request_deadline_max,
                    std::chrono::milliseconds(1), std::chrono::hours(24));
  duration_in_range(found, "connection.request_deadline", request_deadline, std::chrono::milliseconds(1),
                    std::min<std::chrono::milliseconds>(request_deadline_max, std::chrono::hours(1)));
  duration_in_range(found, "connection.handshake_deadline", handshake_deadline,
                    std::chrono::milliseconds(100), std::chrono::minutes(10));
  return found;
}

problems host_options::validate() const {
  problems found;
  validate_tier(found, "host", *this, host_bytes_max);
  bytes_in_range(found, "host.segment_bytes", segment_bytes, huge_page_bytes, slot_bytes_max);
  multiple_of(found, "host.segment_bytes", segment_bytes, huge_page_bytes);
  bytes_in_range(found, "host.prefault_piece_bytes", prefault_piece_bytes, huge_page_bytes, slot_bytes_max);
  multiple_of(found, "host.prefault_piece_bytes", prefault_piece_bytes, huge_page_bytes);
  uint32_t node = 0;
  auto [end, wrong] = std::from_chars(numa_node.data(), numa_node.data() + numa_node.size(), node);
  if (numa_node != "any" && (wrong != std::errc() || end != numa_node.data() + numa_node.size()))
    found.push_back({"host.numa_node", "is \"" + numa_node + "\"",
                     "\"any\", or the number of a node such as \"0\"",
                     "see /sys/devices/system/node/online for the nodes"});
  if (huge_pages)
    multiple_of(found, "host.bytes", bytes, huge_page_bytes);
  if (allocator == "paged" && slot_bytes > segment_bytes && slot_bytes <= slot_bytes_max)
    found.push_back({"host.slot_bytes", "is " + format_bytes(slot_bytes) + ", more than a segment",
                     "at most host.segment_bytes, " + format_bytes(segment_bytes),
                     "lower slot_bytes or raise segment_bytes"});
  return found;
}

namespace {

constexpr size_t disk_paths_max = 64;

void validate_paths(problems& found, const disk_options& disk) {
  const auto& paths = disk.paths;
  if (paths.size() > disk_paths_max)
    found.push_back({"disk.paths", "has " + std::to_string(paths.size()) + " directories",
                     "at most " + std::to_string(disk_paths_max), "list one per device"});
  for (auto path = paths.begin(); path != paths.end(); ++path) {
    if (!is_absolute(*path))
      found.push_back(
          {"disk.paths", "names \"" + *path + "\"", "absolute paths of directories", "begin it with '/'"});
    if (std::find(paths.begin(), path, *path) != path)
      found.push_back({"disk.paths", "names \"" + *path + "\" twice", "another directory for each path",
                       "remove one of them"});
  }
}

} // namespace

problems disk_options::validate() const {
  problems found;
  validate_tier(found, "disk", *this, disk_bytes_max);
  if (!is_absolute(path))
    found.push_back({"disk.path", "is \"" + path + "\"", "the absolute path of a directory",
                     "begin it with '/', or write \"auto\""});
  validate_paths(found, *this);
  count_in_range(found, "disk.depth", depth, 1, 1024);
  bytes_in_range(found, "disk.bytes_in_flight", bytes_in_flight, mebibyte, 64 * gibibyte);
  bytes_in_range(found, "disk.write_bytes_in_flight", write_bytes_in_flight, mebibyte, 64 * gibibyte);
  bytes_in_range(found, "disk.index_object_bytes", index_object_bytes, 8 * kibibyte, gibibyte);
  one_of(found, "disk.on_mismatch", on_mismatch, disk_options::mismatches);
  one_of(found, "disk.admission", admission, disk_options::admissions);
  one_of(found, "disk.demotion", demotion, option_values::demotions());
  if (write_bytes_per_day != 0)
    bytes_in_range(found, "disk.write_bytes_per_day", write_bytes_per_day, mebibyte, 1024 * tebibyte);
  duration_in_range(found, "disk.stall_after", stall_after, std::chrono::milliseconds(100),
                    std::chrono::hours(1));
  count_in_range(found, "disk.write_share_percent", write_share_percent, 1, 100);
  return found;
}

problems policy_options::validate() const {
  problems found;
  one_of(found, "policy.clock", clock, policy_options::clocks);
  return found;
}

problems copier_options::validate() const {
  problems found;
  count_in_range(found, "copier.threads", threads, 0, 64);
  bytes_in_range(found, "copier.piece_bytes", piece_bytes, 64 * kibibyte, gibibyte);
  count_in_range(found, "copier.nice", nice, 0, 19);
  return found;
}

problems gpu_options::validate() const {
  problems found;
  bytes_in_range(found, "gpu.staging_bytes", staging_bytes, mebibyte, 16 * gibibyte);
  multiple_of(found, "gpu.staging_bytes", staging_bytes, mebibyte);
  duration_in_range(found, "gpu.deadline", deadline, std::chrono::milliseconds(100), std::chrono::hours(1));
  one_of(found, "gpu.map_arenas", map_arenas, mapped_arenas);
  one_of(found, "gpu.direct_disk", direct_disk, direct_disks);
  bytes_in_range(found, "gpu.direct_bytes", direct_bytes, mebibyte, 16 * gibibyte);
  multiple_of(found, "gpu.direct_bytes", direct_bytes, mebibyte);
  if (tier_bytes == 0)
    return found;
  bytes_in_range(found, "gpu.tier_bytes", tier_bytes, tier_bytes_min, tebibyte);
  multiple_of(found, "gpu.tier_bytes", tier_bytes, page_bytes);
  if (!enabled)
    found.push_back({"gpu.tier_bytes", "is set, but gpu.enabled is false", "0 without GPUs",
                     "remove it, or set enabled = true"});
  if (auto name = gpu::canonical_device_name(tier_device); !name)
    found.push_back({"gpu.tier_device", "is \"" + tier_device + "\"",
                     "the UUID of a GPU, or \"host\", with gpu.tier_bytes",
                     "name the device that has the tier; `terraced --version` lists them"});
  one_of(found, "gpu.tier_allocator", tier_allocator, option_values::allocators());
  validate_slots(found, "gpu.tier_", tier_allocator, tier_slot_bytes);
  one_of(found, "gpu.tier_policy", tier_policy, option_values::policies());
  one_of(found, "gpu.tier_demotion", tier_demotion, demotions);
  return found;
}

problems lease_options::validate() const {
  problems found;
  duration_in_range(found, "lease.warn_after", warn_after, std::chrono::seconds(1), std::chrono::hours(168));
  count_in_range(found, "lease.host_percent", host_percent, 1, 100);
  count_in_range(found, "lease.connection_percent", connection_percent, 1, 100);
  count_in_range(found, "lease.disk_percent", disk_percent, 1, 100);
  count_in_range(found, "lease.pin_percent", pin_percent, 0, 100);
  count_in_range(found, "lease.session_percent", session_percent, 0, 100);
  return found;
}

problems shadow_options::validate() const {
  problems found;
  for (const std::string& name : policies)
    one_of(found, "shadow.policies", name, option_values::policies());
  if (std::set<std::string>(policies.begin(), policies.end()).size() != policies.size())
    found.push_back({"shadow.policies", "names a policy twice", "each name once", "remove one of them"});
  for (uint32_t percent : capacity_percents)
    count_in_range(found, "shadow.capacity_percents", percent, 1, 10'000);
  if (std::set<uint32_t>(capacity_percents.begin(), capacity_percents.end()).size() !=
      capacity_percents.size())
    found.push_back({"shadow.capacity_percents", "has a number twice", "each once", "remove one of them"});
  count_in_range(found, "shadow.capacity_percents", capacity_percents.size(), 1, 8);
  return found;
}

problems metrics_options::validate() const {
  problems found;
  count_in_range(found, "metrics.spaces_max", spaces_max, 0, 1000);
  if (auto parsed = parse_loopback_address(address); !parsed)
    found.push_back({"metrics.address", "is \"" + address + "\"", parsed.error().text,
                     "write \"127.0.0.1:9464\", or \"127.0.0.1:0\" for any free port"});
  return found;
}

} // namespace terrace

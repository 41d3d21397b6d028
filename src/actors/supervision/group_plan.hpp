// The configuration of a trust group.
#pragma once

#include "actors/remote/remote_plan.hpp"
#include "base/error.hpp"
#include "base/tier_properties.hpp"
#include "group/prompt_registry.hpp"
#include "group/session_table.hpp"
#include "index/tenant_directory.hpp"
#include "memory/allocator.hpp"
#include "memory/segmented_arena.hpp"
#include "memory/teardown.hpp"
#include "protocol/descriptors.hpp"
#include "protocol/resp/commands.hpp"
#include "storage/extent_file.hpp"
#include "storage/file_lock.hpp"
#include "storage/offline_volume.hpp"
#include "tier/policy/group_policies.hpp"
#include "tier/policy/policy_clock.hpp"
#include "tier/policy/shadow_policies.hpp"
#include "tier/search/lease_ledger.hpp"
#include "tier/tier_config.hpp"
#include "transfer/device_health.hpp"
#include "transfer/io_scheduler.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace terrace::option_values {

// The values that options may have: the names in the registries behind them, and the smallest budget of requests. Used to
// validate settings.

/// A frame of the maximum size must fit, or its connection would wait for credit forever.
constexpr uint64_t request_bytes_min = protocol::frame_bytes_max;
inline std::span<const std::string_view> allocators() { return allocator_names(); }
inline std::span<const std::string_view> policies() { return group_policies::names(); }
inline std::span<const std::string_view> demotions() { return demotion_modes; }

/// The Redis commands that metrics count, in the order of their numbers.
inline std::vector<std::string_view> redis_commands() {
  std::vector<std::string_view> names;
  for (size_t i = 0; i < resp::commands; ++i)
    names.push_back(resp::to_string(static_cast<resp::command>(i)));
  return names;
}

} // namespace terrace::option_values

namespace terrace {

class memo_pool;

struct group_plan {
  std::string name;
  uint64_t number = 1; ///< each group has another number
  std::string path;    ///< path of its first socket
  bool isolated = false;
  bool device_reads = false;  ///< devices' processes map its host memory and read from it
  size_t spaces_max = 65'536; ///< spaces that are open or have objects
  session_bounds sessions;
  prompt_bounds prompts;
  std::shared_ptr<memo_pool> memos; ///< null: every prompt is hashed
  clock_source policy_time = clock_source::steady;
  tier_config host{.kind = memory_tier};
  uint64_t segment_bytes = 1ULL << 30;
  bool huge_pages = false;
  std::optional<uint32_t> numa_node;
  teardown_ptr teardown;   ///< releases segments; null: the holder of the last reference does
  teardown_ptr lease_ends; ///< ends leases on many objects; null: the holder of the last reference does
  std::optional<tier_config> disk;
  std::optional<tier_config> gpu;   ///< tier in memory of `gpu_device`
  std::string gpu_device;           ///< name of the device
  std::vector<remote_plan> remotes; ///< at most one for each of `remote_tiers`, in their order
  /// One file per path; set even if the group has no disk tier.
  std::vector<std::string> disk_files;
  /// Directory for clears that a volume cannot record.
  std::string state_directory;
  bool detached = true; ///< false in tests that run blocking work on their own thread
  /// Applies to files that are not a volume of this machine and group.
  mismatch_rule on_mismatch = mismatch_rule::refuse;
  /// Expected bytes per extent, for the index of new files.
  uint64_t disk_object_bytes = object_bytes_expected;
  bool direct_disk = false; ///< devices may read the disk themselves
  io_limits disk_io;
  health_options disk_health;
  lease_bounds leases;
  std::vector<shadow_plan> shadows;
  std::vector<tenant_quota> quotas;
  /// Whether chunks that clients compute faster than tiers read them are left to them; may change at any
  /// time.
  std::shared_ptr<const std::atomic<bool>> cost_model = std::make_shared<const std::atomic<bool>>(true);
  std::vector<tier_config> more_tiers; ///< further tiers that will join
};

/// Options of the group's host memory.
inline segmented_arena_options arena_of(const group_plan& plan) {
  return {.name = "terrace-" + plan.name,
          .bytes = plan.host.bytes,
          .segment_bytes = plan.segment_bytes,
          .huge_pages = plan.huge_pages,
          .numa_node = plan.numa_node,
          .teardown = plan.teardown};
}

/// How to open the files of its disk. Precondition: it has one.
inline extent_files_options files_of(const group_plan& plan, const boot_id& boot) {
  extent_files_options files;
  files.paths = plan.disk_files;
  files.capacity_bytes = plan.disk->bytes / plan.disk_files.size();
  files.boot = boot;
  files.owner = {machine_identity(), plan.name};
  files.on_mismatch = plan.on_mismatch;
  files.object_bytes = plan.disk_object_bytes;
  files.for_readers = plan.direct_disk;
  return files;
}

/// Names the files that are to be smaller than before, with what the next start forgets. Only reads, also while a daemon
/// uses the disk. Blocks.
inline std::vector<std::string> describe_shrinking(const group_plan& plan) {
  return plan.disk ? describe_shrinking(files_of(plan, {})) : std::vector<std::string>();
}

} // namespace terrace

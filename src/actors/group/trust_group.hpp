// All actors of a trust group share this: its actors, its tiers and its arena.
#pragma once

#include "actors/interfaces.hpp"
#include "actors/transfer/copier_actor.hpp"
#include "actors/transfer/tier_handle.hpp"
#include "base/credit_gate.hpp"
#include "base/tier_properties.hpp"
#include "group/announcements.hpp"
#include "group/recent_lookups.hpp"
#include "index/tenant_directory.hpp"
#include "memory/segmented_arena.hpp"
#include "storage/disk/disk_service.hpp"
#include "tier/objects/event_log.hpp"
#include "tier/search/lease_ledger.hpp"
#include "tier/tier_list.hpp"

#include <caf/actor.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace terrace::actors {

/// The clock of departures.
inline uint32_t steady_seconds() {
  auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint32_t>(std::chrono::duration_cast<std::chrono::seconds>(now).count());
}

/// The actors and the arena of a trust group, its tiers and the state of its volume. Set up before it serves, except for
/// tiers below the first, which join when they are ready; shared by all actors of the group, on any thread.
struct trust_group : tier_list<tier_handle>, volume_state {
  std::string name;
  uint64_t number = 0; ///< of the group; 0 is for work of the daemon itself
  std::string path;    ///< of its first socket
  bool isolated = false;
  std::vector<std::string> disk_files; ///< the files of its volume, also while the disk tier is off
  std::string state_directory;         ///< for clears that a volume could not record
  bool detached = true;                ///< blocking work has its own thread
  group_actor group;
  policy_actor policy;
  std::shared_ptr<credit_gate> uses =
      std::make_shared<credit_gate>(); ///< from connections to the policy, in objects
  std::shared_ptr<credit_gate> lease_notices = std::make_shared<credit_gate>(); ///< to the group, one each
  shadow_actor shadow;                      ///< null if none is configured, like its gate
  std::shared_ptr<credit_gate> shadow_gate; ///< checked before the shadows are notified
  tier_actor host;                          ///< the first tier, through which all transfers go
  std::shared_ptr<segmented_arena> memory;  ///< the host tier's
  bool staging_only = false;                ///< the first tier keeps nothing that is not held
  size_t stores = 0;                        ///< of remote tiers
  ledger_ptr leases;                        ///< what they hold of host memory
  account_ptr session_leases;               ///< the part of held sessions
  teardown_ptr
      lease_ends; ///< ends those on many objects, off the workers; null: whoever has the last reference
  std::shared_ptr<tenant_directory> tenants = std::make_shared<tenant_directory>(); ///< and their quotas
  std::shared_ptr<event_log> events =
      std::make_shared<event_log>(event_log::events_max, steady_seconds);       ///< of all tiers
  std::shared_ptr<recent_lookups> lookups = std::make_shared<recent_lookups>(); ///< those under a lease
  std::shared_ptr<announcements> announced = std::make_shared<announcements>();
  std::shared_ptr<copier_pool> copiers;
  std::shared_ptr<std::atomic<bool>> checking =
      std::make_shared<std::atomic<bool>>(false);      ///< one check at a time
  std::shared_ptr<const std::atomic<bool>> cost_model; ///< what clients compute faster is left to them
  static constexpr uint64_t window_bytes_max = 64ULL << 20;
  /// Copies of a window end before those of the next one begin, so it is long beside the time that this takes: 5 ms on a bus of
  /// 50 GB/s.
  static constexpr uint64_t device_window_bytes_max = 256ULL << 20;
  std::atomic<uint64_t> window_bytes{
      window_bytes_max}; ///< limit of the arena bytes that a transfer holds at a time
  /// The same for transfers out of memory of a device and into it.
  std::atomic<uint64_t> device_window_bytes{device_window_bytes_max};

  /// After the arena was resized: a window is at most an eighth of it.
  void fit_window() {
    const uint64_t eighth = std::max<uint64_t>(memory->size() / 8, 1);
    window_bytes = std::min(window_bytes_max, eighth);
    device_window_bytes = std::min(device_window_bytes_max, eighth);
  }

  /// The tier in memory of a device; null: there is none.
  const tier_handle* on_device() const {
    return first_with([](const tier_handle& tier) { return tier.device != nullptr; });
  }

  /// Of the tiers that serve.
  tenant_directory::capacities capacities() const {
    tenant_directory::capacities bytes{};
    for (const tier_handle& tier : tiers())
      bytes.at(static_cast<size_t>(tier.kind)) = tier.kind == memory_tier ? memory->size() : tier.bytes;
    return bytes;
  }
};
using group_ptr = std::shared_ptr<const trust_group>;

} // namespace terrace::actors

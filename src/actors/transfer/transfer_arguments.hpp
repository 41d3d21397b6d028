// What every transfer of a trust group works with.
#pragma once

#include "actors/interfaces.hpp"
#include "actors/tier/shadow_feed.hpp"
#include "actors/tier/tier_availability.hpp"
#include "actors/transfer/copier_actor.hpp"
#include "memory/segmented_arena.hpp"
#include "metrics/tier_probe.hpp"
#include "tier/tier_index.hpp"

#include <caf/actor.hpp>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>

namespace terrace::actors {

/// What reads and writes of a disk tier go through.
struct disk_access {
  disk_set_actor set;
  volume_id volume; ///< that headers of its objects name
  std::shared_ptr<const tier_availability> service;
};

/// The disk half of a trust group.
struct disk_parts : disk_access {
  tier_actor tier;
  std::shared_ptr<const tier_index> index; ///< the tier's
  write_through_actor write_through;
  bool write_new = true; ///< stores go to disk as well
  /// Whether what host memory serves is offered to the disk again, for it may not have it. Null: never.
  std::shared_ptr<const std::atomic<bool>> second_looks;
  std::shared_ptr<metrics::tier_probe> probe;
};

/// The actors and the arena of a trust group. Set up before it serves, but for the disk, which joins when its file is
/// ready; shared by all that works for the group, on any thread.
struct group_parts {
  std::string name;
  std::string path; ///< of its first socket
  bool isolated = false;
  std::vector<std::string> disk_files; ///< where its volume lies, also while the disk tier is off
  std::string state_directory;         ///< clears that a volume has not heard of are remembered there
  bool detached = true;                ///< what blocks has a thread of its own
  group_actor group;
  policy_actor policy;
  shadow_actor shadow;               ///< null while none is configured, as is its feed
  std::shared_ptr<shadow_feed> feed; ///< asked before the shadows are told
  tier_actor host;
  std::shared_ptr<const tier_index> host_index;
  std::shared_ptr<segmented_arena> memory; ///< the host tier's
  std::shared_ptr<copier_pool> copiers;
  std::shared_ptr<metrics::tier_probe> host_probe;
  std::atomic<uint64_t> window_bytes{64ULL
                                     << 20}; ///< a transfer holds at most so much of the arena at a time

  /// After the arena changed its size: a window is at most an eighth of it.
  void fit_window() {
    window_bytes = std::min<uint64_t>(64ULL << 20, std::max<uint64_t>(memory->size() / 8, 1));
  }

  /// Null while there is no disk tier (yet).
  const disk_parts* disk() const { return disk_ready_.load(std::memory_order_acquire); }

  /// Once.
  void join(std::unique_ptr<const disk_parts> disk) {
    disk_ = std::move(disk);
    disk_ready_.store(disk_.get(), std::memory_order_release);
  }

  enum class disk_phase : uint8_t { off, starting, locked, ready, refused };
  disk_phase phase() const { return phase_.load(std::memory_order_acquire); }
  const std::string& refusal() const { return refusal_; } ///< once the phase is `refused`
  void starting() { phase_ = disk_phase::starting; }
  void locked() { phase_ = disk_phase::locked; } ///< another process has the file open
  void ready() { phase_ = disk_phase::ready; }
  void refuse(std::string why) {
    refusal_ = std::move(why);
    phase_ = disk_phase::refused;
  }

 private:
  std::unique_ptr<const disk_parts> disk_;
  std::atomic<const disk_parts*> disk_ready_{nullptr};
  std::atomic<disk_phase> phase_{disk_phase::off};
  std::string refusal_;
};
using group_ptr = std::shared_ptr<const group_parts>;

} // namespace terrace::actors

// WRITE-THROUGH: brings what was stored in host memory to disk as well, behind the client's back.
//
// It takes `write_through_notice`. Each notice's hold keeps its objects in host memory until they are on disk or cannot
// be: so a host tier under pressure waits for the disk instead of losing what was stored. It needs no host memory of its
// own, so it always gets on. What may wait for the disk is bounded by credits (write_credits.hpp), which stores ask for
// before they take memory: `write_credit_request` -> `write_credit_answer`.
//
// A chunk that is on disk already is not written again. What is not, must be admitted: by the policy where the rule is not
// `always`, then by the day's budget of bytes. Objects come in the order of their chain, so that after one that is refused
// the rest is refused as well: from disk alone nobody would find it.
#pragma once

#include "actors/transfer/transfer_arguments.hpp"
#include "metrics/tier_probe.hpp"
#include "policy/eviction_types.hpp"

#include <atomic>
#include <memory>

namespace terrace::actors {

/// What is worth writing to disk.
struct disk_admission {
  admission_rule rule = admission_rule::always;
  uint64_t bytes_per_day = 0; ///< 0: no limit
};

struct write_through_arguments {
  tier_actor host_tier;
  tier_actor disk_tier;
  policy_actor policy;
  disk_admission admission;
  /// Set when something was not taken, or there is no room left: from then on host memory may have what disk has not. Or null.
  std::shared_ptr<std::atomic<bool>> second_looks;
  uint64_t waiting_bytes =
      UINT64_MAX; ///< of host memory that may wait for the disk, this in progress included
  disk_access disk;
  std::shared_ptr<segmented_arena> memory;
  std::shared_ptr<copier_pool> copiers;
  uint64_t bytes_in_progress = 128ULL
                               << 20; ///< taken from the line at a time; a single larger notice goes alone
  std::shared_ptr<metrics::tier_probe> probe; ///< of the disk tier
};

write_through_actor spawn_write_through(caf::actor_system& system, write_through_arguments arguments);

} // namespace terrace::actors

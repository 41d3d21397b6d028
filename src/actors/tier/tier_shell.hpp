#pragma once

#include "actors/tier/allocator_actor.hpp"
#include "actors/tier/tier_actor.hpp"
#include "actors/tier/tiers_below.hpp"
#include "runtime/turn_times.hpp"
#include "runtime/turns.hpp"
#include "tier/objects/tier_changes.hpp"
#include "tier/quota/quota_line.hpp"
#include "tier/space/allocation_queue.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

namespace terrace::actors {

/// The next step of the round of eviction in progress.
enum class round_step : uint8_t {
  none,  ///< there is none: begins the next one
  ask,   ///< asks the policy for victims
  wait,  ///< nothing, until the policy answers or the victims have been written to the tiers below
  evict, ///< evicts the chosen victims, if any
  end,   ///< ends if it has enough or has failed; else asks again
};

/// The state of a tier's actor. Its parts, the files of this folder that include this, share it; each has
/// some of its requests.
struct tier_shell {
  const char* name = "tier";
  tier_changes changes;
  long_notices line;     ///< notices not yet applied; a `next_part_notice` is in flight unless it is empty
  release_sink_ptr sink; ///< sink of its holds and reservations; sends to this actor
  allocator_actor space;
  policy_actor policy;
  index_keeper keeper; ///< set for a durable tier
  tiers_below below;   ///< tiers below that get its objects
  std::shared_ptr<metrics::tier_probe> probe;
  std::shared_ptr<event_log> log;             ///< log for subscribers; null in tests
  std::unique_ptr<quota_line> quota;          ///< null: tenants have no quotas
  space_ptr published_in;                     ///< the space of what this turn has published
  std::shared_ptr<eviction_round> next_round; ///< the allocator's round until it begins
  round_step step = round_step::none;         ///< see tier_round.hpp
  table_totals::sum granted;                  ///< extents that the allocator has given out since the start
  struct {
    uint64_t walk = 0;      ///< number of the last walk
    bool asked = false;     ///< an operator asked for it
    uint64_t changes = 0;   ///< changes since the last slice
    bool slice_due = false; ///< a slice is due, or in progress
  } check;                  ///< see check_slices.hpp

  residency& objects() { return changes.objects(); }
};

using tier_pointer = caf::stateful_actor<tier_shell, runtime::turns<runtime::short_turns<tier_actor::base>>>*;

/// Runs after each message by itself: sends the news of what the turn has changed, and goes on with the round of eviction.
/// So the policy, the allocator and the journals know everything before the next turn.
void after_turn(tier_pointer self);

/// Sends the notes kept since the policy's last mark. A request to the policy must follow all earlier events.
void send_kept_notes(tier_pointer self);

} // namespace terrace::actors

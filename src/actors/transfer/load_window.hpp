// A window of a load in progress, and how it reads objects missing in host memory from the tiers below.
#pragma once

#include "actors/transfer/load_actor.hpp"
#include "actors/transfer/transfer_steps.hpp"

#include <caf/event_based_actor.hpp>
#include <caf/stateful_actor.hpp>

#include <algorithm>
#include <optional>
#include <vector>

namespace terrace::actors {

struct load_state {
  const char* name = "load";
  task<> progress;
};

using load_pointer = caf::stateful_actor<load_state>*;

/// A window in progress.
struct load_window : transfer_window {
  std::vector<object_place> places; ///< parallel to its objects: in host memory
  std::vector<tier_kind> source;    ///< parallel: where it was found
  std::vector<bool> lost;           ///< parallel: could not be read, or was damaged
  size_t first_left = SIZE_MAX; ///< the first object evicted from host memory while the load waited for space
  size_t usable = 0;            ///< objects from the beginning on that are in host memory now
  std::vector<hold_ptr> holds;
  reservation_ptr passing; ///< objects that are delivered and not kept
  std::optional<lease_account::claim> claimed,
      claimed_below; ///< without a copy: for what it holds, and reads
  int awaited = 0;   ///< rounds in which others were writing some of its objects
};

/// State passed from one window to the next.
struct load_course {
  uint64_t promoted = 0;    ///< bytes brought into host memory to stay
  uint64_t others_hold = 0; ///< bytes of host memory that are unavailable when the window begins
  unsigned fruitless = 0;   ///< consecutive rounds that delivered nothing because objects were evicted
  bool piecewise = false;   ///< nothing is copied, and not everything is in host memory already
  bool full = false;        ///< nothing is copied, and there is no room for more
};

/// The part of host memory that leases, their readers and transfers may hold together for a load that keeps
/// what it brings; the rest is for transfers, which end.
inline uint64_t held_bytes_max(const load_job& job) {
  return job.group->leases->bytes_max(job.group->memory->size());
}

/// Whether the window, which is held, may stay held, and claims its bytes for the connection. `held_bytes`: held
/// in host memory in total. True for loads that copy.
bool may_stay(const load_job& job, load_window& window, uint64_t held_bytes);

/// The error if a request may not wait for memory held by leases and their readers.
error no_room(const load_job& job, const load_course& course, uint64_t bytes);

/// Takes the answer of the host tier.
void keep(load_window& window, const acquire_answer& acquired);

inline bool any(const acquire_answer& acquired, acquired_state what) {
  return std::find(acquired.states.begin(), acquired.states.end(), what) != acquired.states.end();
}

/// Whether a tier below the first can be read now.
bool may_be_below(const load_job& job);

/// Whether the job's lease holds anything below the first tier.
bool leased_below(const load_job& job);

/// Reads objects of the window that host memory lacks from the tiers below, in one round: the tiers hold what
/// they have, space for exactly that is acquired in host memory, and objects that were read, are valid and
/// are still published are published there. `delivered_some`: the load has delivered something already.
/// Returns true if others are writing part of the window, whose holds must then be released.
task<result<bool>> bring_from_below(load_pointer self, const load_job& job, load_course& course,
                                    load_window& window, bool delivered_some);

} // namespace terrace::actors

// A window of a load on its way, and how it gets from disk what host memory lacks.
#pragma once

#include "actors/transfer/load_actor.hpp"
#include "actors/transfer/transfer_steps.hpp"

#include <caf/event_based_actor.hpp>
#include <caf/stateful_actor.hpp>

#include <algorithm>
#include <vector>

namespace terrace::actors {

struct load_state {
  const char* name = "load";
  task<> progress;
};

using load_pointer = caf::stateful_actor<load_state>*;

/// A window on its way.
struct load_window : transfer_window {
  std::vector<object_place> places; ///< parallel to its objects: in host memory
  std::vector<bool> from_disk;      ///< parallel: read for this window
  std::vector<bool> lost;           ///< parallel: could not be read, or was damaged
  size_t first_left = SIZE_MAX;     ///< the first that left host memory while the load waited for space
  size_t usable = 0;                ///< objects from the begin on that are in host memory now
  std::vector<hold_ptr> holds;
  reservation_ptr passing; ///< objects that are delivered and not kept
  int awaited = 0;         ///< rounds in which others were writing some of its objects
};

/// What windows leave to those behind them.
struct load_course {
  uint64_t promoted = 0;    ///< bytes that were brought into host memory to stay
  uint64_t others_hold = 0; ///< bytes of host memory that nobody can have as the window begins
  unsigned fruitless = 0;   ///< rounds in a row that delivered nothing because objects left
  bool piecewise = false;   ///< nothing is copied, and not everything is in host memory already
  bool full = false;        ///< nothing is copied, and there is no room for more
};

/// Of host memory that leases, those who read them and transfers may hold together for a load that keeps what it brings: the
/// rest is for transfers, which end.
inline uint64_t held_bytes_max(const load_job& job) {
  uint64_t size = job.group->memory->size();
  return size - size / 4;
}

/// Whether the window, which is held now, may stay so. `held_bytes`: in host memory, by everybody. What copies may always.
bool may_stay(const load_job& job, const load_window& window, uint64_t held_bytes);

/// What the client is told where nothing may wait for what leases and those who read them hold.
error no_room(const load_job& job, const load_course& course, uint64_t bytes);

/// Takes what the host tier gave.
void keep(load_window& window, const acquire_answer& acquired);

inline bool any(const acquire_answer& acquired, acquired_state what) {
  return std::find(acquired.states.begin(), acquired.states.end(), what) != acquired.states.end();
}

/// Brings from disk what host memory lacks of the window, in one round: the disk tier holds what it has, space for exactly that is
/// acquired in host memory, and what is read, good and still counts is published there. `delivered_some`: the load
/// has something to answer with. True: others are writing some of the window, and its holds are to be let go.
task<result<bool>> bring_from_disk(load_pointer self, const load_job& job, load_course& course,
                                   load_window& window, bool delivered_some);

} // namespace terrace::actors

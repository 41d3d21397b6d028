// The ticks of a stall detector, for actors with operations in the ring.
#pragma once

#include "runtime/io_request.hpp"
#include "transfer/device_health.hpp"

#include <caf/actor_cast.hpp>
#include <caf/actor_control_block.hpp>

#include <chrono>
#include <cstdint>
#include <utility>

namespace terrace::actors {

/// Makes the ring send `self`, a homed actor, a completion with `tag` at the detector's next tick: one at a
/// time, and only while there is something to watch. `ticking`: a tick is in the ring; its receiver resets
/// that.
template <class Self>
void keep_ticking(Self* self, const stall_detector& watch, bool& ticking,
                  std::chrono::nanoseconds stall_after, uint64_t tag) {
  if (ticking || !watch.worth_a_tick())
    return;
  ticking = true;
  runtime::io_request tick;
  tick.code = runtime::io_code::timeout;
  tick.after = stall_after / ticks_of_patience;
  self->port().submit(std::move(tick), caf::actor_cast<caf::strong_actor_ptr>(self), tag);
}

} // namespace terrace::actors

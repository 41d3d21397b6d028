// The windows of a load that come into memory of a device without passing host memory: from the group's tier in memory of a device,
// and from the disk. Private to the load.
#pragma once

#include "actors/transfer/transfer_actors.hpp"
#include "runtime/task.hpp"

#include <caf/stateful_actor.hpp>

namespace terrace::actors {

struct load_state {
  const char* name = "load";
  task<> progress;
};
using load_pointer = caf::stateful_actor<load_state>*;

/// The next window, if it begins with what the tier in memory of the target's device has. False: it does not. `tries`
/// becomes false when the tier has lost what it held.
task<result<bool>> load_on_device(load_pointer self, const load_job& job, load_plan& plan, bool& tries);

/// Whether it is of use to try `load_from_disk`: devices may read the group's disk, and this one does.
bool may_load_from_disk(const load_job& job);

/// The next window, if it begins with what only the disk has: the device reads it, and host memory keeps nothing of it. False: it
/// does not. `tries` becomes false when something could not be read in this way: the rest passes host memory, which finds out why.
task<result<bool>> load_from_disk(load_pointer self, const load_job& job, load_plan& plan, bool& tries);

} // namespace terrace::actors

// CHECK: recounts everything of a trust group and compares the result with the kept sums. There is one actor
// per check, and one check per group at a time.
//
// It works part by part, each in a short turn of the actor that owns the part, so requests are served in
// between. Changes made meanwhile never count as differences:
// - a part of a tier is compared by its policy, allocator and journals with what they know at that point of
//   the tier's messages to them (tier/objects/check_messages.hpp);
// - references to an object are compared with its holds only if the object has not changed since before the
//   first reference was asked for;
// - holds that only a request has, and the charges for leases, are compared only if no request was in progress
//   from the begin to the end.
#pragma once

#include "actors/connection/connection_environment.hpp"
#include "actors/group/trust_group.hpp"
#include "group/group_messages.hpp"

#include <memory>

namespace terrace::actors {

struct check_job {
  group_ptr group;
  std::shared_ptr<const connected_clients> clients;
  context_ptr
      context; ///< context of the check's request: the only one that may be in progress if the group is to
               ///< count as idle
};

/// Spawns a check. It answers a `check_job` with a `check_report`, and ends. Error of the report: `busy`
/// while another check is in progress.
caf::actor spawn_check(caf::actor_system& system);

} // namespace terrace::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(terrace::actors::check_job)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(terrace::check_report)

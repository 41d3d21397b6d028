// TRANSFER (prefetch): brings objects from lower tiers into host memory, or a faster tier, before anybody loads them. One actor per
// request.
//
// Several windows are in progress at a time, so that one is read while another is verified. A window holds what it
// reserves only while it is read: a prefetch that waits for memory, or for others that write the same objects, waits for
// nobody who waits for it. To a tier above host memory, what that lacks of a window is brought to host memory and from there to
// the tier by its write-through, at the cost of a credit. Windows that are being read when it is stopped are completed, and their objects stay.
#pragma once

#include "actors/transfer/transfer_arguments.hpp"
#include "transfer/prefetch_plan.hpp"

namespace terrace::actors {

struct prefetch_job : prefetch_subject {
  group_ptr group;
  std::shared_ptr<const prefix_plan> found, expected; ///< see prefetch_plan
};

/// From the connection, once the request has ended: the answer tells what is there by now.
struct stop_prefetch_notice {};

/// Answers a `prefetch_job` with a `prefetch_result`, at the latest after a `stop_prefetch_notice`. Ends after its last
/// window.
caf::actor spawn_prefetch(caf::actor_system& system);

} // namespace terrace::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(terrace::actors::prefetch_job)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(terrace::actors::stop_prefetch_notice)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(terrace::prefetch_result)

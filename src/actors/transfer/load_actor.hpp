// TRANSFER (load): reads objects into host memory and copies them into a region. One actor per request; its
// connection reuses it.
//
// It works in windows: hold what is in host memory; read what only lower tiers have into reserved space and
// publish it; copy. While it waits for memory it holds none, so two loads cannot wait for each other. It
// always delivers whole chunks, starting with the first: under a lease everything that the lease holds,
// unless a tier lost it, or an error.
//
// Without a copy the objects of all windows stay held. Only the first window waits for memory; the result
// ends before the first object without room.
#pragma once

#include "actors/transfer/transfer_arguments.hpp"
#include "transfer/load_plan.hpp"

namespace terrace::actors {

struct load_job : load_subject {
  group_ptr group;
};

/// Answers a `load_job` with a `load_result`. Then it takes another, or ends if the result is a failure.
caf::actor spawn_load(caf::actor_system& system);

} // namespace terrace::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(terrace::actors::load_job)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(terrace::load_result)

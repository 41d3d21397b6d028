// LOOKUP: one lookup request. It asks every tier that may hold something at once, merges their answers into a plan, and
// keeps what was found when a lease is wanted. Its connection keeps it for the next lookup.
#pragma once

#include "actors/transfer/transfer_arguments.hpp"
#include "index/prefix_plan.hpp"
#include "runtime/home.hpp"

namespace terrace::actors {

struct lookup_request {
  group_ptr group;
  space_ptr in;
  batch_ptr objects; ///< of all ranks (index/chunk_layout.hpp)
  plan_request plan;
  uint32_t tiers = 0;       ///< bit n: tier_kind n may be asked; 0: all
  bool hold = false;        ///< keep what is found
  bool note_access = false; ///< holding is a use, unless an inference was told; a bare probe is none
};
struct lookup_answer {
  error failure;
  prefix_plan plan;
  hold_ptr host; ///< of the found chunks, when asked for; null when nothing of them is there
  hold_ptr disk;
};

/// Answers `lookup_request`, one at a time. It lives with its connection: behind a tier that another worker runs, it would
/// have to wait there for that worker's own connections.
caf::actor spawn_lookup(caf::actor_system& system, const runtime::home& home);

} // namespace terrace::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(terrace::actors::lookup_request)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(terrace::actors::lookup_answer)

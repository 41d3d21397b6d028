// TRANSFER (move): brings the chunks of a prompt from host memory to a tier below, and may have them leave host memory.
// One actor per request.
#pragma once

#include "actors/transfer/transfer_arguments.hpp"
#include "base/tier_properties.hpp"
#include "tier/objects/move_plan.hpp"

namespace terrace::actors {

struct move_job {
  group_ptr group;
  tier_kind to = nowhere; ///< a tier below with a write-through
  space_ptr space;
  std::shared_ptr<const std::vector<digest>> chunks;
  std::optional<digest> before; ///< the chunk before the first, if known
  context_ptr context;
  bool stays = false; ///< in host memory as well
};
struct move_result {
  error failure; ///< what ended the request
  moved_chunks sum;
};

/// Answers a `move_job` with a `move_result`, and ends.
caf::actor spawn_move(caf::actor_system& system);

} // namespace terrace::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(terrace::actors::move_job)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(terrace::actors::move_result)

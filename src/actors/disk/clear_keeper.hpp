// CLEAR KEEPER: a thread for one clear that a group's volume cannot record now: writes it to the state
// directory, answers, and ends. The next opening of the volume reads it (disk_opening.hpp).
#pragma once

#include "actors/transfer/transfer_arguments.hpp"
#include "storage/pending_clear.hpp"

#include <caf/typed_actor.hpp>

#include <caf/allowed_unsafe_message_type.hpp>

namespace terrace::actors {

/// From a connection. (delayed: until it is durable)
struct remember_clear_request {
  pending_clear what;
};
struct remember_clear_answer {
  error
      failure; ///< `busy`: the volume is being opened; otherwise the volume, and why the clear cannot be kept
};

} // namespace terrace::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(terrace::actors::remember_clear_request)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(terrace::actors::remember_clear_answer)

namespace terrace::actors {

using clear_keeper_actor =
    caf::typed_actor<caf::replies_to<remember_clear_request>::with<remember_clear_answer>>;

clear_keeper_actor spawn_clear_keeper(caf::actor_system& system, group_ptr group);

} // namespace terrace::actors

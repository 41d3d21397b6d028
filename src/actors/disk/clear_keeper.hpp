// CLEAR KEEPER: a thread for one clear that a group's volume cannot record now. It writes the clear to the
// state directory, answers, and ends (storage/disk/clear_record.hpp).
#pragma once

#include "actors/transfer/transfer_arguments.hpp"

namespace terrace::actors {

clear_keeper_actor spawn_clear_keeper(caf::actor_system& system, group_ptr group);

} // namespace terrace::actors

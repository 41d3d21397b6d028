// GROUP: the spaces and leases of a trust group, by id.
#pragma once

#include "actors/interfaces.hpp"

#include <caf/fwd.hpp>

#include <chrono>
#include <string>

namespace terrace::actors {

struct group_arguments {
  std::string name;
  std::chrono::milliseconds lease_warn_after{60000};
};

group_actor spawn_group(caf::actor_system& system, group_arguments arguments);

} // namespace terrace::actors

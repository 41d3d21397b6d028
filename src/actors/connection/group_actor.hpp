// GROUP: the spaces and leases of a trust group, by id.
#pragma once

#include "actors/interfaces.hpp"

#include <caf/fwd.hpp>

namespace terrace::actors {

/// `isolated`: spaces with forgeable digests are refused.
group_actor spawn_group(caf::actor_system& system, const space_registry::options& spaces);

} // namespace terrace::actors

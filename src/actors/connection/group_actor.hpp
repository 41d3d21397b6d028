// GROUP: the spaces and leases of a trust group, by id.
#pragma once

#include "actors/interfaces.hpp"
#include "tier/edge_credit.hpp"

#include <caf/fwd.hpp>

namespace terrace::actors {

/// `spaces.isolated`: spaces with forgeable digests are refused.
/// `notices`: from connections, of leases that begin and end.
group_actor spawn_group(caf::actor_system& system, const space_registry::options& spaces,
                        std::shared_ptr<edge_credit> notices = std::make_shared<edge_credit>());

} // namespace terrace::actors

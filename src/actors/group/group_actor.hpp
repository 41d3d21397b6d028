// GROUP: the spaces, leases and sessions of a trust group, by id.
#pragma once

#include "actors/interfaces.hpp"
#include "base/credit_gate.hpp"
#include "metrics/client_probe.hpp"
#include "tier/search/lease_ledger.hpp"

#include <caf/fwd.hpp>

namespace terrace::actors {

struct trust_group;

/// Spawns the group. `spaces.isolated`: spaces with forgeable digests are refused. `notices`: credit of
/// connections' notices that leases begin and end. `group`: its tiers are notified of forgotten spaces; it
/// may be set up later, and may be absent in tests. `held`: charged with what sessions hold. `prompts`:
/// bounds of the prompts whose logits are kept.
group_actor spawn_group(caf::actor_system& system, const space_registry::options& spaces,
                        std::shared_ptr<credit_gate> notices = std::make_shared<credit_gate>(),
                        std::weak_ptr<const trust_group> group = {}, const session_bounds& sessions = {},
                        std::shared_ptr<metrics::client_probe> probe = nullptr, account_ptr held = nullptr,
                        const prompt_bounds& prompts = {});

// SESSION: a conversation that has had a turn lately.

/// Spawns the actor of a session. It owns `what` until it is parked or its group ends it.
session_actor spawn_session(caf::actor_system& system, group_actor group, const session_id& id,
                            session turns);

} // namespace terrace::actors

// The result of a client's lookup: its lease, the outcome that others receive, and the hit counters.
#pragma once

#include "group/group_messages.hpp"
#include "group/lookup_registry.hpp"
#include "index/prefix_plan.hpp"
#include "index/prefix_resolver.hpp"
#include "metrics/space_table.hpp"
#include "tier/search/found_prefix.hpp"

#include <chrono>
#include <memory>

namespace terrace {

/// Returns a lease on the found chunks of the prefix.
lease_ptr lease_on(const lookup_answer& found, const chunk_prefix& prefix, space_ptr in, lease_id id,
                   connection_id owner, std::chrono::steady_clock::time_point now,
                   reference_kind taken_for = reference_kind::lease);

/// Returns the outcome for requests that wait for the lookup. `held`: the lease, or null if there is none.
lookup_outcome outcome_of(const lookup_answer& found, const space_spec& spec, const lease_ptr& held);

/// Counts the requested tokens, and the found ones by tier.
void count_hits(metrics::space_probe& probe, const space_spec& spec, const prefix_plan& plan);

} // namespace terrace

// What a lookup of a client has found: a lease on it, what others are told of it, and what is counted.
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

/// On the found chunks of the prefix.
lease_ptr lease_on(const lookup_answer& found, const chunk_prefix& prefix, space_ptr in, lease_id id,
                   connection_id owner, std::chrono::steady_clock::time_point now,
                   reference_kind taken_for = reference_kind::lease);

/// For those who wait for the lookup. `held`: the lease; null: none.
lookup_outcome outcome_of(const lookup_answer& found, const space_spec& spec, const lease_ptr& held);

/// Counts the tokens that were asked for, and those that were found, by tier.
void count_hits(metrics::space_probe& probe, const space_spec& spec, const prefix_plan& plan);

} // namespace terrace

// Compares what a tier, its policy and its allocator say about the same objects. Returns a sentence for each
// difference.
//
// Pure: the actor that owns the arguments calls each function, in one turn.
#pragma once

#include "memory/allocator.hpp"
#include "policy/eviction_tracker.hpp"
#include "tier/objects/check_messages.hpp"
#include "tier/objects/residency.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace terrace {

constexpr uint32_t check_slots = 256; ///< slots of a tier that are looked at in a turn

/// Checks the next slots of the recount: adds their objects, and names those that the index does not
/// lead to. The recount must be in progress. Returns false if all slots were looked at before.
bool check_index(residency& objects, checked_slice& into, std::vector<std::string>& differences);

/// Call after the last slot: checks the totals of the table, and the charges of its tenants.
std::vector<std::string> check_totals(residency& objects);

/// Checks that the policy knows exactly the objects that lookups find, and as pinned those that it was told of.
std::vector<std::string> check_policy(const eviction_tracker& policy, const checked_slice& slice);

/// Checks that each object has its extent.
std::vector<std::string> check_extents(const allocator& space, const checked_slice& slice);

/// Checks that nobody else has an extent. `granted` are extents given out for the tier, which had not been
/// told of them when the slice was made.
std::vector<std::string> check_space_totals(const allocator_usage& usage, const checked_slice& slice,
                                            const table_totals::sum& granted);

} // namespace terrace

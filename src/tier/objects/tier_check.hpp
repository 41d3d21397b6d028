// What a tier, its policy and its allocator say about the same objects. A sentence for each difference.
//
// Pure: each is called by the actor that owns its arguments, in one turn.
#pragma once

#include "memory/allocator.hpp"
#include "policy/eviction_tracker.hpp"
#include "tier/objects/check_messages.hpp"
#include "tier/objects/residency.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace terrace {

constexpr uint32_t check_slots = 256; ///< of a tier, looked at in a turn

/// The next slots of the table's recount: their objects, and those that the index does not lead to. The recount must be in
/// progress. False: all slots were looked at before.
bool check_index(residency& objects, checked_slice& into, std::vector<std::string>& differences);

/// After the last slot: the totals of the table, and what its tenants are charged.
std::vector<std::string> check_totals(const residency& objects);

/// The policy knows exactly the objects that lookups find, and as pinned those that somebody holds.
std::vector<std::string> check_policy(const eviction_tracker& policy, const checked_slice& slice);

/// Each object has its extent.
std::vector<std::string> check_extents(const allocator& space, const checked_slice& slice);

/// And nobody else has one. `granted`: given out for the tier, which has not heard of it when the slice was made.
std::vector<std::string> check_space_totals(const allocator_usage& usage, const checked_slice& slice,
                                            const table_totals::sum& granted);

} // namespace terrace

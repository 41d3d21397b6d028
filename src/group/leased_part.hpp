// The part of a lease that a transfer is for.
#pragma once

#include "group/group_messages.hpp"
#include "group/lookup_registry.hpp"
#include "index/chunk_layout.hpp"
#include "index/prefix_plan.hpp"
#include "index/prefix_resolver.hpp"
#include "index/transfer_scope.hpp"
#include "metrics/space_table.hpp"
#include "tier/objects/scope_objects.hpp"
#include "tier/search/found_prefix.hpp"

#include <chrono>
#include <cstddef>
#include <memory>
#include <vector>

namespace terrace {

// The result of a client's lookup: its lease, the outcome that others receive, and the hit counters.

/// Returns a lease on the found chunks of the prefix.
lease_ptr lease_on(const lookup_answer& found, const chunk_prefix& prefix, space_ptr space, lease_id id,
                   connection_id owner, std::chrono::steady_clock::time_point now,
                   reference_kind taken_for = reference_kind::lease);

/// Returns the outcome for requests that wait for the lookup. `held`: the lease, or null if there is none.
lookup_outcome outcome_of(const lookup_answer& found, const space_spec& spec, const lease_ptr& held);

/// Counts the requested tokens, and the found ones by tier: what was brought to host memory for the lookup where it came from.
void count_hits(metrics::space_probe& probe, const space_spec& spec, const lookup_answer& found);

/// Maps objects of a scope on one rank to their numbers in a lease or another prefix
/// (index/chunk_layout.hpp).
class scope_numbers {
 public:
  scope_numbers(const space_spec& spec, const transfer_scope& scope, uint16_t rank);
  size_t of(size_t object) const { ///< `object` is a number in the scope, see `scope_objects`
    return first_ + object / in_chunk_.size() * per_chunk_ + in_chunk_[object % in_chunk_.size()];
  }

 private:
  size_t first_, per_chunk_;
  std::vector<size_t> in_chunk_; ///< the numbers within a chunk of the scope's objects
};

/// The objects of a scope on one rank that a lease holds, by tier; parallel to those of `scope_objects`. They
/// keep the lease alive. The part is made in steps.
///
/// Pure: used by one thread at a time.
class leased_part {
 public:
  static constexpr size_t step_objects = 4'096; ///< one step takes well below a millisecond

  leased_part(lease_ptr from, const transfer_scope& scope, uint16_t rank);
  /// Makes the next step. Returns true once the part is complete.
  bool step();
  tier_holds take(); ///< call once, after `step` returned true

 private:
  lease_ptr from_;
  size_t objects_;
  scope_numbers numbers_;
  size_t done_ = 0;
  std::vector<std::vector<object_place>> places_; ///< per tier of the lease
};

/// Returns the subject for `scope_objects`. It keeps the lease alive.
inline scope_subject subject_of(const lease_ptr& from, const transfer_scope& scope, uint16_t rank) {
  return {from->space, {from, &from->chunks}, from->before, scope, rank};
}

/// Position in the prompt of the first token of a range of the lease's chunks.
inline uint64_t token_of(const lease& from, const chunk_range& range) {
  return from.first_token + range.first * from.space->spec.chunk_tokens;
}

} // namespace terrace

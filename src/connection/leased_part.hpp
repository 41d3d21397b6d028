// The part of a lease that a transfer is for.
#pragma once

#include "connection/group_messages.hpp"
#include "index/transfer_scope.hpp"
#include "tier/scope_objects.hpp"

namespace terrace {

/// The objects that the lease holds, by tier, of the scope on one rank; parallel to those of `scope_objects`. They keep
/// the lease.
tier_holds leased_part(const lease_ptr& from, const transfer_scope& scope, uint16_t rank);

/// For `scope_objects`; keeps the lease.
inline scope_subject subject_of(const lease_ptr& from, const transfer_scope& scope, uint16_t rank) {
  return {from->in, {from, &from->chunks}, from->before, scope, rank};
}

/// The position in the prompt at which a range of the lease's chunks begins.
inline uint64_t token_of(const lease& from, const chunk_range& range) {
  return from.first_token + range.first * from.in->spec.chunk_tokens;
}

} // namespace terrace

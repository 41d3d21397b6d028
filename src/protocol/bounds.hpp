// Bounds of the wire tables (limits.hpp has the numbers), beyond what a FlatBuffer verifier checks. Pure
// functions. verbs.def assigns them to tables; checks that need more than one expression are functions here.
// Checks that need the daemon's state (is the space known? is `parent_tokens` a multiple of its chunk size?)
// are done where that state is.
#pragma once

#include "base/digest.hpp"
#include "base/error.hpp"
#include "base/ids.hpp"
#include "protocol/terrace_generated.h"

#include <cstdint>

namespace terrace::protocol {

using byte_vector = flatbuffers::Vector<uint8_t>;
using run_vector = flatbuffers::Vector<const wire::Run*>;

result<void> check(const wire::Prefix& prefix);
result<void> check(const wire::Options* options);

result<void> check(const wire::Hello& table);
result<void> check(const wire::OpenSpace& table);
result<void> check(const wire::RegisterRegion& table);
result<void> check(const wire::Lookup& table);
result<void> check(const wire::AwaitLookup& table);
result<void> check(const wire::Announce& table);
result<void> check(const wire::Follow& table);
result<void> check(const wire::ReadLease& table);
result<void> check(const wire::Load& table);
result<void> check(const wire::Prefetch& table);
result<void> check(const wire::Store& table);
result<void> check(const wire::Reserve& table);
result<void> check(const wire::Cancel& table);
result<void> check(const wire::EndInference& table);
result<void> check(const wire::SetPolicy& table);
result<void> check(const wire::Pin& table);
result<void> check(const wire::Unpin& table);
result<void> check(const wire::Evict& table);
result<void> check(const wire::Explain& table);
result<void> check(const wire::Move& table);
result<void> check(const wire::Quota& table);

result<void> check(const wire::OpenSession& table);
result<void> check(const wire::SaveSession& table);
result<void> check(const wire::SavePrompt& table);

result<void> check(const wire::LookupAnswer& table);
result<void> check(const wire::SaveSessionAnswer& table);
result<void> check(const wire::ForkSessionAnswer& table);
result<void> check(const wire::SessionsAnswer& table);
result<void> check(const wire::LeasesAnswer& table);
result<void> check(const wire::RecentLookupsAnswer& table);
result<void> check(const wire::StatusAnswer& table);
result<void>
check_pools(const flatbuffers::Vector<flatbuffers::Offset<wire::OpenPool>>* pools); ///< for answers
result<void> check_locations(const flatbuffers::Vector<const wire::Location*>& locations);

struct run_totals {
  uint64_t pieces = 0; ///< the sum of the counts
  uint64_t bytes = 0;
};

/// True if every piece of every run is inside [0, region_bytes); cannot overflow. `parse` checks this with
/// `region_bytes_max` for up to 16,384 runs. A daemon checks all runs, with the size of the region, in slices
/// (transfer/scatter_gather.hpp).
result<run_totals> check_runs(const run_vector& runs, uint64_t region_bytes);

// ---- reading what was checked ----

inline uint32_t digest_count(const wire::Prefix& prefix) {
  return prefix.digests() ? prefix.digests()->size() / prefix.digest_width() : 0;
}

inline digest digest_at(const wire::Prefix& prefix, uint32_t i) {
  size_t width = prefix.digest_width();
  return digest::from({prefix.digests()->data() + i * width, width});
}

/// Returns an empty id for an absent vector. `check` refuses sizes other than 16 bytes.
inline lease_id to_lease_id(const byte_vector* bytes) {
  lease_id id;
  if (bytes && bytes->size() == id.bytes.size())
    std::memcpy(id.bytes.data(), bytes->data(), id.bytes.size());
  return id;
}

inline lookup_id to_lookup_id(const byte_vector* bytes) { return {to_lease_id(bytes).bytes}; }

} // namespace terrace::protocol

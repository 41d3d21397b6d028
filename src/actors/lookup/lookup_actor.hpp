// LOOKUP: serves one lookup request at a time. It asks host memory and faster tiers in parallel, then the others for what
// is missing there, merges the answers into a plan, and keeps holds if a lease is requested. Its connection reuses it.
#pragma once

#include "actors/group/trust_group.hpp"
#include "runtime/home.hpp"
#include "tier/objects/object_source.hpp"
#include "tier/search/found_prefix.hpp"

#include <optional>

namespace terrace::actors {

struct lookup_request : prefix_subject {
  group_ptr group;
  object_source objects;     ///< objects of all ranks (index/chunk_layout.hpp)
  uint32_t tiers = 0;        ///< bit n: tier_kind n may be searched; 0: all
  bool object_tiers = false; ///< the plan in the answer includes them
  bool copies = false;       ///< what is held in host memory is held in the tiers below as well
  bool asks_store = true; ///< a store that other machines write to may be asked for what is not known of it
  account_ptr account;    ///< account of the connection for what is held; null: a new one
  context_ptr context;    ///< may be null; checked between slices
  /// Speed of the client; chunks that it computes faster are left out. 0: none are.
  uint32_t prefill_tokens_per_s = 0;
};

/// Spawns a lookup. It answers `lookup_request`, one at a time, and runs on its connection's worker: next to
/// a tier on another worker it would wait for that worker's own connections.
caf::actor spawn_lookup(caf::actor_system& system, const runtime::home& home);

/// Returns the answer, found in the turn of the caller without an actor. Nullopt: it takes a LOOKUP, because it is long,
/// holds what it finds, or depends on how fast the client computes, or because a tier is modifying its index; then nothing
/// has been counted. Takes up to 10 us.
std::optional<lookup_answer> look_up_at_once(const lookup_request& request);

} // namespace terrace::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(terrace::actors::lookup_request)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(terrace::lookup_answer)

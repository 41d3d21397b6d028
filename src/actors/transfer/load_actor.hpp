// TRANSFER (load): reads objects into host memory and copies them into a region. One actor per request; its
// connection reuses it.
//
// It works in windows: hold what is in host memory; read what only lower tiers have into reserved space and
// publish it; copy. While it waits for memory it holds none, so two loads cannot wait for each other. It
// always delivers whole chunks, starting with the first: under a lease everything that the lease holds,
// unless a tier lost it, or an error.
//
// Without a copy the objects of all windows stay held. Only the first window waits for memory; the result
// ends before the first object without room.
#pragma once

#include "actors/transfer/transfer_arguments.hpp"
#include "transfer/scatter_gather.hpp"

#include <array>
#include <memory>
#include <optional>

namespace terrace::actors {

struct load_job {
  group_ptr group;
  space_ptr in;
  batch_ptr objects;
  size_t objects_per_chunk = 1;
  tier_holds
      leased; ///< the objects that a lease holds, by tier; if none below the first, the load probes those tiers itself
  std::shared_ptr<const scatter_gather> runs; ///< null: nothing is copied, and the host objects stay held
  outside_memory target;
  std::shared_ptr<const lease> held_by; ///< the lease of the load, kept until it is done; may be null
  account_ptr account;                  ///< without runs: of the connection, for what stays held; may be null
  context_ptr context;
  bool note_access = true;
};

struct load_result {
  error failure;                 ///< what ended it early; chunks delivered before remain valid
  size_t chunks = 0;             ///< delivered
  std::optional<size_t> missing; ///< the object that ended it before the end; none if it did not fit
  bool damaged = false;          ///< `missing` could not be read, or its bytes were wrong
  uint64_t bytes = 0;
  std::array<uint64_t, 4> bytes_by_tier{}; ///< by tier_kind in which they were found
  std::vector<object_place> places;        ///< without runs: of the delivered objects in host memory
  std::vector<hold_ptr> holds;             ///< without runs: keep them there
};

/// Answers a `load_job` with a `load_result`. Then it takes another, or ends if the result is a failure.
caf::actor spawn_load(caf::actor_system& system);

} // namespace terrace::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(terrace::actors::load_job)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(terrace::actors::load_result)

// TRANSFER (store): copies objects from a region or from staging memory into the host tier and publishes
// them. One actor per request; its connection reuses it.
//
// Window by window: reserve absent objects, copy, publish. Objects that are present, or being written by
// another request, are not copied again. An object is invisible until it is complete. Write-through to disk
// follows independently.
#pragma once

#include "actors/transfer/transfer_arguments.hpp"
#include "transfer/scatter_gather.hpp"

#include <memory>

namespace terrace::actors {

struct store_job {
  group_ptr group;
  space_ptr space;
  batch_ptr objects;
  size_t objects_per_chunk = 1;
  std::shared_ptr<const scatter_gather> runs;
  outside_memory source;
  context_ptr context;
};

struct store_result {
  error failure;             ///< what ended it early; chunks stored before remain
  size_t stored_chunks = 0;  ///< of which at least one object was copied
  size_t present_chunks = 0; ///< which were completely present
  uint64_t bytes = 0;        ///< copied
};

/// Answers a `store_job` with a `store_result`. Then it takes another, or ends if the result is a failure.
caf::actor spawn_store(caf::actor_system& system);

} // namespace terrace::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(terrace::actors::store_job)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(terrace::actors::store_result)

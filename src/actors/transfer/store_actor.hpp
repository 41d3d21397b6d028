// TRANSFER (store): copies objects from a region or from staging memory into the host tier and publishes them. One actor
// for each request; its connection gives it another when it is done.
//
// Window by window: reserve what is absent, copy, publish. What is there already, or being written by somebody else, is
// not copied again. An object is invisible until its last byte is in place. Write-through to disk follows on its own.
#pragma once

#include "actors/transfer/transfer_arguments.hpp"
#include "transfer/scatter_gather.hpp"

#include <memory>

namespace terrace::actors {

struct store_job {
  group_ptr group;
  space_ptr in;
  batch_ptr objects;
  size_t objects_per_chunk = 1;
  std::shared_ptr<const scatter_gather> runs;
  outside_memory source;
  context_ptr context;
};

struct store_result {
  error failure;             ///< what ended it early; what was stored before stays
  size_t stored_chunks = 0;  ///< of which at least one object was copied
  size_t present_chunks = 0; ///< of which everything was there
  uint64_t bytes = 0;        ///< copied
};

/// The actor answers a `store_job` with a `store_result`. Thereafter it takes another, or ends when the result is a failure.
caf::actor spawn_store(caf::actor_system& system);

} // namespace terrace::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(terrace::actors::store_job)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(terrace::actors::store_result)

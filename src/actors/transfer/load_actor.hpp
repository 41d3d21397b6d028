// TRANSFER (load): brings objects up to host memory, and from there into a region. One actor for each request;
// its connection gives it another when it is done.
//
// It works in windows: hold what is in host memory; read what only disk has into reserved space, check it, publish it;
// copy. While it waits for memory it holds none, so two loads cannot wait for each other. What it delivers is always
// whole chunks from the first on: under a lease all that the lease holds, unless the disk lost it, or an error.
//
// Without a copy the objects of all windows stay held. Only the first window waits for memory; the result ends before the
// first that there is no room for.
#pragma once

#include "actors/transfer/transfer_arguments.hpp"
#include "transfer/scatter_gather.hpp"

#include <array>
#include <memory>

namespace terrace::actors {

struct load_job {
  group_ptr group;
  space_ptr in;
  batch_ptr objects;
  size_t objects_per_chunk = 1;
  hold_ptr disk_held;                         ///< of a lease; null: the load asks the disk tier itself
  hold_ptr host_held;                         ///< of the lease; null: it holds nothing in host memory
  std::shared_ptr<const scatter_gather> runs; ///< null: nothing is copied, the host objects stay held instead
  outside_memory target;
  std::shared_ptr<const lease> held_by; ///< by which it loads, kept until it is done; may be null
  context_ptr context;
  bool note_access = true;
};

struct load_result {
  error failure;     ///< what ended it early; what was delivered before stands
  size_t chunks = 0; ///< delivered
  uint64_t bytes = 0;
  std::array<uint64_t, 4> bytes_by_tier{}; ///< by tier_kind: where they were found
  std::vector<object_place> places;        ///< without runs: in host memory, of the delivered objects
  std::vector<hold_ptr> holds;             ///< without runs: what keeps them there
};

/// The actor answers a `load_job` with a `load_result`. Thereafter it takes another, or ends when the result is a failure.
caf::actor spawn_load(caf::actor_system& system);

} // namespace terrace::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(terrace::actors::load_job)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(terrace::actors::load_result)

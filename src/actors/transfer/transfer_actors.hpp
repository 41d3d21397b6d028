// The transfers of a trust group, one actor per request: what each is asked, what it answers, and how it is spawned.
#pragma once

#include "actors/group/trust_group.hpp"
#include "base/tier_properties.hpp"
#include "tier/objects/move_plan.hpp"
#include "transfer/load_plan.hpp"
#include "transfer/prefetch_plan.hpp"
#include "transfer/scatter_gather.hpp"

#include <memory>

namespace terrace::actors {

// TRANSFER (load): reads objects into host memory and copies them into a region. One actor per request; its
// connection reuses it.
//
// A load works in windows: it holds what is in host memory, reads what only lower tiers have into reserved space,
// publishes it, and copies. While it waits for memory it holds none, so two loads cannot wait for each other. It
// always delivers whole chunks, starting with the first: under a lease everything that the lease holds,
// unless a tier lost it, or an error.
//
// Without a copy the objects of all windows stay held. Only the first window waits for memory; the result
// ends before the first object without room.

struct load_job : load_subject {
  group_ptr group;
};

/// Answers a `load_job` with a `load_result`. Then it takes another, or ends if the result is a failure.
caf::actor spawn_load(caf::actor_system& system);

// TRANSFER (store): copies objects from a region or from staging memory into the host tier and publishes
// them. One actor per request; its connection reuses it.
//
// Window by window: reserve absent objects, copy, publish. Objects that are present, or being written by
// another request, are not copied again. An object is invisible until it is complete. Write-through to disk
// follows independently.

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

// TRANSFER (prefetch): brings objects from lower tiers into host memory, or a faster tier, before anybody loads them. One actor per
// request.
//
// Several windows are in progress at a time, so that one is read while another is verified. A window holds what it
// reserves only while it is read: a prefetch that waits for memory, or for others that write the same objects, waits for
// nobody who waits for it. To a tier above host memory, what that lacks of a window is brought to host memory and from there to
// the tier by its write-through, at the cost of a credit. Windows that are being read when it is stopped are completed, and their objects stay.

struct prefetch_job : prefetch_subject {
  group_ptr group;
  std::shared_ptr<const prefix_plan> found, expected; ///< see prefetch_plan
};

/// From the connection, once the request has ended: the answer tells what is there by now.
struct stop_prefetch_notice {};

/// Answers a `prefetch_job` with a `prefetch_result`, at the latest after a `stop_prefetch_notice`. Ends after its last
/// window.
caf::actor spawn_prefetch(caf::actor_system& system);

// TRANSFER (move): brings the chunks of a prompt from host memory to a tier below, and may have them leave host memory.
// One actor per request.

struct move_job {
  group_ptr group;
  tier_kind to = nowhere; ///< a tier below with a write-through
  space_ptr space;
  std::shared_ptr<const std::vector<digest>> chunks;
  std::optional<digest> before; ///< the chunk before the first, if known
  context_ptr context;
  bool stays = false; ///< in host memory as well
};
struct move_result {
  error failure; ///< what ended the request
  moved_chunks sum;
};

/// Answers a `move_job` with a `move_result`, and ends.
caf::actor spawn_move(caf::actor_system& system);

} // namespace terrace::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(terrace::actors::load_job)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(terrace::load_result)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(terrace::actors::store_job)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(terrace::actors::store_result)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(terrace::actors::prefetch_job)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(terrace::actors::stop_prefetch_notice)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(terrace::prefetch_result)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(terrace::actors::move_job)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(terrace::actors::move_result)

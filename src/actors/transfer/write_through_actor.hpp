// WRITE-THROUGH: writes objects stored in host memory to a tier below as well, after the client was answered.
//
// It receives `write_through_notice`. Each notice's hold keeps its objects in host memory until they are on
// disk or cannot be, so a host tier under pressure waits for the disk instead of losing what was stored. It
// needs no host memory of its own, so it always makes progress. What may wait for the disk is bounded by
// credits (transfer/write_queue.hpp), which stores request before they take memory: `write_credit_request` ->
// `write_credit_answer`.
//
// A tier that gives objects up, or whose objects are used again, and a move send `demote_request`: the objects take the same way.
// Those for which a round of eviction waits go before all others, and without a credit: no transfer that waits holds any for
// them.
//
// What a tier above host memory gives up takes this way, too, the other way round: `to` is host memory, and the mover is that
// of the tier above. Host memory must not wait for it either. What arrives there goes on to
// tiers further down that get all that is stored (`tier_joined_notice`).
//
// Objects that may be replaced in host memory wait before they are written, at most 200 ms, and less if they hold a quarter of
// what may wait or somebody waits for credit (transfer/write_queue.hpp).
//
// A chunk that is already on disk is not written again. Others must be admitted: by the policy if the rule is
// not `always`, then by the budget of bytes. Objects are in chain order; after one that is rejected the
// rest is rejected as well, because lookups would not find it on disk alone.
#pragma once

#include "actors/group/trust_group.hpp"
#include "actors/interfaces.hpp"
#include "runtime/home.hpp"
#include "tier/space/write_credit.hpp"

#include <caf/actor.hpp>
#include <caf/send.hpp>
#include <memory>
#include <utility>

namespace terrace::actors {

// Returns write credits to the write-through actor.

/// Safe on any thread. Keeps the actor's memory alive, not the actor: after its end the messages are dropped.
class actor_credit_sink final : public credit_sink {
 public:
  explicit actor_credit_sink(caf::actor write_through) : write_through_(std::move(write_through)) {}
  void give_back(uint64_t bytes) override { caf::anon_send(write_through_, write_credit_notice{bytes}); }

 private:
  caf::actor write_through_;
};

struct write_through_arguments {
  tier_handle from, to; ///< one of the two is host memory
  policy_actor policy;
  std::shared_ptr<segmented_arena> memory;
  uint64_t waiting_bytes =
      UINT64_MAX; ///< bytes of `from` that may wait to be written (transfer/write_queue.hpp)
  std::shared_ptr<event_log> log = nullptr; ///< is told of objects that `to` does not take; may be null
  context_ptr work = nullptr;               ///< of its writes, whose flow is the trust group's; may be null
  runtime::home home{};                     ///< has a clock; none: replaceable objects do not wait

  direction way() const { return to.mover ? direction::out_of_host : direction::into_host; }
};

write_through_actor spawn_write_through(caf::actor_system& system, write_through_arguments arguments);

} // namespace terrace::actors

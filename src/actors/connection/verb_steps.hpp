// Steps that several verbs have: the chunks of a prompt, the turn of a session, the objects and runs of a transfer, the jobs that move them, and
// whom their access concerns.
#pragma once

#include "actors/connection/request.hpp"
#include "actors/transfer/transfer_actors.hpp"
#include "group/session_turn.hpp"
#include "tier/objects/scope_objects.hpp"
#include "transfer/scatter_gather.hpp"

#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace terrace::actors {

// The chunks of a request's prompt, with the turn of a session that it may be. Awaited by verbs, like what request.hpp has.

/// A turn of a session whose tokens are hashed. The session changes when it is saved.
struct hashed_turn {
  session_id session;
  uint64_t generation = 0; ///< of the session when the turn began
  session_state_ptr after;
  bool held = false;         ///< mode of the session
  uint32_t held_chunks = 0;  ///< the first ones, which it held in host memory when the turn began
  uint32_t left_out = 0;     ///< chunks before the prefix
  departure_counts before{}; ///< of host memory; read before `left_out` was known
};

/// The chunks of a prompt, and the turn of the session that has them.
struct turn_prefix {
  chunk_prefix chunks;
  hashed_turn turn;
};

/// A verb says with it what it wants of a session's prompt.
struct turn_parts {
  bool tail = false; ///< the tokens after the last whole chunk are a chunk, too
  bool rest =
      false; ///< without the first chunks that are known to be in host memory (index/known_prefix.hpp)
};

session_id to_session_id(const flatbuffers::Vector<uint8_t>* bytes);

/// Does what `client_request::chunks` does, and a partial chunk may be without a session: for prompts that are named by all of their
/// tokens.
task<chunk_prefix> prompt_chunks(client_request& request, const client_space& opened,
                                 const wire::Prefix& prefix, bool leading = false);
/// Resolves the chunks that are about to be stored or saved, see `client_request::tail`.
task<chunk_prefix> stored_chunks(client_request& request, const client_space& opened,
                                 const wire::Prefix& prefix);
/// A turn of a session: its tokens up to a base, and those that were sent. `prefix` names a session.
task<turn_prefix> turn_of_session(client_request& request, const client_space& opened,
                                  const wire::Prefix& prefix, turn_parts wanted);
/// The session, for a turn that ends at `tokens` (0: no turn).
task<session_use> used_session(client_request& request, session_id wanted, uint64_t tokens);
/// The session has the tokens of the turn, unless it has ended since. Refused with `gone` if another turn has changed it.
/// Returns why the session does not hold `hold`; empty: it does, or there is nothing to hold.
task<std::string> save_turn(client_request& request, const hashed_turn& turn,
                            std::optional<session_hold> hold);

// ---- what is moved ----

/// Objects of a lease, and what it holds of them, by tier.
struct leased_objects {
  batch_ptr objects;
  tier_holds held;
};

/// The part of a prompt that a transfer is for.
struct prefix_objects {
  std::shared_ptr<const chunk_prefix> prefix;
  transfer_scope scope;
  batch_ptr objects;
};

/// The runs of a load or store, in its frame.
struct run_lists {
  const protocol::run_vector* runs = nullptr;
  const flatbuffers::Vector<uint32_t>* per_object = nullptr; ///< null: one run each
};

/// The speed at which this client computes, also where the lease is another's; 0: it has not declared any.
uint32_t declared_speed(connected_client& client, const wire::Options* options, const space_ptr& space);

/// What a client has got of a prompt: the KV of these tokens, in some pools of a space.
struct delivered_tokens {
  space_ptr space;
  size_t pools = 0;
  uint64_t tokens = 0;
  clock::time_point began; ///< of its request
};

/// Counts the computing that it has spared a client of this speed; 0: nothing is counted.
void count_spared(const connected_client& client, uint32_t tokens_per_s, const delivered_tokens& got);

/// The objects of a transfer, for which the request takes room.
task<batch_ptr> transfer_objects(client_request& request, scope_subject subject);
task<leased_objects> transfer_objects(client_request& request, lease_ptr from, transfer_scope scope,
                                      uint16_t rank);
/// The part of the prefix that the request selects. `stored`: see `stored_chunks`.
template <class Request>
task<prefix_objects> transfer_objects(client_request& request, client_space_ptr space_of,
                                      const Request& asked, bool stored) {
  chunk_prefix prefix;
  const wire::Prefix& sent = *asked.prefix();
  const client_space& space = *space_of;
  if (stored) {
    prefix = co_await stored_chunks(request, space, sent);
  } else {
    prefix = co_await request.chunks(space, sent);
  }
  auto part = terrace::prefix_scope_of(asked, space_of->space->spec, prefix.chunks.size());
  co_await request.valid(part);
  prefix_objects made{std::make_shared<const chunk_prefix>(std::move(prefix)), std::move(*part), nullptr};
  scope_subject subject{
      space_of->space, {made.prefix, &made.prefix->chunks}, made.prefix->parent, made.scope, space_of->rank};
  made.objects = co_await transfer_objects(request, std::move(subject));
  co_return made;
}
/// Runs, checked against the objects and the region.
task<std::shared_ptr<const scatter_gather>> checked_runs(client_request& request, const run_lists& sent,
                                                         batch_ptr objects, uint64_t region_bytes);

/// A question about a prefix, in all tiers.
lookup_request lookup_of(const client_request& request, const space_ptr& space,
                         const std::shared_ptr<const chunk_prefix>& prefix);

// ---- who moves it, and who hears of it ----

/// The result of a job, which may be a failure. The frame's body is released. `spawn`: for a new actor, if none of `idle` is.
template <class Result, class Job>
task<Result> run_job(client_request& request, actor_pool& idle, caf::actor (*spawn)(caf::actor_system&),
                     Job job) {
  request.release_body();
  caf::actor worker = idle.take([&] { return spawn(request.actor.system()); });
  auto done = co_await request.try_ask<Result>(worker, std::move(job), "the transfer's actor has ended");
  if (!done) {
    Result lost;
    lost.failure = done.error();
    co_return lost;
  }
  if (done->failure.code == errc::ok)
    idle.put_back(std::move(worker));
  co_return std::move(*done);
}

/// A step of a read, after which the client may read these locations. True: there is another step. Nullopt: at the
/// limit, or the lease has ended; the request is refused.
std::optional<bool> read_some(client_request& request, lease_reading& work);
/// Notifies the policy of the inference's access to these objects, root first, unless the request belongs to none.
void use_for_inference(client_request& request, const wire::Options* options, object_source objects);
/// The same for shadow policies, for any access.
void tell_shadows(client_request& request, const wire::Options* options, const space_ptr& space,
                  std::shared_ptr<const chunk_prefix> prefix, std::optional<uint16_t> rank = {});

// ---- where it comes from and goes ----

/// The object that ended the load early, by the numbers of the wire.
inline std::optional<wire::Missing> missing_of(const load_result& done, const transfer_scope& scope,
                                               uint16_t rank, const space_spec& spec) {
  if (!done.missing)
    return std::nullopt;
  prefix_object object = scope.object(*done.missing, spec, rank);
  return wire::Missing(object.chunk, object.pool, object.rank, done.damaged);
}

/// A region for copiers; kept until the last copy of the result is destroyed.
outside_memory outside(const std::shared_ptr<const client_region>& region);

// The tier to which a prefetch or a move brings chunks.

/// Whether chunks can be brought up to this tier now, which is host memory or a faster one; otherwise the request is refused.
bool can_bring_to(client_request& request, tier_kind to);

/// What comes into the tier may take so many bytes there, so that a chain does not evict its own beginning.
uint64_t room_to_bring(const trust_group& group, tier_kind to);

} // namespace terrace::actors

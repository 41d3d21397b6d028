// save_session: a turn has ended; a held session holds what the tiers have of its chunks.
#include "actors/connection/verbs.hpp"
#include "base/random_id.hpp"
#include "connection/request_values.hpp"
#include "group/found_lease.hpp"
#include "group/session_holds.hpp"
#include "index/chunk_layout.hpp"

#include <algorithm>

namespace terrace::actors::verbs {

namespace {

/// Nothing is saved unless all pools and ranks have the turn's partial chunk.
task<> find_tail(client_request& request, space_ptr space, digest key) {
  auto tail = std::make_shared<chunk_prefix>();
  tail->chunks.push_back(key);
  auto question = request.question(space, tail);
  question.plan = {1, 0, space->spec.chunk_tokens + 1}; // as if the prompt went on
  auto found = co_await request.look_up(std::move(question));
  if (found.plan.found_chunks != 0)
    co_return;
  std::string which = "an object";
  if (const auto& missing = found.plan.missing)
    which = "pool " + space->spec.pools[missing->pool].name + " of rank " + std::to_string(missing->rank);
  error why{errc::not_found, which +
                                 " of the turn's partial chunk is in no tier: the session stays at its last "
                                 "saved turn; store the tail in all pools and on all ranks, and then save"};
  co_await request.valid(why);
}

saved_turn_ptr end_of_turn(const space_ptr& space, const chunk_prefix& prefix,
                           std::span<const uint64_t> cursors) {
  auto end = std::make_shared<saved_turn>();
  end->in = space;
  end->chunks = prefix.whole_chunks();
  end->tail_tokens = prefix.tail_tokens;
  end->key = prefix.chunks.back();
  end->cursors.assign(cursors.begin(), cursors.end());
  return end;
}

uint64_t chunk_bytes(const space_spec& spec) {
  uint64_t bytes = 0;
  for (size_t pool = 0; pool < spec.pools.size(); ++pool)
    bytes += chunk_layout(spec).ranks(pool) * spec.pools[pool].object_bytes;
  return bytes;
}

/// What the tiers have of the turn's chunks, for its session to hold: charged to the sessions of the trust group.
task<session_hold> search_held(client_request& request, space_ptr space,
                               std::shared_ptr<const chunk_prefix> prefix, session_id id) {
  connected_client& client = request.client;
  uint64_t bytes_max = client.group().memory->size() / 100 * client.environment().limits.session_percent;
  auto question = request.question(space, prefix);
  question.hold = true;
  question.account = client.group().session_leases;
  lookup_request again = question;
  auto found = co_await request.look_up(std::move(question));
  uint64_t wanted_bytes = 0; // of host memory, if that is more than it is allowed to hold
  if (found.shortened) {
    uint64_t per_chunk = chunk_bytes(space->spec);
    if (uint64_t all = prefix->chunks.size() * per_chunk; all > bytes_max) {
      wanted_bytes = all;
    } else { // colder sessions give way
      const auto& group = client.group().group;
      yield_holds_request yield{id, (prefix->chunks.size() - found.plan.found_chunks) * per_chunk};
      co_await request.ask<yield_holds_answer>(group, std::move(yield), group_ended);
      found = {};
      co_await request.leases_ended();
      found = co_await request.look_up(std::move(again));
    }
  }
  if (found.plan.found_chunks == 0)
    co_return session_hold{};
  auto held = lease_on(found, *prefix, space, random_lease_id(), connection_id{}, client.environment().now(),
                       reference_kind::session);
  wanted_bytes = std::max(wanted_bytes, host_bytes_of(*held));
  co_return session_hold{held, wanted_bytes, bytes_max, host_chunks_of(*held)};
}

} // namespace

task<> save_session(client_request& request, const wire::SaveSession& asked, protocol::descriptor_list&) {
  request.take_terms(asked);
  auto in = request.space(asked.space());
  if (!in)
    co_return;
  auto cursors = span_of(asked.cursors());
  if (size_t pools = in->what->spec.pools.size(); !cursors.empty() && cursors.size() != pools) {
    request.refuse({errc::bad_request, std::to_string(cursors.size()) +
                                           " cursors: expected one for each of the " + std::to_string(pools) +
                                           " pools of the space"});
    co_return;
  }
  const wire::Prefix& sent = *asked.prefix();
  turn_parts wanted{.tail = sent.tail()};
  auto named = co_await request.session_turn(*in, sent, wanted);
  hashed_turn& turn = named.turn;
  auto prefix = std::make_shared<const chunk_prefix>(std::move(named.chunks));
  saved_turn_ptr end = wanted.tail ? end_of_turn(in->what, *prefix, cursors) : nullptr;
  turn.after = std::make_shared<const session_state>(turn.after->with_saved(end));
  if (prefix->tail_tokens != 0) {
    co_await request.tail(in->what, end->key);
    co_await find_tail(request, in->what, end->key);
  }
  std::optional<session_hold> hold(std::in_place);
  if (turn.held && !prefix->chunks.empty()) {
    size_t objects = object_source(in->what, {prefix, &prefix->chunks}).size();
    co_await request.room(objects);
    hold = co_await search_held(request, in->what, prefix, turn.session);
  }
  lease_ptr held = hold->what;
  auto unheld = co_await request.save_turn(turn, std::move(hold));
  if (!unheld.empty())
    held = nullptr;
  request.reply([&](flatbuffers::FlatBufferBuilder& body) {
    const session_state& after = *turn.after;
    flatbuffers::Offset<flatbuffers::Vector<uint8_t>> digest, lease;
    flatbuffers::Offset<flatbuffers::String> why;
    if (after.tokens() != 0)
      digest = body.CreateVector(after.last().bytes.data(), in->hasher->width());
    if (held)
      lease = body.CreateVector(held->id.bytes.data(), held->id.bytes.size());
    if (!unheld.empty())
      why = body.CreateString(unheld);
    return wire::CreateSaveSessionAnswer(body, after.tokens(), digest,
                                         held ? static_cast<uint32_t>(held->chunks.size()) : 0,
                                         held ? held->bytes : 0, lease, why);
  });
}

} // namespace terrace::actors::verbs

// sessions: those of the client's trust group.
#include "actors/connection/verbs.hpp"
#include "base/random_id.hpp"
#include "connection/request_values.hpp"
#include "group/leased_part.hpp"
#include "group/session.hpp"
#include "group/session_holds.hpp"
#include "index/chunk_layout.hpp"

#include <algorithm>

namespace terrace::actors::verbs {

namespace {

flatbuffers::Offset<wire::SessionStatus> write(flatbuffers::FlatBufferBuilder& body,
                                               const listed_session& listed) {
  const session_report& one = listed.report;
  auto id = body.CreateVector(one.id.bytes.data(), one.id.bytes.size());
  return wire::CreateSessionStatus(
      body, id, static_cast<uint64_t>(one.owner), static_cast<uint32_t>(one.space), one.keep, one.generation,
      one.lengths.protected_tokens(), one.lengths.committed_tokens(), one.lengths.allocated_tokens(),
      one.bytes, one.held ? wire::SessionMode::held : wire::SessionMode::tagged, listed.held_tokens,
      listed.held_bytes, one.saved ? one.saved->tokens() : 0, one.saved ? one.saved->tail_tokens : 0,
      one.own_tokens);
}

} // namespace

task<> sessions(client_request& request, const wire::Sessions& asked, protocol::descriptor_list&) {
  sessions_request wanted{protocol::sessions_listed_max, std::nullopt};
  if (asked.session() != nullptr)
    wanted.only = to_session_id(asked.session());
  const auto& group = request.client.group().group;
  auto found = co_await request.ask<sessions_answer>(group, std::move(wanted), group_ended);
  request.reply([&](flatbuffers::FlatBufferBuilder& body) {
    std::vector<flatbuffers::Offset<wire::SessionStatus>> listed;
    for (const listed_session& one : found.listed)
      listed.push_back(write(body, one));
    return wire::CreateSessionsAnswer(body, found.count, found.bytes, found.evicted,
                                      body.CreateVector(listed), found.held, found.held_bytes);
  });
}

// open_session: a conversation whose turns send only their new tokens.

namespace {

result<session_root_ptr> root_of(const wire::OpenSession& asked, const token_hasher& hasher) {
  session_root root;
  if (asked.parent() != nullptr) {
    if (asked.parent()->size() != hasher.width())
      return fail(errc::bad_request, "the parent has " + std::to_string(asked.parent()->size()) +
                                         " bytes: expected " + std::to_string(hasher.width()));
    root.seed = digest::from(span_of(asked.parent()));
  }
  if (asked.lora() != nullptr)
    root.lora = asked.lora()->str();
  if (asked.salt() != nullptr)
    root.salt = asked.salt()->str();
  if (!root.seed && root.lora.empty() && root.salt.empty())
    return nullptr;
  return std::make_shared<const session_root>(std::move(root));
}

} // namespace

task<> open_session(client_request& request, const wire::OpenSession& asked, protocol::descriptor_list&) {
  connected_client& client = request.client;
  auto space = co_await request.space_of(asked);
  auto root = root_of(asked, *space->hasher);
  co_await request.valid(root);
  session_id id{random_lease_id().bytes};
  open_session_request opening{{id, client.record()->id, space->space->id, space->space->spec.chunk_tokens,
                                asked.keep(), asked.mode() == wire::SessionMode::held, std::move(*root),
                                nullptr}};
  const auto& group = client.group().group;
  co_await request.ask<open_session_answer>(group, std::move(opening), group_ended);
  request.reply([&](flatbuffers::FlatBufferBuilder& body) {
    return wire::CreateOpenSessionAnswer(body, body.CreateVector(id.bytes.data(), id.bytes.size()));
  });
}

// close_session: a conversation has ended. A turn in progress is not affected.

task<> close_session(client_request& request, const wire::CloseSession& asked, protocol::descriptor_list&) {
  const auto& group = request.client.group().group;
  close_session_request session{to_session_id(asked.session())};
  auto done = co_await request.ask<close_session_answer>(group, std::move(session), group_ended);
  if (done.held) { // what it held can be evicted then
    co_await request.leases_ended();
  }
  request.reply([&](flatbuffers::FlatBufferBuilder& body) {
    return wire::CreateCloseSessionAnswer(body, done.closed);
  });
}

// fork_session: a session with the first tokens of another one.

task<> fork_session(client_request& request, const wire::ForkSession& asked, protocol::descriptor_list&) {
  connected_client& client = request.client;
  auto space = co_await request.space_of(asked);
  session_id parent = to_session_id(asked.session());
  auto from = co_await used_session(request, parent, 0);
  if (from.space != space->space->id) {
    request.refuse({errc::bad_request, "session: it is in another space than the request"});
    co_return;
  }
  if (asked.tokens() > from.state->tokens()) {
    request.refuse({errc::bad_request, "the session has " + std::to_string(from.state->tokens()) +
                                           " tokens: expected a fork at one of them, got " +
                                           std::to_string(asked.tokens())});
    co_return;
  }
  auto state = std::make_shared<const session_state>(from.state->cut(asked.tokens(), *space->hasher));
  session_id id{random_lease_id().bytes};
  open_session_request opening{{id, client.record()->id, from.space, space->space->spec.chunk_tokens,
                                asked.keep(), from.held, from.root, state}};
  const auto& group = client.group().group;
  co_await request.ask<open_session_answer>(group, std::move(opening), group_ended);
  request.reply([&](flatbuffers::FlatBufferBuilder& body) {
    flatbuffers::Offset<flatbuffers::Vector<uint8_t>> digest;
    if (state->tokens() != 0)
      digest = body.CreateVector(state->last().bytes.data(), space->hasher->width());
    auto session = body.CreateVector(id.bytes.data(), id.bytes.size());
    return wire::CreateForkSessionAnswer(body, session, state->tokens(), digest);
  });
}

// save_session: a turn has ended; a held session holds what the tiers have of its chunks.

namespace {

/// Nothing is saved unless all pools and ranks have the turn's partial chunk.
task<> find_tail(client_request& request, space_ptr space, digest key) {
  auto tail = std::make_shared<chunk_prefix>();
  tail->chunks.push_back(key);
  auto question = lookup_of(request, space, tail);
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
  end->space = space;
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
  auto question = lookup_of(request, space, prefix);
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
  auto space = co_await request.space_of(asked);
  auto cursors = span_of(asked.cursors());
  if (size_t pools = space->space->spec.pools.size(); !cursors.empty() && cursors.size() != pools) {
    request.refuse({errc::bad_request, std::to_string(cursors.size()) +
                                           " cursors: expected one for each of the " + std::to_string(pools) +
                                           " pools of the space"});
    co_return;
  }
  const wire::Prefix& sent = *asked.prefix();
  turn_parts wanted{.tail = sent.tail()};
  auto named = co_await turn_of_session(request, *space, sent, wanted);
  hashed_turn& turn = named.turn;
  auto prefix = std::make_shared<const chunk_prefix>(std::move(named.chunks));
  saved_turn_ptr end = wanted.tail ? end_of_turn(space->space, *prefix, cursors) : nullptr;
  turn.after = std::make_shared<const session_state>(turn.after->with_saved(end));
  if (prefix->tail_tokens != 0) {
    co_await request.tail(space->space, end->key);
    co_await find_tail(request, space->space, end->key);
  }
  std::optional<session_hold> hold(std::in_place);
  if (turn.held && !prefix->chunks.empty()) {
    size_t objects = object_source(space->space, {prefix, &prefix->chunks}).size();
    co_await request.room(objects);
    hold = co_await search_held(request, space->space, prefix, turn.session);
  }
  lease_ptr held = hold->lease;
  auto unheld = co_await save_turn(request, turn, std::move(hold));
  if (!unheld.empty())
    held = nullptr;
  request.reply([&](flatbuffers::FlatBufferBuilder& body) {
    const session_state& after = *turn.after;
    flatbuffers::Offset<flatbuffers::Vector<uint8_t>> digest, lease;
    flatbuffers::Offset<flatbuffers::String> why;
    if (after.tokens() != 0)
      digest = body.CreateVector(after.last().bytes.data(), space->hasher->width());
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

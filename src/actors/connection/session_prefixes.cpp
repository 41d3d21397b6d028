#include "actors/connection/session_prefixes.hpp"

#include "actors/connection/connection_actor.hpp"
#include "actors/connection/prefixes.hpp"
#include "connection/request_values.hpp"
#include "index/prefix_resolver.hpp"

#include <optional>
#include <utility>

namespace terrace::actors {

namespace {

/// A turn that is being hashed. At a fixed address, because the resolver refers to the tokens in it.
struct turn_hashing {
  connection::request what;
  space_ptr in;
  std::shared_ptr<token_hasher> hasher;
  session_turn turn;
  hashed_turn done;
  size_t objects; ///< of one rank, about
  turn_handler then;
  keep_alive body;
  std::optional<prefix_resolver> resolver;
  bool begun = false;
  bool rest = false; ///< what is known is left out
};

/// Of the first tier, which is host memory.
departure_counts host_departures(connection& client) {
  return client.group().tiers().front().index->table().departures();
}

bool hash_some(connection& client, turn_hashing& work) {
  if (work.resolver) {
    auto hashed = work.resolver->step(work.begun ? hash_step_work : hash_step_work / 8);
    if (!client.ok(work.what, hashed))
      return true;
    if (!*hashed) {
      if (!std::exchange(work.begun, true)) // others are read meanwhile
        client.expect_objects(work.what, work.objects);
      return false;
    }
  }
  chunk_prefix hashed_part;
  if (work.resolver)
    hashed_part = work.resolver->take();
  if (work.rest) {
    work.done.before = host_departures(client);
    work.done.left_out = still_known(work.turn.known(), work.done.before, work.done.held_chunks);
  }
  chunk_prefix whole = work.turn.finish(hashed_part, *work.hasher, work.done.left_out);
  work.done.left_out = static_cast<uint32_t>(whole.first_token / work.in->spec.chunk_tokens);
  work.done.after = work.turn.after();
  work.then(std::move(whole), work.done, work.body);
  if (work.begun)
    client.objects_are_known(work.what);
  return true;
}

/// What the caller wants of the prompt.
struct turn_parts {
  bool tail = false;
  bool rest = false; ///< without the first chunks that are known
};

struct turn_space {
  space_ptr what;
  std::shared_ptr<token_hasher> hasher; ///< of the connection, for little work
};

void begin(connection& client, const connection::request& what, const turn_space& in,
           const wire::Prefix& prefix, turn_parts wanted, const session_use& used, const turn_handler& then,
           const keep_alive& body) {
  prefix_input sent = input_of(prefix);
  if (used.in != in.what->id) {
    client.refuse(what, {errc::bad_request, "session: it is in another space than the request"});
    return;
  }
  bool few = sent.tokens.size() <= short_tokens;
  auto hasher = few ? in.hasher : std::shared_ptr<token_hasher>(make_token_hasher(in.what->spec));
  const space_spec& spec = in.what->spec;
  auto turn = session_turn::begin(
      spec, *hasher, used.state, used.root,
      {sent.parent_tokens, sent.parent, sent.tokens, std::move(sent.extra.items), wanted.tail}, used.saved);
  if (!client.ok(what, turn))
    return;
  size_t objects = turn->tokens() / spec.chunk_tokens * spec.pools.size();
  hashed_turn begun;
  begun.session = to_session_id(prefix.session());
  begun.generation = used.generation;
  begun.held = used.held;
  begun.held_chunks = used.held_chunks;
  auto work =
      std::make_shared<turn_hashing>(turn_hashing{what, in.what, std::move(hasher), std::move(*turn),
                                                  std::move(begun), objects, then, body, std::nullopt});
  work->rest = wanted.rest;
  if (work->turn.has_to_hash()) {
    auto resolver =
        prefix_resolver::make(work->in->spec, *work->hasher, work->turn.input(), work->in->memo.get());
    if (!client.ok(what, resolver))
      return;
    work->resolver = std::move(*resolver);
  }
  client.in_steps(what, "its prompt was hashed", [&client, work] { return hash_some(client, *work); });
}

void with_parts(connection& client, const connection::request& what, const client_space& in,
                const wire::Prefix& prefix, turn_parts wanted, turn_handler then) {
  auto body = client.hold_body(); // contains `prefix`
  uint64_t tokens = uint64_t{prefix.parent_tokens()} + prefix.tokens()->size();
  client.with_session(
      what, to_session_id(prefix.session()), tokens,
      [&client, what, in = turn_space{in.what, in.hasher}, &prefix, wanted, then = std::move(then),
       body](const session_use& used) { begin(client, what, in, prefix, wanted, used, then, body); });
}

} // namespace

void with_turn(connection& client, const connection::request& what, const client_space& in,
               const wire::Prefix& prefix, bool tail, turn_handler then) {
  with_parts(client, what, in, prefix, {.tail = tail}, std::move(then));
}

void with_rest_of_turn(connection& client, const connection::request& what, const client_space& in,
                       const wire::Prefix& prefix, turn_handler then) {
  with_parts(client, what, in, prefix, {.rest = true}, std::move(then));
}

void save_turn(connection& client, const connection::request& what, const hashed_turn& turn,
               std::function<void()> then) {
  save_turn(client, what, turn, std::nullopt, [then = std::move(then)](const std::string&) { then(); });
}

void save_turn(connection& client, const connection::request& what, const hashed_turn& turn,
               std::optional<session_hold> hold, std::function<void(const std::string& unheld)> then) {
  save_session_request request{turn.session, turn.generation, turn.after, std::move(hold)};
  client.ask(what, client.group().group, std::move(request), "the trust group's actor has ended",
             [&client, what, then = std::move(then)](const save_session_answer& answer) {
               if (answer.outcome == turn_outcome::late)
                 client.refuse(what, {errc::gone,
                                      "another turn of the session has finished since this one began: send "
                                      "the whole prompt, with parent_tokens 0, and one turn at a time"});
               else
                 then(answer.unheld);
             });
}

session_id to_session_id(const flatbuffers::Vector<uint8_t>* bytes) {
  return {protocol::to_lease_id(bytes).bytes};
}

} // namespace terrace::actors

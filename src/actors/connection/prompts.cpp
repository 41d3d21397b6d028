// From what a request says of its prompt to the chunks of it.
#include "actors/connection/prompts.hpp"

#include "connection/request_values.hpp"
#include "group/session_holds.hpp"
#include "group/session_turn.hpp"

#include <algorithm>
#include <cassert>
#include <optional>
#include <utility>

namespace terrace::actors {

namespace {

/// Prompts of so few tokens are hashed with the connection's own hasher.
constexpr size_t short_tokens = 16'384;
/// The first step is short, because most prompts need no more and the next request waits for it.
constexpr size_t first_step_work = hash_step_work / 8;

std::shared_ptr<token_hasher> hasher_for(const client_space& opened, size_t tokens) {
  if (tokens <= short_tokens)
    return opened.hasher;
  return std::shared_ptr<token_hasher>(make_token_hasher(opened.space->spec));
}

/// Of the first tier, which is host memory.
departure_counts host_departures(const connected_client& client) {
  return client.group().tiers().front().index->table().departures();
}

} // namespace

task<chunk_prefix> client_request::hash(prefix_resolver& resolver, size_t objects) {
  inbox().expect_objects(*this, objects); // others are read meanwhile
  expects_ = true;
  while (true) {
    co_await turn("its prompt was hashed");
    auto done = resolver.step(hash_step_work);
    co_await valid(done);
    if (*done)
      co_return resolver.take();
  }
}

task<chunk_prefix> client_request::chunks(const client_space& opened, const wire::Prefix& prefix,
                                          bool leading) {
  if (prefix.tail() && prefix.session() == nullptr) {
    error why{errc::bad_request, "prefix: expected a session with a tail: a partial chunk is found by the "
                                 "sessions and prompts that it belongs to alone"};
    co_await valid(why);
  }
  auto found = co_await prompt_chunks(*this, opened, prefix, leading);
  co_return found;
}

task<chunk_prefix> prompt_chunks(client_request& request, const client_space& opened,
                                 const wire::Prefix& prefix, bool leading) {
  if (prefix.session() != nullptr) {
    turn_parts wanted{.tail = prefix.tail()};
    auto found = co_await turn_of_session(request, opened, prefix, wanted);
    co_return std::move(found.chunks);
  }
  auto input = input_of(prefix);
  const space_ptr space = opened.space;
  const space_spec& spec = space->spec;
  if (leading)
    keep_leading_part(spec, input);
  auto hasher = hasher_for(opened, input.tokens.size());
  size_t chunks = input.tokens.empty() ? input.digests.size() / std::max<size_t>(input.digest_width, 1)
                                       : input.tokens.size() / spec.chunk_tokens;
  auto resolver = prefix_resolver::make(spec, *hasher, std::move(input), space->memo.get());
  co_await request.valid(resolver);
  auto done = resolver->step(first_step_work);
  co_await request.valid(done);
  if (*done)
    co_return resolver->take();
  size_t objects = chunks * spec.pools.size();
  prefix_resolver& work = *resolver;
  auto found = co_await request.hash(work, objects);
  co_return found;
}

task<chunk_prefix> stored_chunks(client_request& request, const client_space& opened,
                                 const wire::Prefix& prefix) {
  const space_ptr space = opened.space;
  auto found = co_await prompt_chunks(request, opened, prefix);
  if (found.tail_tokens != 0) {
    digest key = found.chunks.back();
    co_await request.tail(space, key);
  }
  co_return found;
}

task<turn_prefix> turn_of_session(client_request& request, const client_space& opened,
                                  const wire::Prefix& prefix, turn_parts wanted) {
  const space_ptr space = opened.space;
  const space_spec& spec = space->spec;
  auto hasher = hasher_for(opened, prefix.tokens()->size());
  session_id named = to_session_id(prefix.session());
  uint64_t tokens = uint64_t{prefix.parent_tokens()} + prefix.tokens()->size();
  auto used = co_await used_session(request, named, tokens);
  if (used.space != space->id) {
    error why{errc::bad_request, "session: it is in another space than the request"};
    co_await request.valid(why);
  }
  prefix_input sent = input_of(prefix);
  auto begun = terrace::session_turn::begin(
      spec, *hasher, used.state, used.root,
      {sent.parent_tokens, sent.parent, sent.tokens, std::move(sent.extra.items), wanted.tail}, used.saved);
  co_await request.valid(begun);
  turn_prefix made;
  made.turn.session = named;
  made.turn.generation = used.generation;
  made.turn.held = used.held;
  made.turn.held_chunks = used.held_chunks;
  chunk_prefix hashed;
  if (begun->has_to_hash()) {
    auto resolver = prefix_resolver::make(spec, *hasher, begun->input(), space->memo.get());
    co_await request.valid(resolver);
    auto done = resolver->step(first_step_work);
    co_await request.valid(done);
    if (*done) {
      hashed = resolver->take();
    } else {
      size_t objects = begun->tokens() / spec.chunk_tokens * spec.pools.size();
      prefix_resolver& work = *resolver;
      hashed = co_await request.hash(work, objects);
    }
  }
  if (wanted.rest) {
    made.turn.before = host_departures(request.client);
    made.turn.left_out = still_known(begun->known(), made.turn.before, made.turn.held_chunks);
  }
  made.chunks = begun->finish(hashed, *hasher, made.turn.left_out);
  made.turn.left_out = static_cast<uint32_t>(made.chunks.first_token / spec.chunk_tokens);
  made.turn.after = begun->after();
  co_return made;
}

namespace {

/// Asks a session's actor. The trust group is asked for it, unless the client has used it lately and it has not ended.
/// The answer's failure is `gone` if the session has ended. `alone`: no further request begins meanwhile.
template <class Answer, class Message>
task<Answer> ask_session(client_request& request, session_id wanted, Message message, bool alone) {
  auto& lately = request.client.sessions();
  session_actor whom;
  if (auto known = lately.find(wanted); known != lately.end())
    whom = known->second;
  while (true) {
    if (whom) {
      Message copy = message;
      auto answer = co_await request.try_ask<Answer>(whom, std::move(copy), group_ended, alone);
      if (answer)
        co_return std::move(*answer);
    }
    const auto& group = request.client.group().group;
    find_session_request which{wanted, whom};
    auto found = co_await request.try_ask<find_session_answer>(group, std::move(which), group_ended, alone);
    co_await request.valid(found);
    lately.erase(wanted);
    if (found->failure.code != errc::ok) {
      Answer gone;
      gone.failure = found->failure;
      co_return gone;
    }
    whom = found->found;
    if (lately.size() >= connected_client::session_actors_max)
      lately.erase(lately.begin());
    lately.emplace(wanted, whom);
    assert(lately.size() <= connected_client::session_actors_max);
  }
}

} // namespace

task<session_use> used_session(client_request& request, session_id wanted, uint64_t tokens) {
  use_session_request asked{tokens};
  auto used = co_await ask_session<use_session_answer>(request, wanted, asked, true);
  co_await request.valid(used.failure);
  co_return std::move(used.found);
}

task<std::string> save_turn(client_request& request, const hashed_turn& turn,
                            std::optional<session_hold> hold) {
  save_session_request asked{turn.generation, turn.after, std::move(hold)};
  auto saved = co_await ask_session<save_session_answer>(request, turn.session, std::move(asked), false);
  // One that has ended meanwhile saves nothing, which is no error.
  if (saved.outcome == turn_outcome::late) {
    error why{errc::gone, "another turn of the session has finished since this one began: send the whole "
                          "prompt, with parent_tokens 0, and one turn at a time"};
    co_await request.valid(why);
  }
  co_return std::move(saved.unheld);
}

session_id to_session_id(const flatbuffers::Vector<uint8_t>* bytes) {
  return {protocol::to_lease_id(bytes).bytes};
}

} // namespace terrace::actors

#include "actors/connection/verb_steps.hpp"

#include "base/tier_properties.hpp"
#include "connection/request_values.hpp"
#include "group/leased_part.hpp"
#include "group/session_holds.hpp"
#include "group/session_turn.hpp"
#include "protocol/descriptors.hpp"

#include <algorithm>
#include <cassert>
#include <optional>
#include <utility>

// From what a request says of its prompt to the chunks of it.

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

/// Returns what has left the first tier, which is host memory.
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

lookup_request lookup_of(const client_request& request, const space_ptr& space,
                         const std::shared_ptr<const chunk_prefix>& prefix) {
  lookup_request asked;
  asked.group = request.client.group_handle();
  asked.space = space;
  asked.objects = {space, {prefix, &prefix->chunks}};
  asked.context = request.context;
  asked.plan = {static_cast<uint32_t>(prefix->chunks.size()), prefix->first_token, prefix->prompt_tokens,
                prefix->tail_tokens};
  return asked;
}

// ---- who hears of it ----

void use_for_inference(client_request& request, const wire::Options* options, object_source objects) {
  if (request.context->inference == 0)
    return;
  size_t count = objects.size();
  request.actor.tell_policy(begin_of(*request.context, *options, std::move(objects)), count);
}

void tell_shadows(client_request& request, const wire::Options* options, const space_ptr& space,
                  std::shared_ptr<const chunk_prefix> prefix, std::optional<uint16_t> rank) {
  const trust_group& group = request.client.group();
  if (!group.shadow_gate || prefix->chunks.empty() ||
      !group.shadow_gate->offer_or_skip(prefix->chunks.size()))
    return;
  request.actor.send(group.shadow, shadow_use_of(*request.context, options, space, std::move(prefix), rank));
}

std::optional<bool> read_some(client_request& request, lease_reading& work) {
  auto more = request.client.holdings().read_some(work);
  request.client.show();
  if (!request.ok(more))
    return std::nullopt;
  return *more;
}

// ---- objects ----

uint32_t declared_speed(connected_client& client, const wire::Options* options, const space_ptr& space) {
  return prefill_speed_of(options, client.defaults_of_space(static_cast<uint32_t>(space->id)));
}

/// Each rank and each pool is a part of what is computed together, and ranks load at the same time.
void count_spared(const connected_client& client, uint32_t tokens_per_s, const delivered_tokens& got) {
  if (tokens_per_s == 0)
    return;
  using seconds = std::chrono::duration<double>;
  const space_spec& spec = got.space->spec;
  const double ranks = spec.world_size;
  const double share = static_cast<double>(got.pools) / static_cast<double>(spec.pools.size());
  const seconds computing(static_cast<double>(got.tokens) / tokens_per_s * share / ranks);
  const seconds took(client.environment().now() - got.began);
  client.environment().client_probe->spared(
      std::chrono::duration_cast<std::chrono::nanoseconds>(computing),
      std::chrono::duration_cast<std::chrono::nanoseconds>(took / ranks));
}

task<batch_ptr> transfer_objects(client_request& request, scope_subject subject) {
  size_t count = subject.scope.objects();
  co_await request.room(count);
  scope_objects named(std::move(subject));
  if (count > scope_objects::slice_objects) {
    co_await request.turn("its objects were named");
  }
  while (!named.step()) {
    co_await request.turn("its objects were named");
  }
  co_return named.take();
}

task<leased_objects> transfer_objects(client_request& request, lease_ptr from, transfer_scope scope,
                                      uint16_t rank) {
  scope_subject subject = subject_of(from, scope, rank);
  auto named = co_await transfer_objects(request, std::move(subject));
  leased_part part(from, scope, rank);
  while (!part.step()) {
    co_await request.turn("its objects were named");
  }
  co_return leased_objects{std::move(named), part.take()};
}

namespace {

/// Copying so few takes less time than keeping the frame as long as the transfer.
constexpr size_t few_runs = 1024;

// A run on the wire is one in memory, so a list of them is read in place.
static_assert(sizeof(wire::Run) == sizeof(region_run) && alignof(wire::Run) == alignof(region_run) &&
              FLATBUFFERS_LITTLEENDIAN);

} // namespace

task<std::shared_ptr<const scatter_gather>> checked_runs(client_request& request, const run_lists& sent,
                                                         batch_ptr objects, uint64_t region_bytes) {
  std::span all(reinterpret_cast<const region_run*>(sent.runs->Data()), sent.runs->size());
  keep_alive owner;
  if (all.size() <= few_runs) {
    auto copied = std::make_shared<const std::vector<region_run>>(all.begin(), all.end());
    all = *copied;
    owner = std::move(copied);
  } else {
    owner = request.body();
  }
  scatter_gather_maker::input input{
      all,          span_of(sent.per_object), std::move(owner), objects->payload_bytes,
      region_bytes, protocol::runs_max};
  scatter_gather_maker maker(std::move(input));
  while (true) {
    auto done = maker.step();
    co_await request.valid(done);
    if (*done)
      break;
    co_await request.turn("its runs were checked");
  }
  co_return std::make_shared<const scatter_gather>(maker.take());
}

outside_memory outside(const std::shared_ptr<const client_region>& region) {
  region->copy_begins();
  return {.data = region->data(),
          .fd = region->fd(),
          .bytes = region->size(),
          .owner = region,
          .device = region->device().get(),
          .ahead = region->ahead()};
}

bool can_bring_to(client_request& request, tier_kind to) {
  const trust_group& group = request.client.group();
  auto refuse = [&](const std::string& why) {
    request.refuse({errc::unsupported, why});
    return false;
  };
  if (to == memory_tier)
    return !group.staging_only ||
           refuse(
               "host.staging_only is true: expected a load, since what is brought to host memory would not "
               "stay there");
  if (!faster_than_memory(to))
    return refuse("expected to 0 (GPU tier) or 1 (host memory), got " +
                  std::to_string(static_cast<unsigned>(to)));
  const tier_handle* tier = group.tier(to);
  if (tier == nullptr)
    return refuse("the trust group has no tier in memory of a GPU (gpu.tier_bytes)");
  if (!tier->reads()) {
    std::string reason = tier->degraded();
    return refuse("the GPU tier is not in service: " + (reason.empty() ? tier->notice() : reason));
  }
  return true;
}

uint64_t room_to_bring(const trust_group& group, tier_kind to) {
  if (to != memory_tier)
    return group.tier(to)->bytes; // nothing else needs it, and what has arrived is held until the end
  uint64_t size = group.memory->size();
  return (size - std::min(size, group.leases->bytes())) / 2;
}

} // namespace terrace::actors

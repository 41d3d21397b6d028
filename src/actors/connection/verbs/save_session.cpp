// save_session: a turn has ended; a held session holds what the tiers have of its chunks.
#include "actors/connection/prefixes.hpp"
#include "actors/connection/session_prefixes.hpp"
#include "actors/connection/verbs.hpp"
#include "actors/lookup/lookup_actor.hpp"
#include "base/random_id.hpp"
#include "group/found_lease.hpp"
#include "connection/request_values.hpp"
#include "group/session_holds.hpp"
#include "index/chunk_layout.hpp"

#include <algorithm>

namespace terrace::actors::verbs {

namespace {

struct saving {
  connection& client;
  connection::request what;
  client_space_ptr in;
  hashed_turn turn;
  std::shared_ptr<const chunk_prefix> prefix;
};
using saving_ptr = std::shared_ptr<const saving>;

/// `held`: null: nothing.
void answer_save(const saving& of, const lease_ptr& held, const std::string& unheld) {
  of.client.reply(of.what, [&](flatbuffers::FlatBufferBuilder& body) {
    const session_state& after = *of.turn.after;
    flatbuffers::Offset<flatbuffers::Vector<uint8_t>> digest, lease;
    flatbuffers::Offset<flatbuffers::String> why;
    if (after.tokens() != 0)
      digest = body.CreateVector(after.last().bytes.data(), of.in->hasher->width());
    if (held)
      lease = body.CreateVector(held->id.bytes.data(), held->id.bytes.size());
    if (!unheld.empty())
      why = body.CreateString(unheld);
    return wire::CreateSaveSessionAnswer(body, after.tokens(), digest,
                                         held ? static_cast<uint32_t>(held->chunks.size()) : 0,
                                         held ? held->bytes : 0, lease, why);
  });
}

/// What lookups of a prefix are asked, besides their objects.
plan_request plan_of(const chunk_prefix& prefix) {
  return {static_cast<uint32_t>(prefix.chunks.size()), prefix.first_token, prefix.prompt_tokens,
          prefix.tail_tokens};
}

void save_unheld(const saving_ptr& of) {
  save_turn(of->client, of->what, of->turn, session_hold{},
            [of](const std::string&) { answer_save(*of, nullptr, {}); });
}

uint64_t held_bytes_max(const connection& client) {
  return client.group().memory->size() / 100 * client.environment().limits.session_percent;
}

/// The session holds the lease, instead of what it held before. `bytes`: of host memory that it would hold, if that is more
/// than it was allowed to.
void save_held(const saving_ptr& of, const lookup_answer& found, uint64_t bytes = 0) {
  if (found.plan.found_chunks == 0) {
    save_unheld(of);
    return;
  }
  connection& client = of->client;
  auto held = lease_on(found, *of->prefix, of->in->what, random_lease_id(), connection_id{},
                       client.environment().now(), reference_kind::session);
  bytes = std::max(bytes, host_bytes_of(*held));
  save_turn(
      client, of->what, of->turn, session_hold{held, bytes, held_bytes_max(client), host_chunks_of(*held)},
      [of, held](const std::string& unheld) { answer_save(*of, unheld.empty() ? held : nullptr, unheld); });
}

void search_held(const saving_ptr& of, bool again);

/// Colder sessions give way to what was cut short, unless all of it would be too much anyway.
void yield_and_search(const saving_ptr& of, const lookup_answer& found) {
  connection& client = of->client;
  const space_spec& spec = of->in->what->spec;
  uint64_t per_chunk = 0;
  for (size_t pool = 0; pool < spec.pools.size(); ++pool)
    per_chunk += chunk_layout(spec).ranks(pool) * spec.pools[pool].object_bytes;
  if (uint64_t all = of->prefix->chunks.size() * per_chunk; all > held_bytes_max(client)) {
    save_held(of, found, all);
    return;
  }
  uint64_t bytes = (of->prefix->chunks.size() - found.plan.found_chunks) * per_chunk;
  client.ask(of->what, client.group().group, yield_holds_request{of->turn.session, bytes},
             "the trust group's actor has ended", [of](const yield_holds_answer&) {
               of->client.resume_after_lease_ends(of->what, [of] { search_held(of, true); });
             });
}

/// What it finds is charged to the sessions of the trust group. `again`: what it finds is all that there can be.
void search_held(const saving_ptr& of, bool again) {
  connection& client = of->client;
  lookup_request request;
  request.group = client.group_handle();
  request.in = of->in->what;
  request.objects = {of->in->what, {of->prefix, &of->prefix->chunks}};
  request.context = of->what.context;
  request.plan = plan_of(*of->prefix);
  request.hold = true;
  request.account = client.group().session_leases;
  caf::actor worker =
      client.idle_lookups().take([&client] { return spawn_lookup(client.system(), client.home()); });
  client.ask(of->what, worker, std::move(request), "the lookup's actor has ended",
             [of, worker, again](const lookup_answer& found) {
               of->client.idle_lookups().put_back(worker);
               if (found.failure.code != errc::ok)
                 of->client.refuse(of->what, found.failure);
               else if (!of->what.context->live())
                 of->client.refuse(of->what,
                                   {of->what.context->ended.load(), "the save ended before it was answered"});
               else if (found.shortened && !again)
                 yield_and_search(of, found);
               else
                 save_held(of, found);
             });
}

void save_turn_end(const saving_ptr& of) {
  if (!of->turn.held || of->prefix->chunks.empty()) {
    save_unheld(of);
    return;
  }
  size_t objects = object_source(of->in->what, {of->prefix, &of->prefix->chunks}).size();
  of->client.with_room(of->what, objects, [of] { search_held(of, false); });
}

// ---- the turn's end: its partial chunk, and cursors ----

void refuse_incomplete(const saving& of, const prefix_plan& plan) {
  const space_spec& spec = of.in->what->spec;
  std::string which = "an object";
  if (plan.missing)
    which = "pool " + spec.pools[plan.missing->pool].name + " of rank " + std::to_string(plan.missing->rank);
  of.client.refuse(of.what,
                   {errc::not_found,
                    which + " of the turn's partial chunk is in no tier: the session stays at its last saved "
                            "turn; store the tail in all pools and on all ranks, and then save"});
}

/// Nothing is saved unless all pools and ranks have it.
void save_with_tail(const saving_ptr& of) {
  connection& client = of->client;
  auto tail = std::make_shared<const std::vector<digest>>(1, of->prefix->chunks.back());
  lookup_request request;
  request.group = client.group_handle();
  request.in = of->in->what;
  request.objects = {of->in->what, tail};
  request.context = of->what.context;
  request.plan = {1, 0, of->in->what->spec.chunk_tokens + 1}; // as if the prompt went on
  caf::actor worker =
      client.idle_lookups().take([&client] { return spawn_lookup(client.system(), client.home()); });
  client.ask(of->what, worker, std::move(request), "the lookup's actor has ended",
             [of, worker](const lookup_answer& found) {
               of->client.idle_lookups().put_back(worker);
               if (!of->client.ok(of->what, found.failure))
                 return;
               if (found.plan.found_chunks == 0)
                 refuse_incomplete(*of, found.plan);
               else
                 save_turn_end(of);
             });
}

saved_turn_ptr end_of_turn(const saving& of, std::vector<uint64_t> cursors) {
  auto end = std::make_shared<saved_turn>();
  end->in = of.in->what;
  end->chunks = of.prefix->whole_chunks();
  end->tail_tokens = of.prefix->tail_tokens;
  end->key = of.prefix->chunks.back();
  end->cursors = std::move(cursors);
  return end;
}

} // namespace

void save_session(connection& client, const connection::request& what, const wire::SaveSession& asked,
                  protocol::descriptor_list&) {
  client.take_terms(what, asked);
  auto in = client.find_space(what, asked.space());
  if (!in)
    return;
  auto told = span_of(asked.cursors());
  if (size_t pools = in->what->spec.pools.size(); !told.empty() && told.size() != pools) {
    client.refuse(what, {errc::bad_request, std::to_string(told.size()) +
                                                " cursors: expected one for each of the " +
                                                std::to_string(pools) + " pools of the space"});
    return;
  }
  bool tail = asked.prefix()->tail();
  with_turn(client, what, *in, *asked.prefix(), tail,
            [&client, what, in, tail, cursors = std::vector<uint64_t>(told.begin(), told.end())](
                chunk_prefix prefix, const hashed_turn& turn, const keep_alive&) {
              auto of = std::make_shared<saving>(
                  saving{client, what, in, turn, std::make_shared<const chunk_prefix>(std::move(prefix))});
              auto end = tail ? end_of_turn(*of, cursors) : nullptr;
              of->turn.after = std::make_shared<const session_state>(turn.after->with_saved(end));
              if (of->prefix->tail_tokens == 0)
                save_turn_end(of);
              else
                client.with_tail(what, in->what, end->key, [of] { save_with_tail(of); });
            });
}

} // namespace terrace::actors::verbs

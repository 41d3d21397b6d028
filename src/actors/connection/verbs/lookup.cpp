// lookup: the number and tiers of the leading chunks that are present, and optionally a lease on them.
#include "actors/connection/prefixes.hpp"
#include "actors/connection/session_prefixes.hpp"
#include "actors/connection/verbs.hpp"
#include "actors/lookup/lookup_at_once.hpp"
#include "base/random_id.hpp"
#include "group/found_lease.hpp"
#include "connection/lookup_answers.hpp"
#include "connection/named_lookup.hpp"
#include "connection/request_values.hpp"

#include <caf/send.hpp>

#include <algorithm>
#include <utility>

namespace terrace::actors::verbs {

namespace {

using prefix_ptr = std::shared_ptr<const chunk_prefix>;

/// What is searched, in turn, until enough is found.
struct candidate {
  prefix_ptr prefix;
  size_t enough = 0;                ///< chunks
  prompt_entry_ptr entry = nullptr; ///< of the whole prompt, which this one has found; null: none
};

/// A lookup in progress.
struct subject {
  client_space_ptr in;
  bool lease_wanted = false;
  bool loads = true;                  ///< false: nothing is searched
  bool tail_wanted = false;           ///< what the saved turn of its session ends with, too
  size_t digest_width = 0;            ///< of the digests to return; 0: none
  bool logits_wanted = false;         ///< those of the prompt's last token, too
  prefix_ptr prefix;                  ///< the whole chunks of the prompt
  prefix_ptr prompt;                  ///< all of it, with its own tail, if logits are wanted
  std::shared_ptr<named_lookup> name; ///< null: it has no id
  hashed_turn turn;                   ///< of the session that it continues; `after` is null if there is none
  std::vector<candidate> candidates;  ///< the next one last
  bool told = false;                  ///< policies know of this access

  /// The saved turn with which the prompt begins; null: none, or it does not matter.
  saved_turn_ptr saved() const { return tail_wanted && turn.after ? turn.after->saved() : nullptr; }
};

session_answer session_of(const subject& of) {
  if (!of.turn.after)
    return {};
  return {of.turn.after->tokens(), of.turn.after->last(), of.in->hasher->width()};
}

/// Of the end of the saved turn, or of the prompt, if what was found ends there.
std::vector<uint64_t> cursors_of(const subject& of, const prefix_plan& plan) {
  if (const auto& entry = of.candidates.back().entry)
    return entry->end.cursors;
  auto saved = of.saved();
  return saved && plan.found_tokens == saved->tokens() ? saved->cursors : std::vector<uint64_t>();
}

void answer(connection& client, const connection::request& what, const subject& of,
            const lookup_answer& found) {
  const prefix_plan& plan = found.plan;
  const space_spec& spec = of.in->what->spec;
  if (of.loads)
    count_hits(*of.in->probe, spec, plan);
  client.count_recomputed(spec, found.recompute_chunks);
  lease_ptr held;
  if (found.shortened)
    client.environment().client_probe->lease_shortened();
  if (of.lease_wanted && plan.found_chunks != 0 && what.context->live()) {
    held = lease_on(found, *of.candidates.back().prefix, of.in->what, random_lease_id(), client.record()->id,
                    client.environment().now());
    if (!client.may_lease(what) || !client.ok(what, client.holdings().may_name(objects_of(*held))))
      return;
    client.add_lease(held);
  }
  auto cursors = cursors_of(of, plan);
  const prompt_entry_ptr& entry = of.candidates.back().entry;
  if (of.logits_wanted)
    client.environment().client_probe->prompt_asked(entry != nullptr);
  if (of.name) {
    auto outcome = outcome_of(found, spec, held);
    outcome.cursors = cursors;
    outcome.prompt = entry;
    if (held)
      outcome.end_lease = client.lease_ender(held->id);
    of.name->answered(std::move(outcome));
  }
  client.reply(what, [&](flatbuffers::FlatBufferBuilder& body) {
    return write_lookup_answer(body, plan, found.recompute_chunks, held ? held->id : lease_id{},
                               {of.prefix->chunks, of.digest_width}, session_of(of),
                               {cursors, entry ? std::span(entry->logits) : std::span<const uint8_t>()});
  });
}

lookup_request request_of(connection& client, const connection::request& what, const wire::Lookup& asked,
                          const subject& of, const prefix_ptr& prefix) {
  lookup_request request;
  request.group = client.group_handle();
  request.in = of.in->what;
  request.objects = {of.in->what, {prefix, &prefix->chunks}};
  request.context = what.context;
  request.plan = {static_cast<uint32_t>(prefix->chunks.size()), prefix->first_token, prefix->prompt_tokens,
                  prefix->tail_tokens};
  request.tiers = tiers_of(asked, of.in->defaults);
  return request;
}

// ---- what the last lookup of the session found ----

const tier_parts& host_tier(connection& client) { return client.group().tiers().front(); }

/// Of a lookup in a session: whether what is known of its prefix matters. A lease has to hold all of it, and beside a faster
/// tier it is not known which of the two has a chunk now.
bool uses_known(connection& client, const wire::Lookup& asked, const subject& of) {
  uint32_t tiers = tiers_of(asked, of.in->defaults);
  bool host = tiers == 0 || (tiers >> static_cast<unsigned>(tier_kind::host) & 1) != 0;
  const auto& all = client.group().tiers();
  bool fastest = all.front().kind == tier_kind::host &&
                 std::none_of(all.begin(), all.end(),
                              [](const tier_parts& tier) { return tier.kind < tier_kind::host; });
  return asked.prefix()->session() != nullptr && !of.lease_wanted && of.loads && host && fastest &&
         !has_trailing_pools(of.in->what->spec);
}

/// Whether only the rest of the prompt is needed: the answer tells nothing else of the chunks before it.
bool wants_rest(connection& client, const wire::Lookup& asked, const subject& of) {
  return uses_known(client, asked, of) && !asked.digests() && !of.logits_wanted && !of.tail_wanted &&
         !of.name;
}

prefix_ptr behind(const chunk_prefix& whole, size_t chunks, uint32_t chunk_tokens) {
  auto rest = std::make_shared<chunk_prefix>();
  rest->chunks.assign(whole.chunks.begin() + static_cast<std::ptrdiff_t>(chunks), whole.chunks.end());
  rest->first_token = whole.first_token + chunks * chunk_tokens;
  rest->prompt_tokens = whole.prompt_tokens;
  rest->tail_tokens = whole.tail_tokens;
  return rest;
}

/// What is looked for of a candidate, behind what is known.
struct searched_part {
  prefix_ptr prefix;
  bool remembers = false;    ///< the session remembers what is found
  uint32_t known = 0;        ///< chunks before `prefix`
  departure_counts before{}; ///< of host memory, read before it was known
};

/// At least one chunk remains.
searched_part part_of(connection& client, const wire::Lookup& asked, const subject& of) {
  searched_part part{of.candidates.back().prefix, uses_known(client, asked, of), of.turn.left_out,
                     of.turn.before};
  if (!part.remembers || part.known != 0 || part.prefix->chunks.empty())
    return part;
  part.before = host_tier(client).index->table().departures();
  part.known = std::min(still_known(of.turn.after->known(), part.before, of.turn.held_chunks),
                        static_cast<uint32_t>(part.prefix->chunks.size()) - 1);
  if (part.known != 0)
    part.prefix = behind(*part.prefix, part.known, of.in->what->spec.chunk_tokens);
  return part;
}

/// What was not looked for counts as found in host memory, and the session remembers what is there.
void add_known(connection& client, subject& of, const searched_part& part, prefix_plan& plan) {
  const space_spec& spec = of.in->what->spec;
  if (part.known != 0) {
    plan = behind_known(std::move(plan), part.known, spec.chunk_tokens);
    host_tier(client).probe->hit(part.known * chunk_layout(spec).objects_per_chunk());
  }
  size_t whole = part.known + part.prefix->whole_chunks(); // what follows is not of the chain
  known_prefix found{leading_host_chunks(plan), part.before};
  of.turn.after = std::make_shared<const session_state>(of.turn.after->with_known(found.first(whole)));
}

/// `run_lookup` of what cannot be answered at once.
void run_actor(connection& client, const connection::request& what, lookup_request request,
               std::function<void(lookup_answer)> then) {
  caf::actor worker =
      client.idle_lookups().take([&client] { return spawn_lookup(client.system(), client.home()); });
  client.ask(what, worker, std::move(request), "the lookup's actor has ended",
             [&client, what, worker, then = std::move(then)](const lookup_answer& found) {
               client.idle_lookups().put_back(worker);
               if (found.failure.code != errc::ok)
                 client.refuse(what, found.failure);
               else if (!what.context->live())
                 client.refuse(what, {what.context->ended.load(), "the lookup ended before it was answered"});
               else
                 then(found);
             });
}

/// Calls `then` with what was found, or refuses the request.
template <class Then>
void run_lookup(connection& client, const connection::request& what, lookup_request request, Then then) {
  if (client.may_look_up_at_once())
    if (auto found = look_up_at_once(request)) {
      then(std::move(*found));
      return;
    }
  run_actor(client, what, std::move(request), std::move(then));
}

void found_some(connection& client, const connection::request& what, const subject& of, lookup_answer found) {
  auto& requested = found.plan.requested_chunks;
  requested = std::max(requested, static_cast<uint32_t>(of.prefix->chunks.size()));
  if (of.turn.after) // a lookup that ends before leaves its session as it was
    save_turn(client, what, of.turn,
              [&client, what, of, found = std::move(found)] { answer(client, what, of, found); });
  else
    answer(client, what, of, found);
}

/// `body`: keeps the frame of `asked`; null while it is served, if there is one candidate.
void search(connection& client, const connection::request& what, const wire::Lookup& asked, subject of,
            const keep_alive& body) {
  auto part = part_of(client, asked, of);
  auto request = request_of(client, what, asked, of, part.prefix);
  request.plan.logits = of.candidates.back().entry != nullptr;
  request.hold = of.lease_wanted;
  if (of.lease_wanted)
    request.account = client.leased();
  request.prefill_tokens_per_s = client.prefill_speed(asked.options(), *of.in);
  request.note_access = of.lease_wanted && what.context->inference == 0;
  if (of.lease_wanted && of.loads && !std::exchange(of.told, true)) {
    client.use_for_inference(what, asked.options(), request.objects);
    client.tell_shadows(what, asked.options(), of.in->what, of.prefix);
  }
  run_lookup(client, what, std::move(request),
             [&client, what, &asked, of = std::move(of), body,
              part = std::move(part)](lookup_answer found) mutable { // called once
               if (part.remembers)
                 add_known(client, of, part, found.plan);
               if (of.candidates.size() == 1 || found.plan.found_chunks >= of.candidates.back().enough) {
                 found_some(client, what, of, std::move(found));
                 return;
               }
               subject next = of;
               next.candidates.pop_back();
               search(client, what, asked, std::move(next), body);
             });
}

/// The chunks up to the end of the saved turn, its tail included.
prefix_ptr up_to(const saved_turn& saved, const chunk_prefix& whole) {
  auto part = std::make_shared<chunk_prefix>();
  part->chunks.reserve(saved.chunks + 1);
  part->chunks.assign(whole.chunks.begin(), whole.chunks.begin() + static_cast<std::ptrdiff_t>(saved.chunks));
  part->chunks.push_back(saved.key);
  part->prompt_tokens = whole.prompt_tokens;
  part->tail_tokens = saved.tail_tokens;
  return part;
}

/// Without a hold: whether anything is present behind the whole chunks of the saved turn. If so, that is more than its tail.
void search_behind(connection& client, const connection::request& what, const wire::Lookup& asked, subject of,
                   const saved_turn& saved, const keep_alive& body) {
  size_t more = saved.chunks + 1;
  auto request =
      request_of(client, what, asked, of, behind(*of.prefix, saved.chunks, of.in->what->spec.chunk_tokens));
  run_lookup(client, what, std::move(request),
             [&client, what, &asked, of = std::move(of), more, body](const lookup_answer& found) {
               subject next = of;
               if (found.plan.found_chunks != 0)
                 next.candidates.push_back({of.prefix, more});
               search(client, what, asked, std::move(next), body);
             });
}

/// Without an entry for the prompt, or if not all of it is found.
void choose(connection& client, const connection::request& what, const wire::Lookup& asked, subject of,
            const keep_alive& body) {
  auto saved = of.saved();
  if (!saved || saved->tail_tokens == 0) {
    of.candidates.clear();
    of.candidates.push_back({of.prefix});
    search(client, what, asked, std::move(of), body);
    return;
  }
  of.candidates = {{up_to(*saved, *of.prefix)}};
  if (of.prefix->chunks.size() == saved->chunks)
    search(client, what, asked, std::move(of), body);
  else
    search_behind(client, what, asked, std::move(of), *saved, body);
}

/// All of the prompt, if its logits are kept.
void find_prompt(connection& client, const connection::request& what, const wire::Lookup& asked, subject of,
                 const keep_alive& body) {
  find_prompt_request request{of.in->what->id, of.prompt->chunks.back()};
  client.ask(what, client.group().group, request, "the trust group's actor has ended",
             [&client, what, &asked, of = std::move(of), body](const find_prompt_answer& kept) {
               if (!kept.found) {
                 choose(client, what, asked, of, body);
                 return;
               }
               auto lookup = request_of(client, what, asked, of, of.prompt);
               run_lookup(client, what, std::move(lookup),
                          [&client, what, &asked, of, body, entry = kept.found](const lookup_answer& found) {
                            subject next = of;
                            if (found.plan.found_chunks != of.prompt->chunks.size()) {
                              choose(client, what, asked, std::move(next), body);
                              return;
                            }
                            next.candidates = {{of.prefix}, {of.prompt, of.prompt->chunks.size(), entry}};
                            search(client, what, asked, std::move(next), body);
                          });
             });
}

/// `body`: keeps the frame of `asked`; null while the frame is being served.
void look_up(connection& client, const connection::request& what, const wire::Lookup& asked, subject of,
             keep_alive body) {
  size_t objects = object_source(of.in->what, {of.prefix, &of.prefix->chunks}).size();
  if (!of.lease_wanted)
    objects /= 64; // only the plan is kept
  if (!body && (connection::may_wait_for_room(objects) || of.saved() || of.prompt))
    body = client.hold_body();
  client.with_room(what, objects,
                   [&client, what, &asked, of = std::move(of), body = std::move(body)]() mutable {
                     if (of.prompt && of.loads)
                       find_prompt(client, what, asked, std::move(of), body);
                     else
                       choose(client, what, asked, std::move(of), body);
                   });
}

/// Of a prompt whose logits are wanted all chunks, and the whole ones alone; otherwise the latter are what was asked for.
void set_prefix(subject& of, chunk_prefix prefix) {
  auto all = std::make_shared<const chunk_prefix>(std::move(prefix));
  of.prefix = all;
  if (!of.logits_wanted || all->chunks.empty())
    return;
  of.prompt = all;
  if (all->tail_tokens == 0)
    return;
  auto whole = std::make_shared<chunk_prefix>(*all);
  whole->chunks.pop_back();
  whole->tail_tokens = 0;
  of.prefix = std::move(whole);
}

/// `body`: as above.
void begin(connection& client, const connection::request& what, const wire::Lookup& asked, subject of,
           keep_alive body) {
  auto in = of.in;
  if (asked.prefix()->session() != nullptr) {
    auto then = [&client, what, &asked, of, body](chunk_prefix prefix, const hashed_turn& turn,
                                                  const keep_alive& hashed) {
      subject ready = of;
      ready.turn = turn;
      set_prefix(ready, std::move(prefix));
      look_up(client, what, asked, std::move(ready), body ? body : hashed);
    };
    if (wants_rest(client, asked, of))
      with_rest_of_turn(client, what, *in, *asked.prefix(), std::move(then));
    else
      with_turn(client, what, *in, *asked.prefix(), of.logits_wanted, std::move(then));
    return;
  }
  auto* chunks_of = of.logits_wanted ? &with_prompt_chunks : &with_chunks;
  chunks_of(client, what, *in, *asked.prefix(),
            [&client, what, &asked, of = std::move(of),
             body = std::move(body)](chunk_prefix prefix, const keep_alive& hashed) mutable { // called once
              set_prefix(of, std::move(prefix));
              look_up(client, what, asked, std::move(of), body ? body : hashed);
            });
}

std::shared_ptr<named_lookup> name_lookup(connection& client, const connection::request& what,
                                          const lookup_id& id) {
  return std::make_shared<named_lookup>(id, what.context,
                                        [group = client.group().group](finish_lookup_notice notice) {
                                          caf::anon_send(group, std::move(notice));
                                        });
}

/// Registered in the trust group before the lookup starts.
void begin_named(connection& client, const connection::request& what, const wire::Lookup& asked, subject of) {
  auto id = protocol::to_lookup_id(asked.lookup_id());
  auto body = client.hold_body();
  of.name = name_lookup(client, what, id);
  client.ask(what, client.group().group, begin_lookup_request{id, what.context},
             "the trust group's actor has ended",
             [&client, what, &asked, of = std::move(of), body](const begin_lookup_answer& answer) mutable {
               if (client.ok(what, answer.failure))
                 begin(client, what, asked, std::move(of), std::move(body));
             });
}

/// Answers all requests that wait for its id with `gone`.
void refused(connection& client, const connection::request& what, const wire::Lookup& asked) {
  if (asked.lookup_id() == nullptr || asked.lookup_id()->size() != lookup_id{}.bytes.size())
    return;
  auto id = protocol::to_lookup_id(asked.lookup_id());
  auto name = name_lookup(client, what, id);
  caf::anon_send(client.group().group, begin_lookup_request{id, what.context}); // before the notice of `name`
}

} // namespace

void lookup_refused(connection& client, const connection::request& what, std::span<const uint8_t> body) {
  if (auto asked = protocol::well_formed<wire::Lookup>(body))
    refused(client, what, **asked);
}

void lookup(connection& client, const connection::request& what, const wire::Lookup& asked,
            protocol::descriptor_list&) {
  client.take_terms(what, asked);
  auto in = client.find_space(what, asked.space());
  if (!in) {
    refused(client, what, asked);
    return;
  }
  size_t width = asked.prefix()->digests() ? asked.prefix()->digest_width() : in->hasher->width();
  bool loads = !client.loads_nothing(asked.options(), *in);
  subject of{std::move(in), asked.lease(), loads, asked.prefix()->tail(), asked.digests() ? width : 0,
             asked.logits()};
  if (asked.lookup_id() != nullptr)
    begin_named(client, what, asked, std::move(of));
  else
    begin(client, what, asked, std::move(of), nullptr);
}

} // namespace terrace::actors::verbs

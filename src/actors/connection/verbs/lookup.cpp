// lookup: the number and tiers of the leading chunks that are present, and optionally a lease on them.
#include "actors/connection/verbs.hpp"
#include "base/random_id.hpp"
#include "base/tier_properties.hpp"
#include "connection/lookup_answers.hpp"
#include "connection/request_values.hpp"
#include "group/leased_part.hpp"
#include "group/recent_lookups.hpp"
#include "tier/search/chunk_miss.hpp"

#include <algorithm>
#include <caf/send.hpp>
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
  client_space_ptr space;
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

session_answer session_of(const subject& target) {
  if (!target.turn.after)
    return {};
  return {target.turn.after->tokens(), target.turn.after->last(), target.space->hasher->width()};
}

/// Of the end of the saved turn, or of the prompt, if what was found ends there.
std::vector<uint64_t> cursors_of(const subject& target, const prefix_plan& plan) {
  if (const auto& entry = target.candidates.back().entry)
    return entry->end.cursors;
  auto saved = target.saved();
  return saved && plan.found_tokens == saved->tokens() ? saved->cursors : std::vector<uint64_t>();
}

/// Why the first chunk behind what was found is missing, from what can be read at once.
miss_reason why_missing(const trust_group& group, const space_ptr& space, const digest& chunk) {
  chunk_layout layout(space->spec);
  std::vector<object_key> keys;
  for (uint32_t object = 0; object < layout.objects_per_chunk(); ++object)
    keys.push_back(layout.key(space->id, chunk, object));
  std::vector<chunk_examiner::place> places(keys.size());
  for (const tier_handle& tier : group.tiers()) {
    auto present = tier.index->try_probe(keys);
    for (size_t i = 0; present && i < keys.size(); ++i)
      if (present->test(i) && !places[i].readable)
        places[i] = {tier.kind, tier.reads()};
  }
  chunk_examiner examiner(space, group.events->departures());
  auto miss = examiner.examine(chunk, [&](uint32_t object) { return places[object]; });
  return miss ? miss->why : miss_reason::not_stored; // it has come meanwhile
}

/// Lookups under a lease are those of engines.
void count_misses(connected_client& client, const subject& target, const lookup_answer& found) {
  const chunk_prefix& prefix = *target.prefix;
  const size_t whole = prefix.whole_chunks();
  size_t next = found.plan.found_chunks;
  if (!target.lease_wanted || next >= whole)
    return;
  const space_ptr& space = target.space->space;
  auto count = [&](miss_reason why, size_t chunks) {
    client.environment().client_probe->missed(client.group().name, client.record()->name(), why,
                                              chunks * uint64_t{space->spec.chunk_tokens});
  };
  auto count_next = [&](miss_reason why, size_t chunks) {
    const size_t some = std::min(chunks, whole - next);
    if (some != 0)
      count(why, some);
    next += some;
  };
  count_next(miss_reason::left_to_recompute, found.recompute_chunks);
  count_next(miss_reason::pending, found.pending_chunks);
  if (next < whole)
    count(why_missing(client.group(), space, prefix.chunks[next]), whole - next);
}

/// Remembers a lookup under a lease, for whoever asks what became of it.
void remember(const client_request& request, const wire::Lookup& asked, const subject& target,
              const lookup_answer& found) {
  const connected_client& client = request.client;
  recent_lookup one;
  one.at = client.environment().now();
  one.connection = client.record()->id;
  one.client = client.record()->name();
  one.trace = request.context->trace;
  one.id = protocol::to_lookup_id(asked.lookup_id());
  one.space = target.space->space->id;
  one.chunk_tokens = target.space->space->spec.chunk_tokens;
  one.prefix = target.prefix;
  one.found_chunks = found.plan.found_chunks;
  one.recompute_chunks = found.recompute_chunks;
  one.prefill_tokens_per_s = client.prefill_speed(asked.options(), *target.space);
  client.group().lookups->add(std::move(one));
}

void answer(client_request& request, const wire::Lookup& asked, const subject& target,
            const lookup_answer& found) {
  connected_client& client = request.client;
  const prefix_plan& plan = found.plan;
  const space_spec& spec = target.space->space->spec;
  if (target.loads)
    count_hits(*target.space->probe, spec, found);
  if (target.loads && !found.shortened)
    count_misses(client, target, found);
  client.count_recomputed(spec, found.recompute_chunks);
  if (target.lease_wanted)
    remember(request, asked, target, found);
  lease_ptr held;
  if (found.shortened)
    client.environment().client_probe->lease_shortened();
  if (target.lease_wanted && plan.found_chunks != 0 && request.context->live()) {
    held = lease_on(found, *target.candidates.back().prefix, target.space->space, random_lease_id(),
                    client.record()->id, client.environment().now());
    if (!request.ok(client.holdings().may_lease()) ||
        !request.ok(client.holdings().may_name(objects_of(*held))))
      return;
    request.actor.add_lease(held);
  }
  auto cursors = cursors_of(target, plan);
  const prompt_entry_ptr& entry = target.candidates.back().entry;
  if (target.logits_wanted)
    client.environment().client_probe->sessions.prompt_asked(entry != nullptr);
  if (target.name) {
    auto outcome = outcome_of(found, spec, held);
    outcome.cursors = cursors;
    outcome.prompt = entry;
    if (held)
      outcome.end_lease = request.actor.lease_ender(held->id);
    target.name->answered(std::move(outcome));
  }
  request.reply([&](flatbuffers::FlatBufferBuilder& body) {
    return write_lookup_answer(
        body, plan, {found.recompute_chunks, found.pending_chunks, found.brought_chunks()},
        held ? held->id : lease_id{}, {target.prefix->chunks, target.digest_width}, session_of(target),
        {cursors, entry ? std::span(entry->logits) : std::span<const uint8_t>()});
  });
}

lookup_request question_of(client_request& request, const wire::Lookup& asked, const subject& target,
                           const prefix_ptr& prefix) {
  auto question = lookup_of(request, target.space->space, prefix);
  question.tiers = tiers_of(asked, target.space->defaults);
  return question;
}

// ---- what the last lookup of the session found ----

const tier_handle& host_tier(connected_client& client) { return client.group().tiers().front(); }

/// Of a lookup in a session: whether what is known of its prefix matters. A lease has to hold all of it, and beside a faster
/// tier it is not known which of the two has a chunk now.
bool uses_known(connected_client& client, const wire::Lookup& asked, const subject& target) {
  uint32_t tiers = tiers_of(asked, target.space->defaults);
  bool host = tiers == 0 || (tiers >> static_cast<unsigned>(memory_tier) & 1) != 0;
  const auto& all = client.group().tiers();
  bool fastest = all.front().kind == memory_tier &&
                 std::none_of(all.begin(), all.end(),
                              [](const tier_handle& tier) { return faster_than_memory(tier.kind); });
  return asked.prefix()->session() != nullptr && !target.lease_wanted && target.loads && host && fastest &&
         !has_trailing_pools(target.space->space->spec);
}

/// Whether only the rest of the prompt is needed: the answer tells nothing else of the chunks before it.
bool wants_rest(connected_client& client, const wire::Lookup& asked, const subject& target) {
  return uses_known(client, asked, target) && !asked.digests() && !target.logits_wanted &&
         !target.tail_wanted && !target.name;
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
searched_part part_of(connected_client& client, const wire::Lookup& asked, const subject& target) {
  searched_part part{target.candidates.back().prefix, uses_known(client, asked, target), target.turn.left_out,
                     target.turn.before};
  if (!part.remembers || part.known != 0 || part.prefix->chunks.empty())
    return part;
  part.before = host_tier(client).index->table().departures();
  part.known = std::min(still_known(target.turn.after->known(), part.before, target.turn.held_chunks),
                        static_cast<uint32_t>(part.prefix->chunks.size()) - 1);
  if (part.known != 0)
    part.prefix = behind(*part.prefix, part.known, target.space->space->spec.chunk_tokens);
  return part;
}

/// What was not looked for counts as found in host memory, and the session remembers what is there.
void add_known(connected_client& client, subject& target, const searched_part& part, prefix_plan& plan) {
  const space_spec& spec = target.space->space->spec;
  if (part.known != 0) {
    plan = behind_known(std::move(plan), part.known, spec.chunk_tokens);
    host_tier(client).probe->hit(part.known * chunk_layout(spec).objects_per_chunk());
  }
  size_t whole = part.known + part.prefix->whole_chunks(); // what follows is not of the chain
  known_prefix found{leading_host_chunks(plan), part.before};
  target.turn.after =
      std::make_shared<const session_state>(target.turn.after->with_known(found.first(whole)));
}

// ---- the search ----

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

/// All of the prompt, if its logits are kept and all of its chunks are found.
task<prompt_entry_ptr> kept_prompt(client_request& request, const wire::Lookup& asked,
                                   const subject& target) {
  const auto& group = request.client.group().group;
  find_prompt_request prompt{target.space->space->id, target.prompt->chunks.back()};
  auto kept = co_await request.ask<find_prompt_answer>(group, std::move(prompt), group_ended);
  if (!kept.found)
    co_return nullptr;
  auto question = question_of(request, asked, target, target.prompt);
  auto found = co_await request.look_up(std::move(question));
  bool whole = found.plan.found_chunks == target.prompt->chunks.size();
  co_return whole ? std::move(kept.found) : nullptr;
}

/// Chooses what is searched, the most likely last.
task<> choose(client_request& request, const wire::Lookup& asked, subject& target) {
  target.candidates.clear();
  if (target.prompt && target.loads) {
    auto entry = co_await kept_prompt(request, asked, target);
    if (entry) {
      target.candidates.push_back({target.prefix});
      target.candidates.push_back({target.prompt, target.prompt->chunks.size(), std::move(entry)});
      co_return;
    }
  }
  auto saved = target.saved();
  if (!saved || saved->tail_tokens == 0) {
    target.candidates.push_back({target.prefix});
    co_return;
  }
  target.candidates.push_back({up_to(*saved, *target.prefix)});
  if (target.prefix->chunks.size() == saved->chunks)
    co_return;
  // If anything is present behind the whole chunks of the saved turn, that is more than its tail.
  auto rest = behind(*target.prefix, saved->chunks, target.space->space->spec.chunk_tokens);
  auto question = question_of(request, asked, target, rest);
  auto found = co_await request.look_up(std::move(question));
  if (found.plan.found_chunks != 0)
    target.candidates.push_back({target.prefix, saved->chunks + 1});
}

/// Chunks that were in remote tiers alone before they were leased in host memory, by tier_kind.
std::array<uint32_t, tier_kinds> brought_of(const prefix_plan& before, const prefix_plan& leased) {
  const size_t found = std::min(before.chunk_tiers.size(), leased.chunk_tiers.size());
  std::array<uint32_t, tier_kinds> brought{};
  for (size_t i = 0; i < found; ++i)
    if (shared_by_machines(before.chunk_tiers[i]) && leased.chunk_tiers[i] == memory_tier)
      ++brought[static_cast<size_t>(before.chunk_tiers[i])];
  return brought;
}

/// A lease holds nothing of a store that other machines write to. What that has is brought to host memory first; what arrives is
/// leased. `found`: with what the tiers of this machine have.
task<lookup_answer> lease_elsewhere(client_request& request, lookup_request question, prefix_ptr prefix,
                                    lookup_answer found) {
  lookup_request survey = question;
  survey.hold = survey.note_access = false;
  survey.account = nullptr;
  survey.object_tiers = true;
  auto there = co_await request.look_up(std::move(survey));
  if (there.plan.found_chunks <= found.plan.found_chunks) {
    found.recompute_chunks = std::max(found.recompute_chunks, there.recompute_chunks);
    co_return found;
  }
  found = {}; // a request that waits for memory holds nothing
  prefetch_subject subject;
  subject.space = question.space;
  subject.chunks = {prefix, &prefix->chunks};
  subject.before = prefix->parent;
  subject.first_token = prefix->first_token;
  subject.prompt_tokens = prefix->prompt_tokens;
  // The access is noted before the objects come. Otherwise they come as old as when they were last used, and in a full memory
  // the first to come leave again to make room for the next.
  subject.note_access = std::exchange(question.note_access, false);
  const uint32_t present = there.plan.found_chunks;
  auto plan = std::make_shared<const prefix_plan>(std::move(there.plan));
  auto brought = plan;
  auto done = co_await bring_ahead(request, std::move(subject), std::move(brought));
  if (question.tiers != 0)
    question.tiers |= 1U << static_cast<unsigned>(memory_tier); // it is there now
  question.asks_store = false; // a lease holds nothing of what the store would tell
  auto leased = co_await request.look_up(std::move(question));
  const uint32_t left = present - std::min(present, leased.plan.found_chunks);
  leased.brought = brought_of(*plan, leased.plan);
  if (left == 0 || done.late != 0)
    leased.recompute_chunks = std::max(leased.recompute_chunks, there.recompute_chunks + left);
  else if (done.end == prefetch_end::deadline)
    leased.pending_chunks = left;
  co_return leased;
}

/// Searches one candidate after the other, until enough is found.
task<lookup_answer> search(client_request& request, const wire::Lookup& asked, subject& target) {
  connected_client& client = request.client;
  while (true) {
    auto part = part_of(client, asked, target);
    auto question = question_of(request, asked, target, part.prefix);
    question.plan.logits = target.candidates.back().entry != nullptr;
    question.hold = target.lease_wanted;
    if (target.lease_wanted)
      question.account = client.leased();
    question.prefill_tokens_per_s = client.prefill_speed(asked.options(), *target.space);
    question.note_access = target.lease_wanted && request.context->inference == 0;
    if (target.lease_wanted && target.loads && !std::exchange(target.told, true)) {
      use_for_inference(request, asked.options(), question.objects);
      tell_shadows(request, asked.options(), target.space->space, target.prefix);
    }
    lookup_request again;
    const bool elsewhere = question.hold && target.loads && asks_stores(client.group(), question.tiers);
    if (elsewhere)
      again = question;
    auto found = co_await request.look_up(std::move(question));
    if (elsewhere && !found.shortened &&
        found.plan.found_chunks + found.recompute_chunks < part.prefix->chunks.size()) {
      found = co_await lease_elsewhere(request, std::move(again), part.prefix, std::move(found));
    }
    if (part.remembers)
      add_known(client, target, part, found.plan);
    if (target.candidates.size() == 1 || found.plan.found_chunks >= target.candidates.back().enough) {
      auto& requested = found.plan.requested_chunks;
      requested = std::max(requested, static_cast<uint32_t>(target.prefix->chunks.size()));
      co_return found;
    }
    target.candidates.pop_back();
  }
}

/// Of a prompt whose logits are wanted all chunks, and the whole ones alone; otherwise the latter are what was asked for.
void set_prefix(subject& target, chunk_prefix prefix) {
  auto all = std::make_shared<const chunk_prefix>(std::move(prefix));
  target.prefix = all;
  if (!target.logits_wanted || all->chunks.empty())
    return;
  target.prompt = all;
  if (all->tail_tokens == 0)
    return;
  auto whole = std::make_shared<chunk_prefix>(*all);
  whole->chunks.pop_back();
  whole->tail_tokens = 0;
  target.prefix = std::move(whole);
}

std::shared_ptr<named_lookup> name_lookup(const connected_client& client, const request_entry& request,
                                          const lookup_id& id) {
  return std::make_shared<named_lookup>(id, request.context,
                                        [group = client.group().group](finish_lookup_notice notice) {
                                          caf::anon_send(group, std::move(notice));
                                        });
}

/// Answers all requests that wait for its id with `gone`.
void refused(const connected_client& client, const request_entry& request, const wire::Lookup& asked) {
  if (asked.lookup_id() == nullptr || asked.lookup_id()->size() != lookup_id{}.bytes.size())
    return;
  auto id = protocol::to_lookup_id(asked.lookup_id());
  auto name = name_lookup(client, request, id);
  caf::anon_send(client.group().group,
                 begin_lookup_request{id, request.context}); // before the notice of `name`
}

} // namespace

void lookup_refused(const connected_client& client, const request_entry& request,
                    std::span<const uint8_t> body) {
  if (auto asked = protocol::well_formed<wire::Lookup>(body))
    refused(client, request, **asked);
}

task<> lookup(client_request& request, const wire::Lookup& asked, protocol::descriptor_list&) {
  connected_client& client = request.client;
  auto opened = client.holdings().spaces().opened(asked.space());
  if (!request.ok(opened)) {
    refused(client, request, asked);
    co_return;
  }
  client_space_ptr space_of = std::move(*opened);
  size_t width = asked.prefix()->digests() ? asked.prefix()->digest_width() : space_of->hasher->width();
  bool loads = !client.loads_nothing(asked.options(), *space_of);
  subject target;
  target.space = std::move(space_of);
  target.lease_wanted = asked.lease();
  target.loads = loads;
  target.tail_wanted = asked.prefix()->tail();
  target.digest_width = asked.digests() ? width : 0;
  target.logits_wanted = asked.logits();
  if (asked.lookup_id() != nullptr) { // registered in the trust group before the lookup starts
    auto id = protocol::to_lookup_id(asked.lookup_id());
    target.name = name_lookup(client, request, id);
    const auto& group = client.group().group;
    begin_lookup_request named{id, request.context};
    auto begun = co_await request.ask<begin_lookup_answer>(group, std::move(named), group_ended);
    co_await request.valid(begun.failure);
  }
  const client_space& space = *target.space;
  const wire::Prefix& sent = *asked.prefix();
  chunk_prefix prefix;
  if (sent.session() != nullptr) {
    turn_parts wanted{.tail = target.logits_wanted};
    wanted.rest = wants_rest(client, asked, target);
    auto named = co_await turn_of_session(request, space, sent, wanted);
    target.turn = std::move(named.turn);
    prefix = std::move(named.chunks);
  } else if (target.logits_wanted) {
    prefix = co_await prompt_chunks(request, space, sent);
  } else {
    prefix = co_await request.chunks(space, sent, true);
  }
  set_prefix(target, std::move(prefix));
  size_t objects = object_source(target.space->space, {target.prefix, &target.prefix->chunks}).size();
  if (!target.lease_wanted)
    objects /= 64; // only the plan is kept
  co_await request.room(objects);
  target.candidates.push_back({target.prefix});
  if (target.prompt || target.saved()) {
    co_await choose(request, asked, target);
  }
  auto found = co_await search(request, asked, target);
  if (target.turn.after) { // a lookup that ends before leaves its session as it was
    std::optional<session_hold> unchanged;
    co_await save_turn(request, target.turn, unchanged);
  }
  answer(request, asked, target, found);
}

} // namespace terrace::actors::verbs

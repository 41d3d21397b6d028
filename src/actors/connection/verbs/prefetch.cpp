// prefetch: brings chunks of lower tiers into host memory or a GPU tier before anybody loads them.
#include "actors/connection/prefixes.hpp"
#include "actors/connection/target_tier.hpp"
#include "actors/connection/verbs.hpp"
#include "actors/lookup/lookup_actor.hpp"
#include "actors/transfer/prefetch_actor.hpp"
#include "connection/request_values.hpp"

#include <caf/send.hpp>

namespace terrace::actors::verbs {

namespace {

using plan_ptr = std::shared_ptr<const prefix_plan>;
using prefetch_plans = std::function<void(plan_ptr, uint32_t recompute_chunks)>;

/// How it ends, and what it leaves to the client.
struct prefetch_terms {
  wire::StopRule rule = wire::StopRule::best_effort;
  uint32_t prefill_tokens_per_s = 0;                          ///< of the client; 0: nothing is left to it
  uint32_t recompute_chunks = 0;                              ///< present, and left to it
  uint32_t tiers = 0;                                         ///< to search, as in lookup_request
  tier_kind to = tier_kind::host;                             ///< or a faster one
  std::shared_ptr<const arrival_counters> arrivals = nullptr; ///< null: only the answer
};

void answer_prefetch(connection& client, const connection::request& what, const prefetch_subject& of,
                     const prefetch_terms& terms, const prefetch_result& done) {
  if (!client.ok(what, done.failure))
    return;
  if (terms.rule == wire::StopRule::wait && done.end == prefetch_end::deadline) {
    client.refuse(what, {errc::deadline, "the request ended with " + std::to_string(done.all.delivered) +
                                             " of " + std::to_string(done.all.expected) + " chunks in " +
                                             (of.to == tier_kind::host ? "host memory" : "the GPU tier")});
    return;
  }
  client.reply(what, [&](flatbuffers::FlatBufferBuilder& body) {
    std::vector<wire::PrefetchShare> shares;
    for (const prefetch_share& each : done.by_tier)
      shares.emplace_back(each.found, each.expected, each.delivered);
    auto tiers = body.CreateVectorOfStructs(shares);
    auto missing = done.missing ? wire::Missing(done.missing->chunk, done.missing->pool, done.missing->rank,
                                                done.damaged)
                                : wire::Missing();
    return wire::CreatePrefetchAnswer(body, done.requested, done.all.found, done.all.expected,
                                      done.all.delivered, of.in->spec.chunk_tokens, tiers,
                                      static_cast<wire::PrefetchEnd>(done.end), of.first_token,
                                      done.missing ? &missing : nullptr, terms.recompute_chunks);
  });
}

/// Where the first `chunks` of them are. Nothing is held: memory is taken for what is found. What a client of this speed has
/// sooner if it computes it is left out.
void find_chunks(connection& client, const connection::request& what, const prefetch_subject& of,
                 uint32_t chunks, uint32_t prefill_tokens_per_s, uint32_t tiers, const prefetch_plans& then) {
  lookup_request request;
  request.group = client.group_handle();
  request.in = of.in;
  auto searched = of.chunks;
  if (chunks < searched->size())
    searched = std::make_shared<const std::vector<digest>>(searched->begin(), searched->begin() + chunks);
  request.objects = {of.in, searched};
  request.context = what.context;
  request.plan = {chunks, of.first_token, of.prompt_tokens};
  request.object_tiers = true;
  request.prefill_tokens_per_s = prefill_tokens_per_s;
  request.tiers = tiers;
  caf::actor worker =
      client.idle_lookups().take([&client] { return spawn_lookup(client.system(), client.home()); });
  client.ask(what, worker, std::move(request), "the lookup's actor has ended",
             [&client, what, then, worker](const lookup_answer& found) {
               client.idle_lookups().put_back(worker);
               if (found.failure.code != errc::ok)
                 client.refuse(what, found.failure);
               else if (!what.context->live())
                 client.refuse(what, {what.context->ended.load(), "the prefetch ended before it began"});
               else
                 then(std::make_shared<const prefix_plan>(found.plan), found.recompute_chunks);
             });
}

void start_prefetch(connection& client, const connection::request& what, const prefetch_subject& of,
                    const prefetch_terms& terms, const plan_ptr& found, const plan_ptr& expected) {
  prefetch_job job;
  static_cast<prefetch_subject&>(job) = of;
  job.group = client.group_handle();
  job.found = found;
  job.expected = expected;
  caf::actor worker = spawn_prefetch(client.system());
  auto stop =
      std::make_shared<std::function<void()>>([worker] { caf::anon_send(worker, stop_prefetch_notice{}); });
  client.when_ended(what, stop);
  client.ask(what, worker, std::move(job), "the prefetch's actor has ended",
             [&client, what, of, terms, stop](const prefetch_result& done) {
               answer_prefetch(client, what, of, terms, done);
             });
}

/// A chain that would evict its own beginning is cut; what a shorter one needs of states and windows is looked up.
void plan_prefetch(connection& client, const connection::request& what, const prefetch_subject& of,
                   prefetch_terms terms) {
  auto chunks = static_cast<uint32_t>(of.chunks->size());
  find_chunks(client, what, of, chunks, terms.prefill_tokens_per_s, terms.tiers,
              [&client, what, of, terms](const plan_ptr& found, uint32_t recompute) mutable {
                terms.recompute_chunks = recompute;
                client.count_recomputed(of.in->spec, recompute);
                uint64_t room = room_to_bring(client.group(), of.to);
                uint32_t fit = chunks_that_fit(of.in->spec, *found, room, of.to);
                if (fit == found->found_chunks)
                  start_prefetch(client, what, of, terms, found, found);
                else if (fit == 0)
                  start_prefetch(client, what, of, terms, found, std::make_shared<const prefix_plan>());
                else
                  find_chunks(client, what, of, fit, 0, terms.tiers,
                              [&client, what, of, terms, found](const plan_ptr& expected, uint32_t) {
                                start_prefetch(client, what, of, terms, found, expected);
                              });
              });
}

void begin_prefetch(connection& client, const connection::request& what, prefetch_subject of,
                    const prefetch_terms& terms) {
  what.context->ahead = true;
  of.context = what.context;
  of.arrivals = terms.arrivals;
  of.to = terms.to;
  size_t objects = object_source(of.in, of.chunks).size() / 64; // only plans are kept
  client.with_room(what, objects,
                   [&client, what, of = std::move(of), terms] { plan_prefetch(client, what, of, terms); });
}

void begin_leased(connection& client, const connection::request& what, const lease_ptr& from,
                  const prefetch_terms& terms) {
  prefetch_subject of;
  of.in = from->in;
  of.chunks = {from, &from->chunks};
  of.before = from->before;
  of.first_token = from->first_token;
  of.prompt_tokens = from->first_token + tokens_of(*from);
  of.waits = terms.rule != wire::StopRule::best_effort;
  of.note_access = false; // the lookup that took the lease was the access
  of.held_by = from;
  prefetch_terms found = terms; // the lookup has left to the client what it computes faster
  found.prefill_tokens_per_s = 0;
  begin_prefetch(client, what, std::move(of), found);
}

/// Of a lookup, perhaps another client's and not answered yet.
void begin_found(connection& client, const connection::request& what, const lookup_outcome& found,
                 const prefetch_terms& terms) {
  lease_ptr held = found.held.lock();
  if (held) {
    begin_leased(client, what, held, terms);
  } else if (found.leased) {
    client.refuse(what, {errc::gone, "the lookup was answered, and its lease has ended since"});
  } else if (found.plan.found_chunks != 0) {
    client.refuse(what, {errc::bad_request, "expected a lookup_id of a lookup that takes a lease"});
  } else {
    client.reply(what, [&](flatbuffers::FlatBufferBuilder& body) {
      return wire::CreatePrefetchAnswer(body, found.plan.requested_chunks, 0, 0, 0, found.chunk_tokens, 0,
                                        wire::PrefetchEnd::complete, found.plan.first_token, nullptr,
                                        found.recompute_chunks);
    });
  }
}

void begin_prefix(connection& client, const connection::request& what, const wire::Prefetch& asked,
                  const prefetch_terms& terms) {
  auto in = client.find_space(what, asked.space());
  if (!in)
    return;
  with_chunks(client, what, *in, *asked.prefix(),
              [&client, what, &asked, terms, in](chunk_prefix prefix, const keep_alive&) {
                auto named = std::make_shared<const chunk_prefix>(std::move(prefix));
                prefetch_subject of;
                of.in = in->what;
                of.chunks = {named, &named->chunks};
                of.before = named->parent;
                of.first_token = named->first_token;
                of.prompt_tokens = named->prompt_tokens;
                of.waits = terms.rule != wire::StopRule::best_effort;
                of.note_access = what.context->inference == 0;
                if (!client.loads_nothing(asked.options(), *in)) {
                  client.use_for_inference(what, asked.options(), object_source{of.in, of.chunks});
                  client.tell_shadows(what, asked.options(), of.in, named);
                }
                prefetch_terms with = terms;
                with.tiers = tiers_of(asked, in->defaults);
                with.prefill_tokens_per_s = client.prefill_speed(asked.options(), *in);
                begin_prefetch(client, what, std::move(of), with);
              });
}

} // namespace

void prefetch(connection& client, const connection::request& what, const wire::Prefetch& asked,
              protocol::descriptor_list&) {
  client.take_terms(what, asked);
  auto to = static_cast<tier_kind>(asked.to());
  if (!can_bring_to(client, what, to))
    return;
  prefetch_terms terms{asked.rule()};
  terms.to = to;
  if (const wire::Arrivals* wanted = asked.arrivals()) {
    auto region = client.find_region(what, wanted->region());
    if (!region)
      return;
    auto arrivals = arrival_counters::in(region, wanted->offset(), 1);
    if (!arrivals) {
      client.refuse(what, arrivals.error());
      return;
    }
    terms.arrivals = std::move(*arrivals);
  }
  if (asked.prefix() != nullptr) {
    begin_prefix(client, what, asked, terms);
  } else if (asked.lease() != nullptr) {
    client.with_lease(
        what, protocol::to_lease_id(asked.lease()),
        [&client, what, terms](const lease_ptr& from) { begin_leased(client, what, from, terms); });
  } else {
    client.ask(what, client.group().group,
               await_lookup_request{protocol::to_lookup_id(asked.lookup_id()), what.context},
               "the trust group's actor has ended",
               [&client, what, terms](const await_lookup_answer& answer) {
                 if (client.ok(what, answer.failure))
                   begin_found(client, what, *answer.found, terms);
               });
  }
}

} // namespace terrace::actors::verbs

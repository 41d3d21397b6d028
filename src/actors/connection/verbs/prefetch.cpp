// prefetch: brings chunks of lower tiers into host memory or a GPU tier before anybody loads them.
#include "actors/connection/request.hpp"
#include "actors/connection/verbs.hpp"
#include "actors/transfer/transfer_actors.hpp"
#include "base/tier_properties.hpp"
#include "connection/request_values.hpp"
#include "transfer/prefetch_plan.hpp"

#include <caf/send.hpp>

namespace terrace::actors::verbs {

namespace {

/// How it ends, and what it leaves to the client.
struct prefetch_terms {
  wire::StopRule rule = wire::StopRule::best_effort;
  uint32_t prefill_tokens_per_s = 0;                          ///< of the client; 0: nothing is left to it
  uint32_t recompute_chunks = 0;                              ///< present, and left to it
  uint32_t tiers = 0;                                         ///< to search, as in lookup_request
  tier_kind to = memory_tier;                                 ///< or a faster one
  std::shared_ptr<const arrival_counters> arrivals = nullptr; ///< null: only the answer
};

void answer_prefetch(client_request& request, const prefetch_subject& subject, const prefetch_terms& terms,
                     const prefetch_result& done) {
  if (terms.rule == wire::StopRule::wait && done.end == prefetch_end::deadline) {
    request.refuse({errc::deadline, "the request ended with " + std::to_string(done.all.delivered) + " of " +
                                        std::to_string(done.all.expected) + " chunks in " +
                                        long_name(subject.to)});
    return;
  }
  request.reply([&](flatbuffers::FlatBufferBuilder& body) {
    std::vector<wire::PrefetchShare> shares;
    for (const prefetch_share& each : done.by_tier)
      shares.emplace_back(each.found, each.expected, each.delivered);
    auto tiers = body.CreateVectorOfStructs(shares);
    auto missing = done.missing ? wire::Missing(done.missing->chunk, done.missing->pool, done.missing->rank,
                                                done.damaged)
                                : wire::Missing();
    return wire::CreatePrefetchAnswer(body, done.requested, done.all.found, done.all.expected,
                                      done.all.delivered, subject.space->spec.chunk_tokens, tiers,
                                      static_cast<wire::PrefetchEnd>(done.end), subject.first_token,
                                      done.missing ? &missing : nullptr, terms.recompute_chunks);
  });
}

/// Where the first `chunks` of them are. Nothing is held: memory is taken for what is found. What a client of this speed has
/// sooner if it computes it is left out.
task<lookup_answer> find_chunks(client_request& request, const prefetch_subject& subject, uint32_t chunks,
                                uint32_t prefill_tokens_per_s, uint32_t tiers) {
  auto searched = subject.chunks;
  if (chunks < searched->size())
    searched = std::make_shared<const std::vector<digest>>(searched->begin(), searched->begin() + chunks);
  lookup_request question;
  question.group = request.client.group_handle();
  question.space = subject.space;
  question.objects = {subject.space, searched};
  question.context = request.context;
  question.plan = {chunks, subject.first_token, subject.prompt_tokens};
  question.object_tiers = true;
  question.prefill_tokens_per_s = prefill_tokens_per_s;
  question.tiers = tiers;
  auto found = co_await request.look_up(std::move(question));
  co_return found;
}

/// A chain that would evict its own beginning is cut; what a shorter one needs of states and windows is looked up.
task<prefetch_result> run_prefetch(client_request& request, prefetch_subject subject,
                                   std::shared_ptr<const prefix_plan> found, uint32_t tiers) {
  trust_group const& group = request.client.group();
  auto expected = found;
  uint64_t room = room_to_bring(group, subject.to);
  uint32_t fit = chunks_that_fit(subject.space->spec, *found, room, subject.to);
  if (fit == 0) {
    expected = std::make_shared<const prefix_plan>();
  } else if (fit != found->found_chunks) {
    auto shorter = co_await find_chunks(request, subject, fit, 0, tiers);
    expected = std::make_shared<const prefix_plan>(std::move(shorter.plan));
  }
  prefetch_job job;
  static_cast<prefetch_subject&>(job) = subject;
  job.group = request.client.group_handle();
  job.found = found;
  job.expected = expected;
  job.read_by = read_limit_of(*found, std::chrono::steady_clock::now());
  auto worker = spawn_prefetch(request.actor.system());
  auto stop =
      std::make_shared<std::function<void()>>([worker] { caf::anon_send(worker, stop_prefetch_notice{}); });
  request.actor.when_ended(subject.context, stop);
  auto done = co_await request.ask<prefetch_result>(worker, std::move(job), "the prefetch's actor has ended");
  if (done.late != 0)
    request.client.environment().client_probe->fell_behind();
  co_return done;
}

task<> bring(client_request& request, prefetch_subject subject, prefetch_terms terms) {
  connected_client& client = request.client;
  request.context->ahead = true;
  subject.context = request.context;
  subject.arrivals = terms.arrivals;
  subject.to = terms.to;
  size_t charged = object_source(subject.space, subject.chunks).size() / 64; // only plans are kept
  co_await request.room(charged);
  auto chunks = static_cast<uint32_t>(subject.chunks->size());
  auto present = co_await find_chunks(request, subject, chunks, terms.prefill_tokens_per_s, terms.tiers);
  terms.recompute_chunks = present.recompute_chunks;
  auto found = std::make_shared<const prefix_plan>(std::move(present.plan));
  request.release_body();
  auto done = co_await run_prefetch(request, subject, found, terms.tiers);
  co_await request.valid(done.failure);
  terms.recompute_chunks += done.late;
  client.count_recomputed(subject.space->spec, terms.recompute_chunks);
  answer_prefetch(request, subject, terms, done);
}

task<> bring_leased(client_request& request, lease_ptr from, prefetch_terms terms) {
  prefetch_subject subject;
  subject.space = from->space;
  subject.chunks = {from, &from->chunks};
  subject.before = from->before;
  subject.first_token = from->first_token;
  subject.prompt_tokens = from->first_token + tokens_of(*from);
  subject.waits = terms.rule != wire::StopRule::best_effort;
  subject.note_access = false; // the lookup that took the lease was the access
  subject.held_by = from;
  terms.prefill_tokens_per_s = 0; // the lookup has left to the client what it computes faster
  co_await bring(request, std::move(subject), terms);
}

/// Brings what a lookup has found.
task<> bring_found(client_request& request, lookup_id wanted, prefetch_terms terms) {
  auto answered = co_await awaited(request, wanted);
  const lookup_outcome& found = *answered;
  if (lease_ptr held = found.held.lock()) {
    co_await bring_leased(request, std::move(held), terms);
  } else if (found.leased) {
    request.refuse({errc::gone, "the lookup was answered, and its lease has ended since"});
  } else if (found.plan.found_chunks != 0) {
    request.refuse({errc::bad_request, "expected a lookup_id of a lookup that takes a lease"});
  } else {
    request.reply([&](flatbuffers::FlatBufferBuilder& body) {
      return wire::CreatePrefetchAnswer(body, found.plan.requested_chunks, 0, 0, 0, found.chunk_tokens, 0,
                                        wire::PrefetchEnd::complete, found.plan.first_token, nullptr,
                                        found.recompute_chunks);
    });
  }
}

task<> bring_prefix(client_request& request, const wire::Prefetch& asked, prefetch_terms terms) {
  connected_client& client = request.client;
  auto space = co_await request.space_of(asked);
  auto prefix = co_await request.chunks_of(*space, asked);
  auto named = std::make_shared<const chunk_prefix>(std::move(prefix));
  prefetch_subject subject;
  subject.space = space->space;
  subject.chunks = {named, &named->chunks};
  subject.before = named->parent;
  subject.first_token = named->first_token;
  subject.prompt_tokens = named->prompt_tokens;
  subject.waits = terms.rule != wire::StopRule::best_effort;
  subject.note_access = request.context->inference == 0;
  if (!client.loads_nothing(asked.options(), *space)) {
    use_for_inference(request, asked.options(), object_source{subject.space, subject.chunks});
    tell_shadows(request, asked.options(), subject.space, named);
  }
  terms.tiers = tiers_of(asked, space->defaults);
  terms.prefill_tokens_per_s = client.prefill_speed(asked.options(), *space);
  co_await bring(request, std::move(subject), terms);
}

} // namespace

task<prefetch_result> bring_ahead(client_request& request, prefetch_subject subject,
                                  std::shared_ptr<const prefix_plan> found) {
  auto context = std::make_shared<request_context>();
  context->group = request.context->group;
  context->connection = request.context->connection;
  context->request = request.context->request;
  context->inference = request.context->inference;
  context->ahead = true;
  subject.context = context;
  if (!request.inbox().set_part(request, context))
    co_return prefetch_result{};
  auto done = co_await run_prefetch(request, std::move(subject), std::move(found), 0);
  request.inbox().set_part(request, nullptr);
  co_return done;
}

task<> prefetch(client_request& request, const wire::Prefetch& asked, protocol::descriptor_list&) {
  auto to = static_cast<tier_kind>(asked.to());
  if (!can_bring_to(request, to))
    co_return;
  prefetch_terms terms{asked.rule()};
  terms.to = to;
  if (const wire::Arrivals* wanted = asked.arrivals()) {
    auto region = co_await request.region_of(*wanted);
    auto arrivals = arrival_counters::in(region, wanted->offset(), 1);
    co_await request.valid(arrivals);
    terms.arrivals = std::move(*arrivals);
  }
  if (asked.prefix() != nullptr) {
    co_await bring_prefix(request, asked, terms);
  } else if (asked.lease() != nullptr) {
    lease_id id = protocol::to_lease_id(asked.lease());
    auto from = co_await request.lease(id);
    co_await bring_leased(request, from, terms);
  } else {
    lookup_id wanted = protocol::to_lookup_id(asked.lookup_id());
    co_await bring_found(request, wanted, terms);
  }
}

} // namespace terrace::actors::verbs

// load: copies chunks into a region.
#include "actors/connection/prefixes.hpp"
#include "actors/connection/run_lists.hpp"
#include "actors/connection/verbs.hpp"
#include "actors/connection/verbs/start_load.hpp"
#include "actors/gpu/daemon/device_actor.hpp"
#include "actors/lookup/lookup_actor.hpp"
#include "group/leased_part.hpp"
#include "gpu/generation_page.hpp"

namespace terrace::actors::verbs {

namespace {

/// The objects of a load, before its runs are validated.
struct load_subject {
  space_ptr in;
  std::shared_ptr<metrics::space_probe> probe; ///< null if only a lease identifies the space
  batch_ptr objects;
  transfer_scope scope;
  uint16_t rank = 0;
  tier_holds leased;
  lease_ptr from;                ///< null: by prefix, which counts as an access
  uint64_t first_token = 0;      ///< position in the prompt at which the first object's chunk begins
  batch_ptr offered{};           ///< those of them that are found and not left to the client; null: all
  uint32_t recompute_chunks = 0; ///< present, and left to it
  std::optional<wire::Missing> missing{}; ///< the first one that was not found in the chosen tiers
  uint32_t tail_tokens = 0;               ///< not 0: the last chunk is a partial one, of so many tokens
};

/// Where a load copies to.
struct load_target {
  std::shared_ptr<const client_region> region;
  run_lists runs;
  std::shared_ptr<const client_region> counters; ///< region of the arrivals; null: none
  uint64_t counters_offset = 0;
  std::shared_ptr<const arrival_counters> arrivals = nullptr; ///< there, once their number is known
  device_generations generations{};                           ///< without their number until it is known
  uint64_t generations_end = 0;                               ///< of their page
};

/// Generations that the device of the region writes. False: they are wrong, and the request was refused.
bool take_generations(connection& client, const connection::request& what, const wire::Load& asked,
                      load_target& target) {
  const wire::Generation* wanted = asked.generations();
  if (wanted == nullptr)
    return true;
  auto page = client.find_region(what, wanted->region());
  if (!page)
    return false;
  auto device = target.region->device();
  if (!device || !page->page() || region_of(*page->page()).device() != region_of(*device).device() ||
      wanted->offset() % sizeof(uint32_t) != 0 ||
      wanted->offset() / sizeof(uint32_t) >= gpu::generation_page::slots_max) {
    client.refuse(what, {errc::bad_request,
                         "generations: expected counters of 4 bytes in a region that was registered as "
                         "generations, and a load into memory of its device"});
    return false;
  }
  target.generations.page = page->page();
  target.generations.slot = static_cast<uint32_t>(wanted->offset() / sizeof(uint32_t));
  target.generations.value = wanted->value();
  const uint32_t events = page->page()->events();
  target.generations_end = events != 0 ? events : page->size() / sizeof(uint32_t);
  return true;
}

void start_job(connection& client, const connection::request& what, const load_target& target,
               const load_subject& subject, std::shared_ptr<const scatter_gather> runs) {
  load_job job;
  job.group = client.group_handle();
  job.in = subject.in;
  job.objects = subject.offered ? subject.offered : subject.objects;
  job.objects_per_chunk = subject.scope.pools.size();
  job.leased = subject.leased;
  job.held_by = subject.from;
  job.runs = std::move(runs);
  job.target = outside(target.region);
  job.arrivals = target.arrivals;
  if (!subject.offered) // otherwise chunks of the request are missing
    job.generations = target.generations;
  job.context = what.context;
  job.note_access = !subject.from && what.context->inference == 0;
  size_t requested = subject.objects->size() / job.objects_per_chunk;
  start_load(client, what, std::move(job), [&client, what, subject, requested](const load_result& done) {
    if (subject.probe)
      subject.probe->loaded(done.bytes);
    client.reply(what, [&](flatbuffers::FlatBufferBuilder& body) {
      auto tiers = body.CreateVector(done.bytes_by_tier.data(), done.bytes_by_tier.size());
      auto missing = missing_of(done, subject.scope, subject.rank, subject.in->spec);
      if (!missing)
        missing = subject.missing;
      return wire::CreateLoadAnswer(
          body, static_cast<uint32_t>(requested), static_cast<uint32_t>(done.chunks),
          tokens_of_chunks(done.chunks, requested, subject.tail_tokens, subject.in->spec.chunk_tokens),
          done.bytes, tiers, subject.first_token, missing ? &*missing : nullptr, subject.recompute_chunks);
    });
  });
}

/// Validates the runs and starts the load.
void load_objects(connection& client, const connection::request& what, load_target target,
                  const load_subject& subject) {
  if (target.region->mapped() && !target.region->writable()) {
    client.refuse(what, {errc::denied, "the region is sealed against writing; register a writable one"});
    return;
  }
  if (target.counters) {
    auto arrivals = arrival_counters::in(target.counters, target.counters_offset, subject.scope.pools.size());
    if (!arrivals) {
      client.refuse(what, arrivals.error());
      return;
    }
    target.arrivals = std::move(*arrivals);
  }
  target.generations.count = static_cast<uint32_t>(subject.scope.pools.size());
  if (target.generations.page &&
      target.generations.slot + subject.scope.pools.size() > target.generations_end) {
    client.refuse(what,
                  {errc::bad_request, "generations: expected " + std::to_string(subject.scope.pools.size()) +
                                          " counters inside their region, one for each pool, all with an "
                                          "event if some have one"});
    return;
  }
  with_runs(client, what, target.runs, subject.objects, target.region->size(),
            [&client, what, target, subject](std::shared_ptr<const scatter_gather> runs) {
              start_job(client, what, target, subject, std::move(runs));
            });
}

// ---- what is left to the client ----

/// A load that is found whole and of which all is left to the client has no objects.
batch_ptr first_of(const object_batch& all, size_t objects) {
  auto made = std::make_shared<object_batch>();
  auto end = static_cast<ptrdiff_t>(objects);
  made->keys.assign(all.keys.begin(), all.keys.begin() + end);
  made->parents.assign(all.parents.begin(), all.parents.begin() + end);
  made->payload_bytes.assign(all.payload_bytes.begin(), all.payload_bytes.begin() + end);
  made->trailing = all.trailing;
  return made;
}

/// What is loaded of a prefix.
struct load_choice {
  uint32_t tiers = 0;                ///< to search; 0: all
  uint32_t prefill_tokens_per_s = 0; ///< of the client; 0: nothing is left to it
  bool is_all() const { return tiers == 0 && prefill_tokens_per_s == 0; }
};

/// A prefix from its first chunk, in all pools: of a part it is not known what the client has of the rest.
bool may_leave(const wire::Load& request) { return request.first_chunk() == 0 && request.pools() == nullptr; }

/// Looks for the chunks on all ranks in the chosen tiers, and loads of them what the client does not have sooner if it
/// computes it.
void search_and_load(connection& client, const connection::request& what, const load_target& target,
                     load_subject subject, std::shared_ptr<const chunk_prefix> prefix,
                     const load_choice& choice) {
  lookup_request request;
  request.group = client.group_handle();
  request.in = subject.in;
  request.objects = {subject.in, {prefix, &prefix->chunks}};
  request.context = what.context;
  request.plan = {static_cast<uint32_t>(prefix->chunks.size()), prefix->first_token, prefix->prompt_tokens};
  request.prefill_tokens_per_s = choice.prefill_tokens_per_s;
  request.tiers = choice.tiers;
  caf::actor worker =
      client.idle_lookups().take([&client] { return spawn_lookup(client.system(), client.home()); });
  client.ask(what, worker, std::move(request), "the lookup's actor has ended",
             [&client, what, target, subject, worker, choice](const lookup_answer& found) {
               client.idle_lookups().put_back(worker);
               if (!client.ok(what, found.failure))
                 return;
               load_subject offered = subject;
               offered.recompute_chunks = found.recompute_chunks;
               if (choice.tiers != 0 && found.plan.missing) {
                 const prefix_object& first = *found.plan.missing;
                 offered.missing =
                     wire::Missing(first.chunk + static_cast<uint32_t>(subject.scope.range.first), first.pool,
                                   first.rank, false);
               }
               if (found.recompute_chunks != 0 || offered.missing)
                 offered.offered =
                     first_of(*subject.objects, found.plan.found_chunks * subject.scope.pools.size());
               client.count_recomputed(subject.in->spec, found.recompute_chunks);
               load_objects(client, what, target, offered);
             });
}

/// By prefix, which counts as an access.
void load_made(connection& client, const connection::request& what, const wire::Load& request,
               const load_target& target, const client_space& in, const chunk_prefix& prefix,
               const transfer_scope& scope, const batch_ptr& objects) {
  bool loads = !client.loads_nothing(request.options(), in);
  if (loads)
    client.use_for_inference(what, request.options(), objects);
  if (loads && client.group().feed)
    client.tell_shadows(what, request.options(), in.what,
                        std::make_shared<const chunk_prefix>(part_of(prefix, scope.range)), in.rank);
  load_subject subject{
      in.what, in.probe, objects, scope,
      in.rank, {},       nullptr, prefix.first_token + scope.range.first * in.what->spec.chunk_tokens};
  if (scope.range.first + scope.range.count == prefix.chunks.size())
    subject.tail_tokens = prefix.tail_tokens;
  load_choice choice{tiers_of(request, in.defaults)};
  if (client.group().tiers().size() > 1 && may_leave(request))
    choice.prefill_tokens_per_s = client.prefill_speed(request.options(), in);
  if (choice.is_all())
    load_objects(client, what, target, subject);
  else
    search_and_load(client, what, target, std::move(subject),
                    std::make_shared<const chunk_prefix>(part_of(prefix, scope.range)), choice);
}

void load_prefix(connection& client, const connection::request& what, const wire::Load& request,
                 const load_target& target) {
  auto in = client.find_space(what, request.space());
  if (!in)
    return;
  with_prefix_objects(client, what, in, request, with_chunks,
                      [&client, what, &request, target, in](
                          const chunk_prefix& prefix, const transfer_scope& scope, const batch_ptr& objects) {
                        load_made(client, what, request, target, *in, prefix, scope, objects);
                      });
}

void load_leased(connection& client, const connection::request& what, const wire::Load& request,
                 const load_target& target, const lease_ptr& from, const keep_alive& body) {
  if (request.space() != 0 && static_cast<space_id>(request.space()) != from->in->id) {
    client.refuse(what, {errc::bad_request, "the lease belongs to space " +
                                                std::to_string(static_cast<uint32_t>(from->in->id)) +
                                                ", not to space " + std::to_string(request.space())});
    return;
  }
  auto scope = scope_of(client, what, request, from->in->spec, from->chunks.size());
  if (!scope)
    return;
  auto rank = client.holdings().rank_in(*from->in);
  if (!client.ok(what, rank))
    return;
  with_leased_objects(client, what, from, *scope, *rank, body,
                      [&client, what, target, from, scope = *scope, rank = *rank](const batch_ptr& objects,
                                                                                  tier_holds leased) {
                        auto known = client.holdings().space(from->in->id);
                        load_subject subject{
                            from->in, known ? known->probe : nullptr, objects, scope, rank, std::move(leased),
                            from,     token_of(*from, scope.range)};
                        if (scope.range.first + scope.range.count == from->chunks.size())
                          subject.tail_tokens = from->tail_tokens;
                        load_objects(client, what, target, subject);
                      });
}

} // namespace

void load(connection& client, const connection::request& what, const wire::Load& asked,
          protocol::descriptor_list&) {
  client.take_terms(what, asked);
  auto region = client.find_region(what, asked.region());
  if (!region)
    return;
  load_target target{region, runs_of(client, *asked.runs(), asked.runs_per_object()), nullptr};
  if (const wire::Arrivals* arrivals = asked.arrivals()) {
    target.counters = client.find_region(what, arrivals->region());
    target.counters_offset = arrivals->offset();
    if (!target.counters)
      return;
  }
  if (!take_generations(client, what, asked, target))
    return;
  if (asked.prefix() != nullptr) {
    load_prefix(client, what, asked, target);
    return;
  }
  auto body = client.hold_body(); // the lease may belong to another connection, which takes a request
  client.with_lease(what, protocol::to_lease_id(asked.lease()),
                    [&client, what, &asked, target, body](const lease_ptr& from) {
                      load_leased(client, what, asked, target, from, body);
                    });
}

} // namespace terrace::actors::verbs

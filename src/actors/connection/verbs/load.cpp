// load: copies chunks into a region.
#include "actors/connection/verbs.hpp"
#include "actors/gpu/daemon/device_actor.hpp"
#include "gpu/generation_page.hpp"
#include "group/leased_part.hpp"

namespace terrace::actors::verbs {

namespace {

/// What is loaded, before its runs are validated.
struct load_choice {
  space_ptr space;
  std::shared_ptr<metrics::space_probe> probe; ///< null if only a lease identifies the space
  batch_ptr objects;
  transfer_scope scope;
  uint16_t rank = 0;
  tier_holds leased;
  lease_ptr from;                ///< null: by prefix, which counts as an access
  uint64_t first_token = 0;      ///< position in the prompt at which the first object's chunk begins
  batch_ptr offered{};           ///< those of them that are found and not left to the client; null: all
  uint32_t recompute_chunks = 0; ///< present, and left to it
  read_limit read_by = read_limit::max(); ///< what has not come by then is left to it as well
  bool from_store = false;                ///< some of it is found in a store that machines share
  std::optional<wire::Missing> missing{}; ///< the first one that was not found in the chosen tiers
  uint32_t tail_tokens = 0;               ///< not 0: the last chunk is a partial one, of so many tokens
};

/// Where a load copies to.
struct load_target {
  client_region_ptr region;
  client_region_ptr counters; ///< region of the arrivals; null: none
  uint64_t counters_offset = 0;
  std::shared_ptr<const arrival_counters> arrivals = nullptr; ///< there, once their number is known
  device_generations generations{};                           ///< without their number until it is known
  uint64_t generations_end = 0;                               ///< of their page
};

/// Generations that the device of the region writes.
result<void> add_generations(connected_client& client, const wire::Generation& wanted, load_target& target) {
  auto page = client.holdings().regions().registered(wanted.region());
  if (!page)
    return tl::unexpected(page.error());
  const auto& device = target.region->device();
  const auto& shared = (*page)->page();
  if (!device || !shared || region_of(*shared).device() != region_of(*device).device() ||
      wanted.offset() % sizeof(uint32_t) != 0 ||
      wanted.offset() / sizeof(uint32_t) >= gpu::generation_page::slots_max)
    return fail(errc::bad_request,
                "generations: expected counters of 4 bytes in a region that was registered as generations, "
                "and a load into memory of its device");
  target.generations.page = shared;
  target.generations.slot = static_cast<uint32_t>(wanted.offset() / sizeof(uint32_t));
  target.generations.value = wanted.value();
  const uint32_t events = shared->events();
  target.generations_end = events != 0 ? events : (*page)->size() / sizeof(uint32_t);
  return {};
}

result<load_target> target_of(connected_client& client, const wire::Load& asked) {
  auto region = client.holdings().regions().registered(asked.region());
  if (!region)
    return tl::unexpected(region.error());
  load_target target;
  target.region = std::move(*region);
  if (const wire::Arrivals* arrivals = asked.arrivals()) {
    auto counters = client.holdings().regions().registered(arrivals->region());
    if (!counters)
      return tl::unexpected(counters.error());
    target.counters = std::move(*counters);
    target.counters_offset = arrivals->offset();
  }
  if (const wire::Generation* wanted = asked.generations())
    if (auto added = add_generations(client, *wanted, target); !added)
      return tl::unexpected(added.error());
  return target;
}

/// The target's counters, one for each pool.
result<void> count_pools(load_target& target, size_t pools) {
  if (target.region->mapped() && !target.region->writable())
    return fail(errc::denied, "the region is sealed against writing; register a writable one");
  if (target.counters) {
    auto arrivals = arrival_counters::in(target.counters, target.counters_offset, pools);
    if (!arrivals)
      return tl::unexpected(arrivals.error());
    target.arrivals = std::move(*arrivals);
  }
  target.generations.count = static_cast<uint32_t>(pools);
  if (target.generations.page && target.generations.slot + pools > target.generations_end)
    return fail(errc::bad_request, "generations: expected " + std::to_string(pools) +
                                       " counters inside their region, one for each pool, all with an event "
                                       "if some have one");
  return {};
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

/// A prefix from its first chunk, in all pools: of a part it is not known what the client has of the rest.
bool may_leave(const wire::Load& request) { return request.first_chunk() == 0 && request.pools() == nullptr; }

/// Looks for the chunks on all ranks in the chosen tiers, and loads of them what the client does not have sooner if it
/// computes it.
task<> choose(client_request& request, load_choice& subject, std::shared_ptr<const chunk_prefix> prefix,
              uint32_t tiers, uint32_t prefill_tokens_per_s) {
  auto question = lookup_of(request, subject.space, prefix);
  question.plan.tail_tokens = 0;
  question.prefill_tokens_per_s = prefill_tokens_per_s;
  question.tiers = tiers;
  auto found = co_await request.look_up(std::move(question));
  subject.recompute_chunks = found.recompute_chunks;
  subject.read_by = read_limit_of(found.plan, std::chrono::steady_clock::now());
  subject.from_store = std::ranges::any_of(found.plan.chunk_tiers, shared_by_machines);
  if (tiers != 0 && found.plan.missing) {
    const prefix_object& first = *found.plan.missing;
    subject.missing = wire::Missing(first.chunk + static_cast<uint32_t>(subject.scope.range.first),
                                    first.pool, first.rank, false);
  }
  if (found.recompute_chunks != 0 || subject.missing)
    subject.offered = first_of(*subject.objects, found.plan.found_chunks * subject.scope.pools.size());
}

/// By prefix, which counts as an access.
task<load_choice> subject_of_prefix(client_request& request, const wire::Load& asked,
                                    client_space_ptr space) {
  connected_client& client = request.client;
  auto part = co_await transfer_objects(request, space, asked, false);
  const chunk_prefix& all = *part.prefix;
  const space_spec& spec = space->space->spec;
  bool loads = !client.loads_nothing(asked.options(), *space);
  if (loads)
    use_for_inference(request, asked.options(), part.objects);
  if (loads && client.group().shadow_gate)
    tell_shadows(request, asked.options(), space->space,
                 std::make_shared<const chunk_prefix>(part_of(all, part.scope.range)), space->rank);
  load_choice subject{
      space->space, space->probe, part.objects, part.scope,
      space->rank,  {},           nullptr,      all.first_token + part.scope.range.first * spec.chunk_tokens};
  if (part.scope.range.first + part.scope.range.count == all.chunks.size())
    subject.tail_tokens = all.tail_tokens;
  uint32_t tiers = tiers_of(asked, space->defaults);
  uint32_t speed = 0;
  if (client.group().tiers().size() > 1 && may_leave(asked))
    speed = client.prefill_speed(asked.options(), *space);
  if (tiers != 0 || speed != 0 || asks_stores(client.group(), tiers)) {
    auto chosen = std::make_shared<const chunk_prefix>(part_of(all, part.scope.range));
    co_await choose(request, subject, chosen, tiers, speed);
  }
  co_return subject;
}

task<load_choice> subject_of_lease(client_request& request, const wire::Load& asked) {
  connected_client& client = request.client;
  lease_id id = protocol::to_lease_id(asked.lease());
  auto from = co_await request.lease(id);
  if (asked.space() != 0 && static_cast<space_id>(asked.space()) != from->space->id) {
    error why{errc::bad_request, "the lease belongs to space " +
                                     std::to_string(static_cast<uint32_t>(from->space->id)) +
                                     ", not to space " + std::to_string(asked.space())};
    co_await request.valid(why);
  }
  auto scope = terrace::scope_of(asked, from->space->spec, from->chunks.size());
  co_await request.valid(scope);
  auto rank = client.holdings().spaces().rank_in(*from->space);
  co_await request.valid(rank);
  auto part = co_await transfer_objects(request, from, *scope, *rank);
  auto known = client.holdings().spaces().find(from->space->id);
  load_choice subject{from->space,
                      known ? known->probe : nullptr,
                      std::move(part.objects),
                      *scope,
                      *rank,
                      std::move(part.held),
                      from,
                      token_of(*from, scope->range)};
  if (scope->range.first + scope->range.count == from->chunks.size())
    subject.tail_tokens = from->tail_tokens;
  co_return subject;
}

} // namespace

task<> load(client_request& request, const wire::Load& asked, protocol::descriptor_list&) {
  connected_client& client = request.client;
  const clock::time_point began = client.environment().now();
  auto target = target_of(client, asked);
  co_await request.valid(target);
  load_choice subject;
  if (asked.prefix() != nullptr) {
    auto space = co_await request.space_of(asked);
    subject = co_await subject_of_prefix(request, asked, space);
  } else {
    subject = co_await subject_of_lease(request, asked);
  }
  const uint32_t speed = declared_speed(client, asked.options(), subject.space);
  const size_t pools = subject.scope.pools.size();
  auto counted = count_pools(*target, pools);
  co_await request.valid(counted);
  run_lists sent{asked.runs(), asked.runs_per_object()};
  uint64_t region_bytes = target->region->size();
  auto runs = co_await checked_runs(request, sent, subject.objects, region_bytes);
  load_job job;
  job.group = client.group_handle();
  job.space = subject.space;
  job.objects = subject.offered ? subject.offered : subject.objects;
  job.objects_per_chunk = pools;
  job.leased = std::move(subject.leased);
  job.held_by = subject.from;
  job.runs = std::move(runs);
  job.target = outside(target->region);
  job.arrivals = target->arrivals;
  if (!subject.offered) // otherwise chunks of the request are missing
    job.generations = target->generations;
  job.context = request.context;
  job.read_by = subject.read_by;
  job.from_store = subject.from_store;
  job.note_access = !subject.from && request.context->inference == 0;
  auto& idle = request.actor.idle().loads;
  const size_t offered = job.objects->size() / pools;
  auto done = co_await run_job<load_result>(request, idle, spawn_load, std::move(job));
  co_await request.valid(done.failure);
  if (done.late) {
    client.environment().client_probe->fell_behind();
    subject.recompute_chunks += static_cast<uint32_t>(offered - done.chunks);
  }
  client.count_recomputed(subject.space->spec, subject.recompute_chunks);
  if (subject.probe)
    subject.probe->loaded(done.bytes);
  const size_t requested = subject.objects->size() / pools;
  const uint64_t tokens =
      tokens_of_chunks(done.chunks, requested, subject.tail_tokens, subject.space->spec.chunk_tokens);
  count_spared(client, speed, {subject.space, pools, tokens, began});
  request.reply([&](flatbuffers::FlatBufferBuilder& body) {
    auto tiers = body.CreateVector(done.bytes_by_tier.data(), done.bytes_by_tier.size());
    auto missing = missing_of(done, subject.scope, subject.rank, subject.space->spec);
    if (!missing)
      missing = subject.missing;
    return wire::CreateLoadAnswer(body, static_cast<uint32_t>(requested), static_cast<uint32_t>(done.chunks),
                                  tokens, done.bytes, tiers, subject.first_token,
                                  missing ? &*missing : nullptr, subject.recompute_chunks);
  });
}

} // namespace terrace::actors::verbs

#include "actors/supervision/group_builder.hpp"

#include "actors/gpu/daemon/gpu_tier.hpp"
#include "actors/group/group_actor.hpp"
#include "actors/remote/remote_store.hpp"
#include "actors/tier/policy_actor.hpp"
#include "actors/tier/tier_actor.hpp"
#include "actors/tier/tier_shell.hpp"
#include "actors/transfer/write_through_actor.hpp"
#include "index/object_header.hpp"
#include "storage/disk/direct_source.hpp"

#include <caf/send.hpp>

#include <algorithm>

namespace terrace::actors {

namespace {

using handle_ptr = std::shared_ptr<const tier_handle>;

/// Spawns the tier. Its handle then has its actor and its index.
void start_tier(caf::actor_system& system, trust_group& group, tier_handle& handle,
                tier_arguments arguments) {
  std::function<uint64_t()> capacity = [bytes = handle.bytes] { return bytes; };
  if (!handle.mover)
    capacity = [memory = group.memory] { return memory->size(); };
  arguments.quotas =
      std::make_shared<tenant_quotas>(handle.kind, group.tenants, std::move(capacity), handle.tenants);
  arguments.config = handle;
  arguments.policy = group.policy;
  arguments.probe = handle.probe;
  arguments.ends = group.lease_ends;
  arguments.log = group.events;
  auto& objects = arguments.start.objects;
  if (!objects)
    objects = std::make_unique<residency>(handle.kind);
  handle.index = objects->index();
  group.events->knows(handle.kind, handle.index);
  handle.tier = spawn_tier(system, std::move(arguments));
}

write_through_arguments writes_between(const trust_group& group, const tier_handle& from,
                                       const tier_handle& to) {
  write_through_arguments writes;
  writes.from = from;
  writes.to = to;
  writes.policy = group.policy;
  writes.memory = group.memory;
  writes.log = group.events;
  auto work = std::make_shared<request_context>(); // copiers serve all groups
  work->group = group.number;
  writes.work = std::move(work);
  return writes;
}

/// Connects tiers that are not neighbours. Objects that `further` has need not be brought from `above` to
/// host memory; objects that `above` stores there go on to `further` if it gets what is stored.
void introduce(const tier_handle& above, const handle_ptr& further) {
  if (!above.returns)
    return;
  tier_joined_notice notice{further, {}};
  caf::anon_send(above.tier, notice);
  if (further->demotion == demotion_mode::write_through)
    caf::anon_send(above.returns, notice);
}

/// A tier faster than host memory gives objects back to it: those that it evicts, those used in it again, or
/// those that are moved.
write_through_actor give_back(caf::actor_system& system, const trust_group& group, const tier_handle& from,
                              const runtime::home& home) {
  auto host = std::make_shared<tier_handle>(group.tiers().front());
  host->write_bytes_in_progress = std::min(from.write_bytes_in_progress, group.memory->size() / 4);
  host->write_bytes_together = group.memory->size() / 16;
  auto up = writes_between(group, from, *host);
  up.waiting_bytes = from.bytes / 2;
  up.home = home;
  auto returns = spawn_write_through(system, std::move(up));
  caf::anon_send(from.tier, tier_joined_notice{std::move(host), returns, from.returning});
  return returns;
}

} // namespace

result<std::shared_ptr<trust_group>> build_group(caf::actor_system& system, const group_plan& plan,
                                                 const group_probes& probes,
                                                 std::shared_ptr<copier_pool> copiers) {
  auto memory = segmented_arena::create(arena_of(plan));
  if (!memory)
    return tl::unexpected(memory.error());
  auto group = std::make_shared<trust_group>();
  group->name = plan.name;
  group->number = plan.number;
  group->path = plan.path;
  group->isolated = plan.isolated;
  group->disk_files = plan.disk_files;
  group->state_directory = plan.state_directory;
  group->detached = plan.detached;
  group->memory = std::move(*memory);
  group->leases = std::make_shared<lease_ledger>(plan.leases, plan.lease_ends);
  group->session_leases = group->leases->open();
  group->lease_ends = plan.lease_ends;
  group->tenants->set_quotas(plan.quotas);
  group->copiers = std::move(copiers);
  group->cost_model = plan.cost_model;
  group->fit_window();
  group->group = spawn_group(system, {plan.spaces_max, plan.isolated, plan.memos}, group->lease_notices,
                             group, plan.sessions, probes.clients, group->session_leases, plan.prompts);
  policy_arguments orders;
  orders.log = group->events;
  orders.orders.push_back({plan.host.kind, plan.host.policy, probes.host});
  if (plan.disk)
    orders.orders.push_back({plan.disk->kind, plan.disk->policy, probes.disk_tier});
  if (plan.gpu)
    orders.orders.push_back({plan.gpu->kind, plan.gpu->policy, probes.gpu_tier});
  for (size_t i = 0; i < plan.remotes.size(); ++i)
    orders.orders.push_back(
        {plan.remotes[i].tier.kind, plan.remotes[i].tier.policy, probes.remotes.at(i).tier});
  for (const tier_config& more : plan.more_tiers)
    orders.orders.push_back({more.kind, more.policy, nullptr});
  orders.uses = group->uses;
  orders.clock = plan.policy_time;
  orders.remember = plan.disk && plan.disk->admission.rule == admission_rule::seen_twice;
  group->policy = spawn_policy(system, std::move(orders));
  if (!plan.shadows.empty()) {
    group->shadow_gate = std::make_shared<credit_gate>();
    group->shadow = spawn_shadow(
        system, {plan.shadows, group->shadow_gate, probes.shadow, plan.policy_time, plan.detached});
  }
  auto space = make_space(plan.host, plan.host.bytes, group->memory->segment_bytes());
  if (!space)
    return tl::unexpected(space.error());
  tier_handle host;
  static_cast<tier_config&>(host) = plan.host;
  host.demotion = demotion_mode::off; // it is the first
  host.probe = probes.host;
  host.tenants = probes.host_tenants;
  tier_arguments arguments;
  arguments.start.space = std::move(*space);
  arguments.start.objects = std::make_unique<residency>(host.kind);
  if (plan.host.staging_only)
    arguments.start.objects->departures().only_stage();
  if (plan.disk && needs_origins(plan.disk->demotion))
    arguments.start.objects->departures().origins().keep(); // until a tier joins, nothing can be written
  arguments.leases = group->leases;
  group->staging_only = plan.host.staging_only;
  group->stores = plan.remotes.size();
  start_tier(system, *group, host, std::move(arguments));
  group->host = host.tier;
  group->join(std::move(host));
  if (plan.disk)
    group->starting();
  return group;
}

void join_tier(caf::actor_system& system, trust_group& group, tier_handle tier, tier_start start) {
  const runtime::home home = start.home;
  tier.bytes = start.space->usage().capacity_bytes;
  tier_arguments arguments;
  arguments.start = std::move(start);
  start_tier(system, group, tier, std::move(arguments));
  const tier_handle& host = group.tiers().front();
  const bool writes_new = tier.demotion == demotion_mode::write_through;
  tier.offers_again = write_admission::looks_of(tier.admission, writes_new);
  if (writes_new && tier.store &&
      !tier.offers_again) // a store comes back: until then it misses what is stored
    tier.offers_again = std::make_shared<offers_again>(false);
  auto down = writes_between(group, host, tier);
  down.waiting_bytes =
      group.memory->size() / 2 / (tier.store ? group.stores : 1); // the other half is for loads
  down.home = home;
  tier.write_through = spawn_write_through(system, std::move(down));
  if (tier.faster_than(host))
    tier.returns = give_back(system, group, tier, home);
  auto joined = std::make_shared<const tier_handle>(tier);
  if (needs_origins(tier.demotion))
    caf::anon_send(host.tier, tier_joined_notice{joined, tier.write_through, tier.demotion});
  for (const tier_handle& other : group.tiers())
    if (other.mover && other.faster_than(tier))
      introduce(other, joined);
    else if (other.mover)
      introduce(tier, std::make_shared<const tier_handle>(other));
  group.join(std::move(tier));
}

void join_disk(caf::actor_system& system, trust_group& group, const group_plan& plan,
               const group_probes& probes, const std::function<runtime::home()>& place, opened_disk opened,
               std::function<void(const std::string&)> warn, std::shared_ptr<shared_devices> devices) {
  disk_set_arguments paths;
  paths.limits = plan.disk_io;
  paths.health = plan.disk_health;
  paths.probes = probes.paths;
  paths.tier_probe = probes.disk_tier;
  paths.meter = probes.disk_meter;
  for (uint32_t n = 0; n < group.memory->segments(); ++n)
    if (auto segment = group.memory->segment(n))
      paths.segments.push_back(std::move(segment));
  paths.copiers = group.copiers;
  paths.devices = std::move(devices);
  paths.group = group.number;
  paths.place = place;
  paths.warn = [warn = std::move(warn), name = group.name](const std::string& line) {
    warn("group " + name + ": " + line);
  };
  disk_set_actor set = spawn_disk_set(system, opened, std::move(paths));
  tier_handle disk;
  static_cast<tier_config&>(disk) = *plan.disk;
  disk.write_bytes_in_progress = opened.write_bytes_in_progress(disk.write_bytes_in_progress);
  disk.mover = set;
  if (plan.direct_disk)
    disk.direct = std::make_shared<direct_source>(opened.paths, opened.service, probes.disk_meter);
  disk.service = opened.service;
  disk.probe = probes.disk_tier;
  disk.tenants = probes.disk_tenants;
  disk.meter = probes.disk_meter;
  join_tier(system, group, std::move(disk),
            {std::move(opened.space), std::move(opened.objects), set, place()});
  group.ready();
  for (const tier_handle& tier : group.tiers())
    if (tier.store)
      caf::anon_send(tier.store, volume_joined_notice{});
}

result<void> join_gpu_tier(caf::actor_system& system, trust_group& group, const group_plan& plan,
                           const group_probes& probes, const gpu_registry_actor& devices,
                           std::function<void(const std::string&)> log,
                           std::function<void(const std::string&)> warn) {
  auto space = make_space(*plan.gpu, plan.gpu->bytes, 0);
  if (!space)
    return tl::unexpected(space.error());
  auto service = std::make_shared<device_tier_service>();
  gpu_tier_arguments arena;
  arena.group = group.name;
  arena.device = plan.gpu_device;
  arena.bytes = plan.gpu->bytes;
  arena.devices = devices;
  arena.service = service;
  arena.probe = probes.gpu_tier;
  arena.log = std::move(log);
  arena.warn = std::move(warn);
  gpu_tier_actor mover = spawn_gpu_tier(system, std::move(arena));
  tier_handle tier;
  static_cast<tier_config&>(tier) = *plan.gpu;
  tier.demotion = demotion_mode::off; // loads promote what they use
  tier.write_bytes_in_progress = std::min(tier.write_bytes_in_progress, tier.bytes / 4);
  tier.mover = mover;
  tier.service = service;
  tier.probe = probes.gpu_tier;
  tier.device = std::make_shared<const device_tier>(device_tier{mover, service});
  const tier_kind kind = tier.kind;
  join_tier(system, group, std::move(tier), {.space = std::move(*space)});
  caf::anon_send(mover, serve_tier_notice{group.tier(kind)->tier});
  return {};
}

result<void> join_remote_tier(caf::actor_system& system, const std::shared_ptr<trust_group>& group,
                              const remote_plan& plan, const remote_probes& probes, const remote_homes& at,
                              std::function<void(const std::string&)> log,
                              std::function<void(const std::string&)> warn) {
  const tier_config& config = plan.tier;
  auto space = make_space(config, config.bytes, 0);
  if (!space)
    return tl::unexpected(space.error());
  auto named = [name = std::string(long_name(config.kind)) + " of group " + group->name + " "](auto say) {
    return [name, say = std::move(say)](const std::string& line) { say(name + line); };
  };
  auto service = std::make_shared<remote_service>();
  remote_store_actor store = spawn_remote_store(system, at.store,
                                                {.plan = plan,
                                                 .group = group,
                                                 .service = service,
                                                 .meter = probes.meter,
                                                 .probe = probes.tier,
                                                 .counts = probes.store,
                                                 .log = named(std::move(log)),
                                                 .warn = named(std::move(warn))});
  tier_handle tier;
  static_cast<tier_config&>(tier) = config;
  tier.write_bytes_in_progress = std::min(tier.write_bytes_in_progress, tier.bytes / 4);
  tier.mover = store;
  tier.store = store;
  tier.service = service;
  tier.probe = probes.tier;
  tier.meter = probes.meter;
  // The tier numbers its writes and tells the store what it drops, as a disk tier does.
  auto objects = std::make_unique<residency>(tier.kind, durable_index(first_generation(1)));
  join_tier(system, *group, std::move(tier), {std::move(*space), std::move(objects), store, at.writer});
  return {};
}

std::vector<caf::actor> actors_of(const tier_handle& tier) {
  std::vector<caf::actor> list;
  for (const write_through_actor& writer : {tier.write_through, tier.returns})
    if (writer)
      list.push_back(caf::actor_cast<caf::actor>(writer));
  list.push_back(caf::actor_cast<caf::actor>(tier.tier));
  if (tier.mover)
    list.push_back(caf::actor_cast<caf::actor>(tier.mover));
  return list;
}

std::vector<caf::actor> actors_of(const trust_group& group) {
  std::vector<caf::actor> list;
  const auto& tiers = group.tiers();
  for (auto tier = tiers.rbegin(); tier != tiers.rend(); ++tier) {
    auto more = actors_of(*tier);
    list.insert(list.end(), more.begin(), more.end());
  }
  list.push_back(caf::actor_cast<caf::actor>(group.policy));
  if (group.shadow)
    list.push_back(caf::actor_cast<caf::actor>(group.shadow));
  list.push_back(caf::actor_cast<caf::actor>(group.group));
  return list;
}

} // namespace terrace::actors

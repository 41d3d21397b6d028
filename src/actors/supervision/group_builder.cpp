#include "actors/supervision/group_builder.hpp"

#include "actors/gpu/daemon/gpu_tier.hpp"
#include "actors/group/group_actor.hpp"
#include "actors/tier/policy_actor.hpp"
#include "actors/tier/tier_actor.hpp"
#include "actors/tier/tiers_below.hpp"
#include "actors/transfer/write_through_actor.hpp"
#include "index/object_header.hpp"

#include <caf/send.hpp>

#include <algorithm>

namespace terrace::actors {

namespace {

tier_arguments tier_of(tier_kind kind, const tier_plan& plan, std::unique_ptr<allocator> space,
                       const policy_actor& policy, std::shared_ptr<metrics::tier_probe> probe) {
  tier_arguments arguments;
  arguments.kind = kind;
  arguments.space = std::move(space);
  arguments.policy = policy;
  arguments.free_ahead_bytes = plan.free_ahead_bytes;
  arguments.waiting_max = plan.waiting_max;
  arguments.probe = std::move(probe);
  return arguments;
}

/// Connects tiers that are not neighbours. Objects that `further` has need not be brought from `above` to
/// host memory; objects that `above` stores there go on to `further` if it gets what is stored.
void introduce(const tier_parts& above, const tier_parts& further) {
  if (!above.returns)
    return;
  tier_below known;
  known.to = further.write_through;
  known.index = further.index;
  known.further = true;
  known.service = further.service;
  tier_joined_notice notice{std::make_shared<const tier_below>(std::move(known))};
  caf::anon_send(above.tier, notice);
  if (further.demotion == demotion_mode::write_through)
    caf::anon_send(above.returns, notice);
}

/// A tier faster than host memory gives objects back to it: those that it evicts, those used in it again, or
/// those that are moved.
void give_back(caf::actor_system& system, const group_parts& group, tier_parts& parts, const lower_tier& of) {
  const tier_parts& host = group.tiers().front();
  write_through_arguments up;
  up.from = {parts.kind, parts.tier, of.mover};
  up.to = {tier_kind::host, group.host, {}};
  up.policy = group.policy;
  up.waiting_bytes = parts.bytes / 2;
  auto work = std::make_shared<request_context>();
  work->group = group.number;
  up.work = std::move(work);
  up.memory = group.memory;
  up.probe = host.probe;
  up.bytes_in_progress = std::min(of.write_bytes_in_progress, group.memory->size() / 4);
  up.home = of.home;
  parts.returning = of.returning;
  parts.returns = spawn_write_through(system, std::move(up));
  tier_below next;
  next.mode = of.returning;
  next.to = parts.returns;
  next.index = host.index;
  next.batch_bytes = group.memory->size() / 16;
  caf::anon_send(parts.tier, tier_joined_notice{std::make_shared<const tier_below>(std::move(next))});
}

} // namespace

result<std::shared_ptr<group_parts>> build_group(caf::actor_system& system, const group_plan& plan,
                                                 const group_probes& probes,
                                                 std::shared_ptr<copier_pool> copiers) {
  auto memory = segmented_arena::create(arena_of(plan));
  if (!memory)
    return tl::unexpected(memory.error());
  auto group = std::make_shared<group_parts>();
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
  group->host_tenants = probes.host_tenants;
  group->disk_tenants = probes.disk_tenants;
  group->copiers = std::move(copiers);
  group->cost_model = plan.cost_model;
  group->fit_window();
  group->group = spawn_group(system, {plan.spaces_max, plan.isolated, plan.memos}, group->lease_notices,
                             group, plan.sessions, probes.clients, group->session_leases, plan.prompts);
  policy_arguments orders;
  orders.orders.push_back({tier_kind::host, plan.host.policy, probes.host});
  if (plan.disk)
    orders.orders.push_back({tier_kind::disk, plan.disk->policy, probes.disk_tier});
  if (plan.gpu)
    orders.orders.push_back({tier_kind::gpu, plan.gpu->policy, probes.gpu_tier});
  for (const auto& [kind, policy] : plan.more_tiers)
    orders.orders.push_back({kind, policy, nullptr});
  orders.uses = group->uses;
  orders.clock = plan.policy_time;
  orders.remember = plan.admission.rule == admission_rule::seen_twice;
  group->policy = spawn_policy(system, std::move(orders));
  if (!plan.shadows.empty()) {
    group->feed = std::make_shared<shadow_feed>();
    group->shadow =
        spawn_shadow(system, {plan.shadows, group->feed, probes.shadow, plan.policy_time, plan.detached});
  }
  auto space = make_space(plan.host, plan.host.bytes, group->memory->segment_bytes());
  if (!space)
    return tl::unexpected(space.error());
  auto host = tier_of(tier_kind::host, plan.host, std::move(*space), group->policy, probes.host);
  host.leases = group->leases;
  host.quotas = std::make_shared<tenant_quotas>(
      tier_kind::host, group->tenants, [memory = group->memory] { return memory->size(); },
      probes.host_tenants);
  host.ends = group->lease_ends;
  host.log = group->events;
  host.objects = std::make_unique<residency>(tier_kind::host);
  group->staging_only = plan.host.staging_only;
  if (plan.host.staging_only)
    host.objects->only_stage();
  if (plan.disk && needs_origins(plan.demotion))
    host.objects->keep_origins(false); // until a tier joins, nothing can be written
  tier_parts first;
  first.kind = tier_kind::host;
  first.index = host.objects->index();
  group->events->knows(first.kind, first.index);
  first.probe = probes.host;
  first.tier = group->host = spawn_tier(system, std::move(host));
  group->join(std::move(first));
  if (plan.disk)
    group->starting();
  return group;
}

void join_tier(caf::actor_system& system, group_parts& group, lower_tier below) {
  tier_parts parts;
  parts.kind = below.kind;
  parts.service = below.service;
  parts.probe = below.probe;
  parts.meter = below.meter;
  parts.bytes = below.space->usage().capacity_bytes;
  parts.mover = below.mover;
  parts.demotion = below.demotion;
  parts.device = below.device;
  parts.direct = below.direct;
  auto tier = tier_of(below.kind, below.plan, std::move(below.space), group.policy, below.probe);
  tier.objects = below.objects ? std::move(below.objects) : std::make_unique<residency>(below.kind);
  tier.keeper = below.keeper;
  tier.ends = group.lease_ends;
  tier.log = group.events;
  tier.quotas = std::make_shared<tenant_quotas>(
      below.kind, group.tenants, [bytes = parts.bytes] { return bytes; },
      below.kind == tier_kind::disk ? group.disk_tenants : nullptr);
  parts.index = tier.objects->index();
  group.events->knows(parts.kind, parts.index);
  parts.tier = spawn_tier(system, std::move(tier));
  auto looks = write_admission::looks_of(below.admission, below.demotion == demotion_mode::write_through);
  parts.second_looks = looks;
  write_through_arguments down;
  down.from = {tier_kind::host, group.host, {}};
  down.to = {below.kind, parts.tier, below.mover};
  down.policy = group.policy;
  down.admission = below.admission;
  down.second_looks = std::move(looks);
  down.waiting_bytes = group.memory->size() / 2;   // the other half is for loads
  auto work = std::make_shared<request_context>(); // copiers serve all groups
  work->group = group.number;
  down.work = std::move(work);
  down.availability = below.service;
  down.memory = group.memory;
  down.probe = below.probe;
  down.bytes_in_progress = below.write_bytes_in_progress;
  down.home = below.home;
  parts.write_through = spawn_write_through(system, std::move(down));
  if (needs_origins(below.demotion))
    caf::anon_send(group.host, tier_joined_notice{std::make_shared<const tier_below>(
                                   tier_below{below.demotion, parts.write_through, parts.index,
                                              below.admission.rule != admission_rule::always})});
  if (parts.kind < tier_kind::host)
    give_back(system, group, parts, below);
  for (const tier_parts& other : group.tiers())
    if (other.kind != tier_kind::host)
      other.kind < parts.kind ? introduce(other, parts) : introduce(parts, other);
  group.join(std::move(parts));
}

void join_disk(caf::actor_system& system, group_parts& group, const group_plan& plan,
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
  lower_tier disk;
  disk.kind = tier_kind::disk;
  disk.plan = *plan.disk;
  disk.space = std::move(opened.space);
  disk.objects = std::move(opened.objects);
  disk.mover = set;
  if (plan.direct_disk)
    disk.direct = std::make_shared<direct_source>(opened.paths, opened.service, probes.disk_meter);
  disk.keeper = set;
  disk.service = opened.service;
  disk.probe = probes.disk_tier;
  disk.meter = probes.disk_meter;
  disk.admission = plan.admission;
  disk.demotion = plan.demotion;
  disk.home = place();
  disk.write_bytes_in_progress = opened.write_bytes_in_progress(disk.write_bytes_in_progress);
  join_tier(system, group, std::move(disk));
  group.ready();
}

result<void> join_gpu_tier(caf::actor_system& system, group_parts& group, const group_plan& plan,
                           const group_probes& probes, const devices_actor& devices,
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
  lower_tier tier;
  tier.kind = tier_kind::gpu;
  tier.plan = *plan.gpu;
  tier.space = std::move(*space);
  tier.mover = mover;
  tier.service = service;
  tier.probe = probes.gpu_tier;
  tier.demotion = demotion_mode::off; // loads promote what they use
  tier.returning = plan.gpu_demotion;
  tier.write_bytes_in_progress = std::min(tier.write_bytes_in_progress, plan.gpu->bytes / 4);
  tier.device = std::make_shared<const device_tier>(device_tier{mover, service, plan.gpu_peers});
  join_tier(system, group, std::move(tier));
  caf::anon_send(mover, serve_tier_notice{group.tier(tier_kind::gpu)->tier});
  return {};
}

std::vector<caf::actor> actors_of(const tier_parts& tier) {
  std::vector<caf::actor> list;
  for (const write_through_actor& writer : {tier.write_through, tier.returns})
    if (writer)
      list.push_back(caf::actor_cast<caf::actor>(writer));
  list.push_back(caf::actor_cast<caf::actor>(tier.tier));
  if (tier.mover)
    list.push_back(caf::actor_cast<caf::actor>(tier.mover));
  return list;
}

std::vector<caf::actor> actors_of(const group_parts& group) {
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

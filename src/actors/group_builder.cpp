#include "actors/group_builder.hpp"

#include "actors/disk_actor.hpp"
#include "actors/group_actor.hpp"
#include "actors/policy_actor.hpp"
#include "actors/tier_actor.hpp"
#include "actors/write_through_actor.hpp"
#include "storage/object_header.hpp"

#include <algorithm>

namespace terrace::actors {

namespace {

constexpr uint64_t window_share = 8; ///< a transfer's window is at most this part of the arena

result<tier_actor> build_tier(caf::actor_system& system, tier_kind kind, const tier_plan& plan,
                              uint64_t bytes, uint64_t boundary_bytes, const policy_actor& policy,
                              std::shared_ptr<metrics::tier_probe> probe,
                              std::shared_ptr<std::atomic<uint64_t>> population) {
  auto space = make_allocator(plan.allocator, {.capacity_bytes = bytes,
                                               .alignment_bytes = disk_alignment_bytes,
                                               .boundary_bytes = boundary_bytes,
                                               .slot_bytes = plan.slot_bytes,
                                               .small_max_bytes = plan.small_max_bytes,
                                               .small_percent = plan.small_percent});
  if (!space)
    return tl::unexpected(space.error());
  tier_arguments arguments;
  arguments.kind = kind;
  arguments.space = std::move(*space);
  arguments.policy = policy;
  arguments.policy_name = plan.policy;
  arguments.free_ahead_bytes = plan.free_ahead_bytes;
  arguments.waiting_max = plan.waiting_max;
  arguments.probe = std::move(probe);
  arguments.population = std::move(population);
  return spawn_tier(system, std::move(arguments));
}

} // namespace

result<std::shared_ptr<group_parts>> build_group(caf::actor_system& system, const group_plan& plan,
                                                 const group_probes& probes,
                                                 std::shared_ptr<copier_pool> copiers) {
  auto memory = segmented_arena::create({.name = "terrace-" + plan.name,
                                         .bytes = plan.host.bytes,
                                         .segment_bytes = plan.segment_bytes,
                                         .huge_pages = plan.huge_pages});
  if (!memory)
    return tl::unexpected(memory.error());
  auto group = std::make_shared<group_parts>();
  group->name = plan.name;
  group->path = plan.path;
  group->isolated = plan.isolated;
  group->memory = std::make_shared<segmented_arena>(std::move(*memory));
  group->copiers = std::move(copiers);
  group->host_probe = probes.host;
  group->window_bytes =
      std::min<uint64_t>(64ULL << 20, std::max<uint64_t>(plan.host.bytes / window_share, 1));
  group->group = spawn_group(system, plan.isolated);
  policy_arguments orders;
  orders.orders.push_back({tier_kind::host, plan.host.policy});
  if (plan.disk)
    orders.orders.push_back({tier_kind::disk, plan.disk->policy});
  orders.remember = plan.admission.rule != admission_rule::always;
  group->policy = spawn_policy(system, std::move(orders));
  auto population = std::make_shared<std::atomic<uint64_t>>(0);
  group->host_population = population;
  auto tier = build_tier(system, tier_kind::host, plan.host, plan.host.bytes, group->memory->segment_bytes(),
                         group->policy, probes.host, population);
  if (!tier)
    return tl::unexpected(tier.error());
  group->host = *tier;
  if (plan.disk)
    group->starting();
  return group;
}

result<void> join_disk(caf::actor_system& system, group_parts& group, const group_plan& plan,
                       const group_probes& probes, const runtime::home& home,
                       std::shared_ptr<const extent_file> file,
                       std::function<void(const std::string&)> warn) {
  auto disk = std::make_unique<disk_parts>();
  auto population = std::make_shared<std::atomic<uint64_t>>(0);
  disk->population = population;
  auto tier = build_tier(system, tier_kind::disk, *plan.disk, file->extents_bytes(), 0, group.policy,
                         probes.disk_tier, population);
  if (!tier)
    return tl::unexpected(tier.error());
  disk->tier = *tier;
  disk->file = file;
  disk->write_new = plan.write_new;
  disk->second_looks = plan.write_new && plan.admission.rule != admission_rule::always;
  auto service = std::make_shared<disk_service>();
  disk->service = service;
  disk->probe = probes.disk_tier;
  disk_arguments io;
  io.file = file;
  io.limits = plan.disk_io;
  io.health = plan.disk_health;
  io.probe = probes.disk;
  io.tier_probe = probes.disk_tier;
  io.service = service;
  io.warn = [warn = std::move(warn), name = group.name](const std::string& line) {
    warn("group " + name + ": " + line);
  };
  for (const arena& segment : group.memory->segments())
    io.arena.emplace_back(segment.data(), segment.size());
  disk->disk = spawn_disk(system, home, std::move(io));
  write_through_arguments down;
  down.disk_tier = disk->tier;
  down.policy = group.policy;
  down.admission = plan.admission;
  down.service = service;
  down.waiting_bytes = group.memory->size() / 2; // the other half is for what is loaded meanwhile
  down.disk = disk->disk;
  down.file = file;
  down.memory = group.memory;
  down.copiers = group.copiers;
  down.probe = probes.disk_tier;
  // Writes in progress cannot be evicted: they leave most of a small disk to what may make room for them.
  down.bytes_in_progress = std::min(down.bytes_in_progress, file->extents_bytes() / 4);
  disk->write_through = spawn_write_through(system, std::move(down));
  group.join(std::move(disk));
  group.ready();
  return {};
}

std::vector<caf::actor> actors_of(const group_parts& group) {
  std::vector<caf::actor> list;
  if (const disk_parts* disk = group.disk()) {
    list.push_back(disk->write_through);
    list.push_back(disk->disk);
    list.push_back(caf::actor_cast<caf::actor>(disk->tier));
  }
  list.push_back(caf::actor_cast<caf::actor>(group.host));
  list.push_back(caf::actor_cast<caf::actor>(group.policy));
  list.push_back(caf::actor_cast<caf::actor>(group.group));
  return list;
}

} // namespace terrace::actors

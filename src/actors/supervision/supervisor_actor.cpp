#include "actors/supervision/supervisor_actor.hpp"

#include "actors/supervision/metrics_actor.hpp"
#include "actors/supervision/supervisor_state.hpp"
#include "actors/tier/memory_actor.hpp"
#include "base/tier_properties.hpp"
#include "remote/store_reports.hpp"
#include "runtime/io_port.hpp"

#include <algorithm>
#include <cassert>
#include <cerrno>

namespace terrace::actors {

namespace {

std::shared_ptr<connection_environment> environment_of(supervisor_pointer self, size_t group) {
  auto& state = self->state;
  auto environment = std::make_shared<connection_environment>();
  environment->group = state.groups[group];
  environment->limits = state.with.limits;
  environment->boot = state.with.boot;
  environment->started = clock::now();
  environment->workers = state.with.workers;
  environment->ring_features = state.with.ring_features;
  environment->clients = state.with.clients;
  environment->memory = std::make_shared<request_memory>(environment->limits.group_bytes);
  if (!state.with.regions.empty())
    environment->regions = state.with.regions[group];
  environment->teardown = state.with.teardown;
  environment->populator = state.with.populator;
  environment->client_probe = state.with.probes[group].clients;
  environment->request_probe = state.with.probes[group].requests;
  environment->spaces = state.with.spaces;
  environment->log = state.with.log;
  environment->detail = state.with.detail;
  environment->devices = state.device_processes;
  environment->devices_shown = state.with.devices.board;
  environment->set_log_level = state.with.set_log_level;
  environment->shut_down = state.with.shut_down;
  return environment;
}

/// Returns the clients whose requests took longest, in the mean.
std::vector<metrics::shown_client> slowest(const std::vector<client_ptr>& clients) {
  constexpr size_t shown_max = 20;
  std::vector<metrics::shown_client> all;
  for (const client_ptr& one : clients) {
    uint64_t answered = one->answered;
    all.push_back({.name = one->name(),
                   .group = one->group,
                   .pid = one->pid,
                   .requests = one->requests,
                   .mean_ns = answered == 0 ? 0 : one->latency_ns / answered,
                   .leased_bytes = one->leased ? one->leased->bytes() : 0,
                   .quarantined_bytes = one->quarantined_bytes});
  }
  auto shown = all.begin() + static_cast<std::ptrdiff_t>(std::min(all.size(), shown_max));
  std::partial_sort(all.begin(), shown, all.end(),
                    [](const auto& a, const auto& b) { return a.mean_ns > b.mean_ns; });
  all.erase(shown, all.end());
  return all;
}

void prepare_memory(supervisor_pointer self, size_t group) {
  auto& state = self->state;
  const group_plan& plan = state.with.groups[group];
  state.memories.push_back(spawn_memory(
      self->system(), {.group = group,
                       .parts = state.groups[group],
                       .prefault_piece_bytes = state.with.prefault_piece_bytes,
                       .report_to = caf::actor_cast<supervisor_actor>(self),
                       .devices = plan.device_reads ? state.device_processes : gpu_registry_actor(),
                       .log = state.with.log,
                       .warn = state.with.warn,
                       .detached = state.with.detached}));
  self->monitor(state.memories.back());
  if (auto why = state.groups[group]->memory->huge_pages_refusal(); !why.empty())
    state.with.warn("host memory of group " + plan.name + ": " + why);
  if (state.with.exposition)
    state.with.exposition->add(memory_gauges(state.groups[group]->memory, {{"group", plan.name}}));
}

error start(supervisor_pointer self) {
  auto& state = self->state;
  std::vector<copier_pool::member> copiers;
  for (uint32_t i = 0; i < state.with.copiers; ++i) {
    auto load = std::make_shared<copier_load>();
    auto copier = spawn_copier(self->system(), {.piece_bytes = state.with.copy_piece_bytes,
                                                .nice = state.with.copier_nice,
                                                .slice_us = state.with.copier_slice_us,
                                                .probe = state.with.copier_probe,
                                                .load = load,
                                                .detached = state.with.detached});
    self->monitor(copier);
    copiers.push_back({std::move(copier), std::move(load)});
  }
  state.copiers = std::make_shared<copier_pool>(std::move(copiers));
  if (state.with.starts_processes) {
    devices_arguments devices = state.with.devices;
    devices.place = state.with.place;
    devices.device.copiers = state.copiers;
    devices.device.teardown = state.with.teardown;
    devices.device.log = state.with.log;
    devices.device.warn = state.with.warn;
    devices.device.detached = state.with.detached;
    state.device_processes = spawn_devices(self->system(), std::move(devices));
    self->monitor(state.device_processes);
  }
  state.memory_ready.resize(state.with.groups.size(), false); // remains so without prefault
  for (size_t i = 0; i < state.with.groups.size(); ++i) {
    state.with.groups[i].detached = state.with.detached;
    auto group = build_group(self->system(), state.with.groups[i], state.with.probes[i], state.copiers);
    if (!group)
      return group.error();
    state.groups.push_back(*group);
    if (state.with.groups[i].gpu && state.device_processes)
      if (auto joined = join_gpu_tier(self->system(), **group, state.with.groups[i], state.with.probes[i],
                                      state.device_processes, state.with.log, state.with.warn);
          !joined)
        return joined.error();
    const auto& remotes = state.with.groups[i].remotes;
    for (size_t n = 0; n < remotes.size(); ++n)
      if (auto joined = join_remote_tier(
              self->system(), *group, remotes[n], state.with.probes[i].remotes.at(n),
              {state.with.place(), state.with.place_transfers()}, state.with.log, state.with.warn);
          !joined)
        return joined.error();
    for (const caf::actor& member : actors_of(**group))
      self->monitor(member);
    prepare_memory(self, i);
    prepare_disk(self, i);
  }
  auto next_id = std::make_shared<std::atomic<uint64_t>>(1);
  std::vector<std::shared_ptr<connection_environment>> environments(state.groups.size());
  for (const listen_plan& plan : state.with.listens) {
    auto& environment = environments[plan.group];
    if (!environment)
      environment = environment_of(self, plan.group);
    listener_arguments listener;
    listener.socket = plan.socket;
    listener.path = plan.path;
    listener.admits = plan.admits;
    listener.place = state.with.place;
    listener.next_id = next_id;
    listener.environment = environment;
    if (plan.redis)
      listener.redis = std::make_shared<redis_environment>(
          redis_environment{environment, plan.redis->password, state.with.probes[plan.group].resp});
    state.listeners.push_back(spawn_listener(self->system(), state.with.place(), std::move(listener)));
    self->monitor(state.listeners.back());
  }
  if (state.with.exposition)
    state.with.exposition->show_clients([clients = state.with.clients] { return slowest(clients->all()); });
  if (state.with.exposition)
    self->monitor(state.metrics = spawn_metrics(self->system(), std::move(state.with.exposition)));
  return {};
}

void on_memory_prepared(supervisor_pointer self, const memory_prepared& report) {
  auto& state = self->state;
  if (report.failure.code != errc::ok) {
    state.with.warn("the host memory of group " + state.groups[report.group]->name +
                    " could not be committed: " + report.failure.text);
    return;
  }
  state.memory_ready[report.group] = true;
  register_with_movers(self, report.group);
}

void set_policy(supervisor_pointer self, const trust_group& group, tier_kind tier,
                const std::string& policy) {
  set_policy_request wanted{tier, policy};
  self->request(group.policy, caf::infinite, wanted)
      .then(
          [self, wanted, name = group.name](const set_policy_answer& answer) {
            if (answer.failure.code != errc::ok)
              self->state.with.warn(describe_change(name, wanted, answer));
            else if (answer.before != wanted.policy)
              self->state.with.log(describe_change(name, wanted, answer));
          },
          [](const caf::error&) {}); // the actor is monitored
}

void on_policies(supervisor_pointer self, const policies_notice& notice) {
  auto& state = self->state;
  for (size_t i = 0; i < state.groups.size(); ++i) {
    if (!notice.host.empty())
      set_policy(self, *state.groups[i], state.with.groups[i].host.kind, notice.host);
    if (!notice.host.empty() && state.with.groups[i].gpu)
      set_policy(self, *state.groups[i], state.with.groups[i].gpu->kind, notice.host);
    if (!notice.disk.empty() && state.with.groups[i].disk)
      set_policy(self, *state.groups[i], state.with.groups[i].disk->kind, notice.disk);
  }
}

void on_quotas(supervisor_pointer self, const quotas_notice& notice) {
  auto& state = self->state;
  for (size_t i = 0; i < notice.of_groups.size() && i < state.groups.size(); ++i) {
    const trust_group& group = *state.groups[i];
    group.tenants->set_quotas(notice.of_groups[i]);
    for (const tier_handle& tier : group.tiers())
      self->send(tier.tier, quotas_changed_notice{});
  }
}

void on_credentials(supervisor_pointer self, const remote::all_credentials_notice& notice) {
  auto& state = self->state;
  for (size_t i = 0; i < notice.of_groups.size() && i < state.groups.size(); ++i)
    for (size_t n = 0; n < notice.of_groups[i].size(); ++n)
      if (const tier_handle* tier = state.groups[i]->tier(remote_tiers.at(n));
          tier != nullptr && notice.of_groups[i][n])
        self->send(tier->store, remote::new_credentials_notice{*notice.of_groups[i][n]});
}

void on_remote_budgets(supervisor_pointer self, const remote_budgets_notice& notice) {
  auto& state = self->state;
  assert(notice.of_groups.size() == state.with.groups.size());
  for (size_t i = 0; i < state.groups.size(); ++i) // fewer if the start has failed
    for (size_t n = 0; n < notice.of_groups[i].size(); ++n)
      if (const tier_handle* tier = state.groups[i]->tier(remote_tiers.at(n)); tier != nullptr)
        self->send(tier->write_through, write_budget_notice{notice.of_groups[i][n]});
}

void on_resize(supervisor_pointer self, const resize_groups& wanted) {
  const auto& memories = self->state.memories;
  for (size_t i = 0; i < wanted.host_bytes.size() && i < memories.size(); ++i)
    self->send(memories[i], resize_memory{wanted.host_bytes[i]});
}

void on_io_done(supervisor_pointer self, const runtime::io_done& done) {
  if ((done.tag & lock_tag) != 0)
    on_lock_free(self, static_cast<size_t>(done.tag & ~lock_tag), done.result);
  else if (done.result == -ETIME)
    on_grace_over(self, done.tag);
}

supervisor_interface::behavior_type
supervisor_behavior(supervisor_pointer self, const std::shared_ptr<supervisor_arguments>& arguments) {
  self->state.with = std::move(*arguments);
  self->set_down_handler([self](const caf::down_msg& down) { on_actor_down(self, down); });
  error failure = start(self);
  self->state.with.ready(failure);
  if (failure.code != errc::ok) {
    self->state.clean = false;
    self->send(self, drain_notice{});
  }
  return {
      [self](const disk_prepared& report) { on_disk_prepared(self, report); },
      [self](const memory_prepared& report) { on_memory_prepared(self, report); },
      [self](const policies_notice& notice) { on_policies(self, notice); },
      [self](const quotas_notice& notice) { on_quotas(self, notice); },
      [self](const resize_groups& wanted) { on_resize(self, wanted); },
      [self](const remote_budgets_notice& notice) { on_remote_budgets(self, notice); },
      [self](const remote::all_credentials_notice& notice) { on_credentials(self, notice); },
      [self](drain_notice) { on_drain(self); },
      [self](const runtime::io_done& done) { on_io_done(self, done); },
  };
}

} // namespace

supervisor_actor spawn_supervisor(caf::actor_system& system, supervisor_arguments arguments) {
  runtime::home home = arguments.place();
  return runtime::spawn_homed(system, home, supervisor_behavior,
                              std::make_shared<supervisor_arguments>(std::move(arguments)));
}

} // namespace terrace::actors

#include "actors/supervisor_actor.hpp"

#include "actors/disk_actor.hpp"
#include "actors/memory_actor.hpp"
#include "actors/metrics_actor.hpp"
#include "actors/opened_disk_text.hpp"
#include "actors/preparer_actor.hpp"
#include "runtime/io_messages.hpp"
#include "storage/lock_watch.hpp"
#include "storage/machine_identity.hpp"

#include <caf/exit_reason.hpp>

#include <poll.h>

#include <algorithm>
#include <map>
#include <set>

namespace terrace::actors {

namespace {

// Tags of the two timers: until the connections are done, and until the disks are.
constexpr uint64_t drain_tag = 1;
constexpr uint64_t settle_tag = 2;
// And of the polls for the locks of disks, by group.
constexpr uint64_t lock_tag = 1ULL << 32;

struct supervisor_state {
  const char* name = "supervisor";
  supervisor_arguments with;
  std::vector<std::shared_ptr<group_parts>> groups;
  std::vector<bool> memory_ready;
  std::shared_ptr<copier_pool> copiers;
  std::shared_ptr<client_directory> clients = std::make_shared<client_directory>();
  std::vector<caf::actor> preparers;
  std::vector<caf::actor> memories; ///< parallel to the groups
  std::vector<caf::actor> listeners;
  caf::actor metrics;

  enum class phase { serving, closing_listeners, draining, settling, ending } now = phase::serving;
  std::set<caf::actor_addr> awaited; ///< whose end the present phase waits for
  std::map<size_t, unique_fd> locks; ///< of groups whose disk another process has open
  size_t unsettled = 0;              ///< paths of disks that are not written down yet
  bool clean = true;
};

using self_pointer = caf::stateful_actor<supervisor_state, runtime::homed_actor>*;
using phase = supervisor_state::phase;

void drain(self_pointer self);
void next_phase(self_pointer self);
void end_groups(self_pointer self);

void await_end(self_pointer self, const caf::actor& which) {
  self->monitor(which);
  self->state.awaited.insert(which.address());
}

// ---- start ----

std::shared_ptr<connection_environment> environment_of(self_pointer self, size_t group) {
  auto& state = self->state;
  auto environment = std::make_shared<connection_environment>();
  environment->group = state.groups[group];
  environment->limits = state.with.limits;
  environment->boot = state.with.boot;
  environment->started = clock::now();
  environment->workers = state.with.workers;
  environment->ring_features = state.with.ring_features;
  environment->clients = state.clients;
  environment->client_probe = state.with.probes[group].clients;
  environment->request_probe = state.with.probes[group].requests;
  environment->spaces = state.with.spaces;
  environment->log = state.with.log;
  return environment;
}

void prepare_memory(self_pointer self, size_t group) {
  auto& state = self->state;
  const group_plan& plan = state.with.groups[group];
  state.memories.push_back(
      spawn_memory(self->system(), {.group = group,
                                    .parts = state.groups[group],
                                    .prefault_piece_bytes = state.with.prefault_piece_bytes,
                                    .report_to = caf::actor_cast<caf::actor>(self),
                                    .log = state.with.log,
                                    .warn = state.with.warn,
                                    .detached = state.with.detached}));
  self->monitor(state.memories.back());
  if (auto why = state.groups[group]->memory->huge_pages_refusal(); !why.empty())
    state.with.warn("host memory of group " + plan.name + ": " + why);
  if (state.with.exposition)
    expose_memory(*state.with.exposition, state.groups[group]->memory, {{"group", plan.name}});
}

void prepare_disk(self_pointer self, size_t group) {
  auto& state = self->state;
  const group_plan& plan = state.with.groups[group];
  if (plan.disk) {
    preparer_arguments work;
    work.group = group;
    work.report_to = caf::actor_cast<caf::actor>(self);
    work.detached = state.with.detached;
    extent_files_options files;
    files.paths = plan.disk_files;
    files.capacity_bytes = plan.disk->bytes / plan.disk_files.size();
    files.boot = state.with.boot;
    files.owner = {machine_identity(), plan.name};
    files.on_mismatch = plan.on_mismatch;
    work.disk = std::move(files);
    work.disk_plan = *plan.disk;
    work.spaces = state.groups[group]->group;
    work.policy = state.groups[group]->policy;
    state.preparers.push_back(spawn_preparer(self->system(), std::move(work)));
  }
}

error start(self_pointer self) {
  auto& state = self->state;
  std::vector<copier_actor> copiers;
  for (uint32_t i = 0; i < state.with.copiers; ++i)
    copiers.push_back(spawn_copier(self->system(), {.piece_bytes = state.with.copy_piece_bytes,
                                                    .probe = state.with.copier_probe,
                                                    .detached = state.with.detached}));
  for (const copier_actor& copier : copiers)
    self->monitor(copier);
  state.copiers = std::make_shared<copier_pool>(std::move(copiers));
  state.memory_ready.resize(state.with.groups.size(), state.with.prefault_piece_bytes == 0);
  for (size_t i = 0; i < state.with.groups.size(); ++i) {
    auto group = build_group(self->system(), state.with.groups[i], state.with.probes[i], state.copiers);
    if (!group)
      return group.error();
    state.groups.push_back(*group);
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
    listener.connections_max = state.with.connections_max;
    listener.environment = environment;
    state.listeners.push_back(spawn_listener(self->system(), state.with.place(), std::move(listener)));
    self->monitor(state.listeners.back());
  }
  if (state.with.exposition)
    self->monitor(state.metrics = spawn_metrics(self->system(), std::move(state.with.exposition)));
  return {};
}

// ---- while it serves ----

/// Memory is registered with the disk's ring once both are there.
void register_with_disk(self_pointer self, size_t group) {
  const disk_parts* disk = self->state.groups[group]->disk();
  if (disk != nullptr && self->state.memory_ready[group])
    for (const caf::actor& each : disk->disks)
      self->send(each, register_memory{});
}

/// A daemon that was killed leaves operations behind in the kernel; only then is its file free. Returns why it cannot be
/// waited for.
error await_lock(self_pointer self, const disk_prepared& report) {
  auto& state = self->state;
  group_parts& group = *state.groups[report.group];
  const auto& files = state.with.groups[report.group].disk_files;
  auto locked = std::find_if(files.begin(), files.end(), [&](const std::string& file) {
    return report.failure.text.starts_with(file + ":");
  });
  auto event = watch_lock(locked != files.end() ? *locked : files.front());
  if (!event)
    return event.error();
  group.locked();
  state.with.warn("the disk tier of group " + group.name + " waits: " + report.failure.text);
  runtime::io_request poll;
  poll.code = runtime::io_code::poll;
  poll.fd = event->get();
  poll.events = POLLIN;
  state.locks[report.group] = std::move(*event);
  self->port().submit(std::move(poll), caf::actor_cast<caf::strong_actor_ptr>(self), lock_tag | report.group);
  return {};
}

void lock_is_free(self_pointer self, size_t group, int32_t result) {
  auto& state = self->state;
  if (result < 0 || state.now != phase::serving)
    return;
  state.locks.erase(group);
  state.groups[group]->starting();
  prepare_disk(self, group);
}

void tell_of_opened(self_pointer self, const disk_prepared& report) {
  auto& state = self->state;
  const opened_disk& disk = *report.disk;
  for (size_t i = 0; i < disk.each.size(); ++i)
    state.with.probes[report.group].paths[disk.paths->file(i)->path_index()].journal->recovered(
        {disk.each[i].objects, damaged_in(disk.each[i]), report.seconds});
  state.with.log("the disk tier of group " + state.groups[report.group]->name +
                 " joined: " + describe_opened(disk, report.seconds));
  if (!disk.left_out.empty())
    state.with.warn("the disk tier of group " + state.groups[report.group]->name + " goes on without " +
                    std::to_string(disk.left_out.size()) + " of its " +
                    std::to_string(disk.left_out.size() + disk.each.size()) +
                    " paths: " + disk.service->reason());
  if (std::string lost = describe_losses(disk); !lost.empty())
    state.with.warn(lost);
}

void disk_is_prepared(self_pointer self, const disk_prepared& report) {
  auto& state = self->state;
  group_parts& group = *state.groups[report.group];
  const group_probes& probes = state.with.probes[report.group];
  error failure = report.failure;
  if (failure.code == errc::busy && state.now == phase::serving) {
    failure = await_lock(self, report);
    if (failure.code == errc::ok)
      return;
  }
  if (failure.code != errc::ok) {
    group.refuse(failure.text);
    probes.disk_tier->degraded(true);
    state.with.warn("the disk tier of group " + group.name + " is off: " + failure.text);
    return;
  }
  if (state.now != phase::serving)
    return;
  tell_of_opened(self, report);
  join_disk(self->system(), group, state.with.groups[report.group], probes, state.with.place,
            std::move(*report.disk), state.with.warn);
  for (const caf::actor& member : actors_of_disk(group))
    self->monitor(member);
  register_with_disk(self, report.group);
}

void memory_is_prepared(self_pointer self, const memory_prepared& report) {
  auto& state = self->state;
  if (report.failure.code != errc::ok) {
    state.with.warn("the host memory of group " + state.groups[report.group]->name +
                    " could not be committed: " + report.failure.text);
    return;
  }
  state.memory_ready[report.group] = true;
  register_with_disk(self, report.group);
}

void set_policy(self_pointer self, const group_parts& group, tier_kind tier, const std::string& policy) {
  self->request(group.policy, caf::infinite, set_policy_request{tier, policy})
      .then(
          [self, tier, policy, name = group.name](const set_policy_answer& answer) {
            if (answer.failure.code != errc::ok)
              self->state.with.warn("group " + name + ": the policy of " + to_string(tier) +
                                    " was not changed: " + answer.failure.text);
            else if (answer.before != policy)
              self->state.with.log("group " + name + ": the policy of " + to_string(tier) + " is " + policy +
                                   " now; it was " + answer.before);
          },
          [](const caf::error&) {}); // it is monitored
}

void set_policies(self_pointer self, const policies_notice& notice) {
  auto& state = self->state;
  for (size_t i = 0; i < state.groups.size(); ++i) {
    if (!notice.host.empty())
      set_policy(self, *state.groups[i], tier_kind::host, notice.host);
    if (!notice.disk.empty() && state.with.groups[i].disk)
      set_policy(self, *state.groups[i], tier_kind::disk, notice.disk);
  }
}

// ---- end ----

void start_grace(self_pointer self, uint64_t tag) {
  runtime::io_request grace;
  grace.code = runtime::io_code::timeout;
  grace.after = self->state.with.shutdown_grace;
  self->port().submit(std::move(grace), caf::actor_cast<caf::strong_actor_ptr>(self), tag);
}

void drain(self_pointer self) {
  auto& state = self->state;
  if (state.now != phase::serving)
    return;
  state.now = phase::closing_listeners;
  for (const listen_plan& plan : state.with.listens)
    ::unlink(plan.path.c_str());
  for (const caf::actor& listener : state.listeners) {
    await_end(self, listener);
    self->send(listener, drain_notice{});
  }
  start_grace(self, drain_tag);
  if (state.awaited.empty())
    next_phase(self);
}

/// The listeners have ended, so the directory names every connection there will ever be.
void drain_connections(self_pointer self) {
  self->state.now = phase::draining;
  for (const client_ptr& client : self->state.clients->all()) {
    await_end(self, client->actor);
    self->send(client->actor, drain_notice{});
  }
}

void disk_is_settled(self_pointer self) {
  if (--self->state.unsettled == 0 && self->state.now == phase::settling)
    end_groups(self);
}

/// No connection is left: what waits for a disk is written, and then the disk's index.
void settle_disks(self_pointer self) {
  auto& state = self->state;
  state.now = phase::settling;
  start_grace(self, settle_tag);
  for (const auto& group : state.groups) {
    const disk_parts* disk = group->disk();
    if (disk == nullptr)
      continue;
    state.unsettled += disk->journals.size();
    auto close = [self, journals = disk->journals] {
      for (const caf::actor& journal : journals)
        self->request(journal, caf::infinite, close_journal_request{})
            .then(
                [self](const close_journal_answer& answer) {
                  if (answer.failure.code != errc::ok)
                    self->state.with.warn(answer.failure.text);
                  disk_is_settled(self);
                },
                [self](const caf::error&) { disk_is_settled(self); });
    };
    self->request(disk->write_through, caf::infinite, finish_writes_request{})
        .then([close](const finish_writes_answer&) { close(); }, [close](const caf::error&) { close(); });
  }
  if (state.unsettled == 0)
    end_groups(self);
}

void end_groups(self_pointer self) {
  auto& state = self->state;
  state.now = phase::ending;
  auto end = [self](const caf::actor& which) {
    await_end(self, which);
    self->send_exit(which, caf::exit_reason::user_shutdown);
  };
  for (const caf::actor& preparer : state.preparers)
    end(preparer);
  for (const caf::actor& memory : state.memories)
    end(memory);
  for (const auto& group : state.groups)
    for (const caf::actor& member : actors_of(*group))
      end(member);
  if (state.copiers)
    for (const copier_actor& copier : state.copiers->all())
      end(caf::actor_cast<caf::actor>(copier));
  if (state.metrics)
    end(state.metrics);
}

void next_phase(self_pointer self) {
  auto& state = self->state;
  if (state.now == phase::closing_listeners)
    drain_connections(self);
  else if (state.now == phase::draining)
    settle_disks(self);
  else if (state.now == phase::ending) {
    state.with.finished(state.clean);
    self->quit();
    return;
  }
  if (state.awaited.empty() && state.now != phase::settling)
    next_phase(self);
}

void grace_is_over(self_pointer self, uint64_t tag) {
  auto& state = self->state;
  if (tag == settle_tag && state.now == phase::settling) {
    state.with.warn(
        "the disk tier did not finish within daemon.shutdown_grace: what was stored last may be missing "
        "after the restart");
    end_groups(self);
  }
  if (tag != drain_tag || state.now != phase::draining)
    return;
  auto left = state.clients->all();
  state.with.warn(std::to_string(left.size()) + " connections did not finish within daemon.shutdown_grace");
  for (const client_ptr& client : left)
    self->send_exit(client->actor, caf::exit_reason::kill);
}

void somebody_ended(self_pointer self, const caf::down_msg& down) {
  auto& state = self->state;
  if (state.awaited.erase(down.source) != 0) {
    if (state.awaited.empty() && state.now != phase::settling)
      next_phase(self);
    return;
  }
  if (state.now != phase::serving)
    return;
  state.clean = false;
  state.with.warn("an actor of the daemon ended unexpectedly (" + self->system().render(down.reason) +
                  "); the daemon stops");
  drain(self);
}

caf::behavior supervisor_behavior(self_pointer self, const std::shared_ptr<supervisor_arguments>& arguments) {
  self->state.with = std::move(*arguments);
  self->set_down_handler([self](const caf::down_msg& down) { somebody_ended(self, down); });
  error failure = start(self);
  self->state.with.ready(failure);
  if (failure.code != errc::ok) {
    self->state.clean = false;
    self->send(self, drain_notice{});
  }
  return {
      [self](const disk_prepared& report) { disk_is_prepared(self, report); },
      [self](const memory_prepared& report) { memory_is_prepared(self, report); },
      [self](const policies_notice& notice) { set_policies(self, notice); },
      [self](const resize_groups& wanted) {
        for (size_t i = 0; i < wanted.host_bytes.size() && i < self->state.memories.size(); ++i)
          self->send(self->state.memories[i], resize_memory{wanted.host_bytes[i]});
      },
      [self](drain_notice) { drain(self); },
      [self](const runtime::io_done& done) {
        if ((done.tag & lock_tag) != 0)
          lock_is_free(self, static_cast<size_t>(done.tag & ~lock_tag), done.result);
        else if (done.result == -ETIME)
          grace_is_over(self, done.tag);
      },
  };
}

} // namespace

caf::actor spawn_supervisor(caf::actor_system& system, supervisor_arguments arguments) {
  runtime::home home = arguments.place();
  return runtime::spawn_homed(system, home, supervisor_behavior,
                              std::make_shared<supervisor_arguments>(std::move(arguments)));
}

} // namespace terrace::actors

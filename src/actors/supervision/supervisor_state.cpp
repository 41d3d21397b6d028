#include "actors/supervision/supervisor_state.hpp"

#include "runtime/io_port.hpp"
#include "storage/disk/disk_opening.hpp"

#include <caf/send.hpp>

#include <poll.h>

#include <cstring>

namespace terrace::actors {

namespace {

/// A killed daemon leaves operations in the kernel; its file is free only when they are done. Returns an
/// error if the lock cannot be waited for.
error await_lock(supervisor_pointer self, const disk_prepared& report) {
  auto& state = self->state;
  trust_group& group = *state.groups[report.group];
  auto event = watch_volume_lock(state.with.groups[report.group].disk_files, report.failure);
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

void refuse_disk(supervisor_pointer self, size_t group, const error& why) {
  auto& state = self->state;
  state.groups[group]->refuse(why.text);
  state.with.probes[group].disk_tier->degraded(true);
  state.with.warn("the disk tier of group " + state.groups[group]->name + " is off: " + why.text);
}

} // namespace

void prepare_disk(supervisor_pointer self, size_t group) {
  auto& state = self->state;
  const group_plan& plan = state.with.groups[group];
  if (!plan.disk)
    return;
  preparer_arguments work;
  work.group = group;
  work.report_to = caf::actor_cast<caf::actor>(self);
  work.detached = state.with.detached;
  work.disk = files_of(plan, state.with.boot);
  work.state_directory = plan.state_directory;
  work.disk_plan = *plan.disk;
  work.spaces = state.groups[group]->group;
  work.policy = state.groups[group]->policy;
  state.preparers.push_back(spawn_preparer(self->system(), std::move(work)));
}

void register_with_movers(supervisor_pointer self, size_t group) {
  if (!self->state.memory_ready[group])
    return;
  for (const tier_handle& each : self->state.groups[group]->tiers())
    if (each.mover)
      self->send(each.mover, register_memory{});
}

void on_lock_free(supervisor_pointer self, size_t group, int32_t result) {
  auto& state = self->state;
  if (!state.order.serving())
    return;
  if (result < 0) {
    refuse_disk(self, group,
                {errc::internal, std::string("waiting for the lock of its file failed: ") +
                                     std::strerror(-result) + "; start the daemon again"});
    return;
  }
  state.locks.erase(group);
  state.groups[group]->starting();
  prepare_disk(self, group);
}

void on_disk_prepared(supervisor_pointer self, const disk_prepared& report) {
  auto& state = self->state;
  trust_group& group = *state.groups[report.group];
  const group_probes& probes = state.with.probes[report.group];
  error failure = report.failure;
  if (failure.code == errc::busy && state.order.serving()) {
    failure = await_lock(self, report);
    if (failure.code == errc::ok)
      return;
  }
  if (failure.code != errc::ok) {
    refuse_disk(self, report.group, failure);
    return;
  }
  if (!state.order.serving())
    return;
  auto lines = describe_joining("the disk tier of group " + group.name, *report.disk);
  join_disk(self->system(), group, state.with.groups[report.group], probes, state.with.place,
            std::move(*report.disk), state.with.warn, state.devices);
  for (const caf::actor& member : actors_of(*group.disk()))
    self->monitor(member);
  register_with_movers(self, report.group);
  state.with.log(lines.joined); // so that status already shows what the log reports
  for (const std::string& line : lines.warnings)
    state.with.warn(line);
}

} // namespace terrace::actors

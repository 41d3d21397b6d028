#include "actors/supervision/disk_attach.hpp"

#include "disk/opened_disk_text.hpp"
#include "runtime/io_messages.hpp"
#include "storage/machine_identity.hpp"

#include <caf/send.hpp>

#include <poll.h>

#include <cstring>

namespace terrace::actors {

namespace {

using phase = supervisor_state::phase;

/// A killed daemon leaves operations in the kernel; its file is free only when they are done. Returns why it
/// cannot be waited for.
error await_lock(supervisor_pointer self, const disk_prepared& report) {
  auto& state = self->state;
  group_parts& group = *state.groups[report.group];
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

/// The log lines for a disk: that it was added, and any problems.
struct joining_lines {
  std::string joined;
  std::vector<std::string> warnings;
};

joining_lines describe(supervisor_pointer self, const disk_prepared& report) {
  const opened_disk& disk = *report.disk;
  std::string tier = "the disk tier of group " + self->state.groups[report.group]->name;
  joining_lines lines;
  lines.joined = tier + " joined: " + describe_opened(disk);
  if (std::string left_out = describe_left_out(disk); !left_out.empty())
    lines.warnings.push_back(tier + " " + left_out);
  if (std::string lost = describe_losses(disk); !lost.empty())
    lines.warnings.push_back(std::move(lost));
  return lines;
}

} // namespace

void prepare_disk(supervisor_pointer self, size_t group) {
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
    work.state_directory = plan.state_directory;
    work.disk_plan = *plan.disk;
    work.spaces = state.groups[group]->group;
    work.policy = state.groups[group]->policy;
    state.preparers.push_back(spawn_preparer(self->system(), std::move(work)));
  }
}

void register_with_disk(supervisor_pointer self, size_t group) {
  if (!self->state.memory_ready[group])
    return;
  for (const tier_parts& each : self->state.groups[group]->tiers())
    if (each.mover)
      self->send(each.mover, register_memory{});
}

void on_lock_free(supervisor_pointer self, size_t group, int32_t result) {
  auto& state = self->state;
  if (state.now != phase::serving)
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
  group_parts& group = *state.groups[report.group];
  const group_probes& probes = state.with.probes[report.group];
  error failure = report.failure;
  if (failure.code == errc::busy && state.now == phase::serving) {
    failure = await_lock(self, report);
    if (failure.code == errc::ok)
      return;
  }
  if (failure.code != errc::ok) {
    refuse_disk(self, report.group, failure);
    return;
  }
  if (state.now != phase::serving)
    return;
  auto lines = describe(self, report);
  join_disk(self->system(), group, state.with.groups[report.group], probes, state.with.place,
            std::move(*report.disk), state.with.warn);
  for (const caf::actor& member : actors_of(*group.disk()))
    self->monitor(member);
  register_with_disk(self, report.group);
  state.with.log(lines.joined); // so that status already shows what the log reports
  for (const std::string& line : lines.warnings)
    state.with.warn(line);
}

} // namespace terrace::actors

#include "actors/disk/disk_set.hpp"

#include "actors/disk/disk_actor.hpp"
#include "actors/disk/disk_set_state.hpp"
#include "actors/disk/journal_actor.hpp"
#include "coroutine/answer.hpp"
#include "disk/opened_disk_text.hpp"

#include <algorithm>
#include <cassert>

namespace terrace::actors {

namespace {

/// The initial state, passed to its own thread.
struct disk_set_seed {
  disk_set_arguments with;
  std::vector<runtime::home> homes;
  std::shared_ptr<const disk_paths> paths;
  std::vector<opened_path> each;
  std::shared_ptr<disk_service> service;
  bool left_out = false;
};

using self_pointer = disk_set_pointer;

// ---- the index ----

/// Each journal receives the changes of its path.
void on_changes(self_pointer self, const index_changes& what) {
  auto& state = self->state;
  if (state.journals.size() == 1) {
    self->send(state.journals.front(), what);
    return;
  }
  std::vector<index_changes> own(state.journals.size());
  for (const index_change& change : what.changes)
    own[state.paths->map().path_of(change.record.offset)].changes.push_back(change);
  for (size_t path = 0; path < own.size(); ++path) {
    if (own[path].changes.empty() && what.gone.empty())
      continue;
    own[path].of = what.of;
    own[path].gone = what.gone;
    self->send(state.journals[path], std::move(own[path]));
  }
}

/// Sends `request` to all journals; answers with their failures and what `add` makes of the rest.
template <class Answer, class Sum, class Request, class Add>
caf::result<Sum> ask_journals(self_pointer self, const Request& request, Sum first, Add add) {
  auto& state = self->state;
  auto reply = make_answer<Sum>(self);
  auto sum = std::make_shared<Sum>(std::move(first));
  auto waiting_for = std::make_shared<size_t>(state.journals.size());
  auto one_less = [reply, sum, waiting_for](const error& failure) mutable {
    if (failure.code != errc::ok) {
      sum->failure.code = failure.code;
      sum->failure.text += (sum->failure.text.empty() ? "" : "; ") + failure.text;
    }
    if (--*waiting_for == 0)
      reply.deliver(std::move(*sum));
  };
  for (const journal_actor& journal : state.journals)
    self->request(journal, caf::infinite, request)
        .then(
            [one_less, sum, add](const Answer& answer) mutable {
              add(*sum, answer);
              one_less(answer.failure);
            },
            [one_less](const caf::error&) mutable {
              one_less({errc::internal, "the journal of a path has ended"});
            });
  return reply.promise();
}

caf::result<forget_answer> forget(self_pointer self, const forget_request& request) {
  forget_answer first;
  volume_id volume = self->state.paths->volume();
  if (self->state.left_out)
    first.missed = volume;
  return ask_journals<forget_answer>(self, request, std::move(first),
                                     [volume](forget_answer& sum, const forget_answer& one) {
                                       sum.epoch = std::max(sum.epoch, one.epoch);
                                       if (one.failure.code != errc::ok)
                                         sum.missed = volume;
                                     });
}

// ---- memory ----

caf::result<retire_answer> forget(self_pointer self, const forget_memory& gone) {
  auto reply = make_answer<retire_answer>(self);
  auto waiting_for = std::make_shared<size_t>(self->state.disks.size());
  for (const disk_actor& disk : self->state.disks)
    self->request(disk, caf::infinite, gone)
        .then(
            [reply, waiting_for](const retire_answer&) mutable {
              if (--*waiting_for == 0)
                reply.deliver({});
            },
            [](const caf::error&) {}); // the set ends as well
  return reply.promise();
}

// ---- life ----

void end(self_pointer self, const caf::error& why) {
  auto& state = self->state;
  if (state.ending)
    return;
  state.ending = why ? why : caf::error(caf::exit_reason::normal);
  for (const disk_actor& disk : state.disks)
    self->send_exit(disk, state.ending);
  for (const journal_actor& journal : state.journals)
    self->send_exit(journal, state.ending);
  if (state.alive.empty())
    self->quit(state.ending);
}

void on_member_down(self_pointer self, const caf::down_msg& down) {
  self->state.alive.erase(down.source);
  end(self, down.reason);
  if (self->state.alive.empty())
    self->quit(self->state.ending);
}

void spawn_path(self_pointer self, size_t i, disk_set_seed& seed) {
  auto& state = self->state;
  const disk_set_arguments& with = seed.with;
  const auto& file = state.paths->file(i);
  const path_probes& probes = with.probes[file->path_index()];
  state.probes.push_back(probes.disk);
  disk_arguments io;
  io.file = file;
  io.limits = with.limits;
  io.health = with.health;
  io.segments = with.segments;
  io.probe = probes.disk;
  io.tier_probe = with.tier_probe;
  io.service = seed.service;
  io.path = i;
  io.warn = with.warn;
  state.disks.push_back(spawn_disk(self->system(), seed.homes[i], std::move(io)));
  journal_arguments journal;
  journal.file = file;
  journal.in_arena = {state.paths->map().begin(i), file->extents_bytes()};
  journal.position = seed.each[i].position;
  journal.spaces = std::move(seed.each[i].spaces);
  journal.probe = probes.journal;
  journal.disk = state.disks.back();
  journal.stall_after = with.health.stall_after;
  journal.service = seed.service;
  journal.path = i;
  journal.warn = with.warn;
  state.journals.push_back(spawn_journal(self->system(), seed.homes[i], std::move(journal)));
}

disk_set_actor::behavior_type set_behavior(self_pointer self, const std::shared_ptr<disk_set_seed>& seed) {
  auto& state = self->state;
  state.paths = seed->paths;
  state.left_out = seed->left_out;
  state.copiers = seed->with.copiers;
  state.service = seed->service;
  state.warn = seed->with.warn;
  state.damages.resize(state.paths->size());
  for (size_t i = 0; i < state.paths->size(); ++i)
    spawn_path(self, i, *seed);
  auto watch = [self](const auto& member) {
    self->monitor(member);
    self->state.alive.insert(member.address());
  };
  std::for_each(state.disks.begin(), state.disks.end(), watch);
  std::for_each(state.journals.begin(), state.journals.end(), watch);
  self->set_exit_handler([self](const caf::exit_msg& exit) { end(self, exit.reason); });
  self->set_down_handler([self](const caf::down_msg& down) { on_member_down(self, down); });
  return {
      [self](const start_journal& start) {
        for (const journal_actor& journal : self->state.journals)
          self->send(journal, start);
      },
      [self](const read_request& request) { return on_read(self, request); },
      [self](const write_request& request) { return on_write(self, request); },
      [self](const index_changes& what) { on_changes(self, what); },
      [self](const forget_request& request) { return forget(self, request); },
      [self](const close_mover_request&) {
        return ask_journals<close_journal_answer>(self, close_journal_request{}, close_mover_answer{},
                                                  [](close_mover_answer&, const close_journal_answer&) {});
      },
      [self](register_memory what) {
        for (const disk_actor& disk : self->state.disks)
          self->send(disk, what);
      },
      [self](const add_memory& what) {
        for (const disk_actor& disk : self->state.disks)
          self->send(disk, what);
      },
      [self](const forget_memory& gone) { return forget(self, gone); },
  };
}

} // namespace

disk_set_actor spawn_disk_set(caf::actor_system& system, opened_disk& opened, disk_set_arguments arguments) {
  assert(arguments.probes.size() == opened.paths->size() + opened.left_out.size());
  if (!opened.left_out.empty())
    arguments.tier_probe->degraded(true);
  for (const left_out_path& one : opened.left_out)
    arguments.probes[one.path].disk->missing();
  for (size_t i = 0; i < opened.paths->size(); ++i) {
    const extent_file& file = *opened.paths->file(i);
    const path_probes& probes = arguments.probes[file.path_index()];
    probes.journal->recovered({opened.each[i].objects, damaged_in(opened.each[i]), opened.seconds});
    if (!file.damaged_superblock().empty())
      probes.disk->damaged(metrics::disk_damage::superblock);
  }
  auto seed = std::make_shared<disk_set_seed>();
  for (size_t i = 0; i < opened.paths->size(); ++i)
    seed->homes.push_back(arguments.place());
  seed->paths = opened.paths;
  seed->each = std::move(opened.each);
  seed->service = opened.service;
  seed->left_out = !opened.left_out.empty();
  seed->with = std::move(arguments);
  runtime::home home = seed->homes.front(); // with one path, that of its disk and journal
  return runtime::spawn_homed(system, home, set_behavior, std::move(seed));
}

} // namespace terrace::actors

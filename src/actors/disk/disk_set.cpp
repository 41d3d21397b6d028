#include "actors/disk/disk_set.hpp"

#include "actors/disk/disk_actor.hpp"
#include "base/countdown.hpp"
#include "runtime/answer.hpp"
#include "storage/disk/disk_opening.hpp"
#include "storage/disk/path_parts.hpp"

#include <algorithm>
#include <caf/actor_system.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <cassert>

namespace terrace::actors {

namespace {

/// The initial state, which is passed to the set's own thread.
struct disk_set_seed {
  disk_set_arguments with;
  std::vector<runtime::home> homes;
  std::shared_ptr<const disk_paths> paths;
  std::vector<opened_path> each;
  std::shared_ptr<disk_service> service;
  bool left_out = false;
};

// ---- the index ----

void on_start_journal(disk_set_pointer self, const start_journal& start) {
  const auto& journals = self->state.journals;
  for (size_t path = 0; path < journals.size(); ++path) {
    start_journal own{start.tier, {}};
    if (path < start.recorded.size())
      own.recorded.push_back(start.recorded[path]);
    self->send(journals[path], std::move(own));
  }
}

/// Sent after all changes that the set was told of.
caf::result<check_answer_texts> on_check_journals(disk_set_pointer self,
                                                  const check_journal_request& request) {
  auto reply = make_answer<check_answer_texts>(self);
  auto promise = reply.promise();
  auto found = std::make_shared<check_answer_texts>();
  auto all = std::make_shared<countdown>([reply, found]() mutable { reply.deliver(std::move(*found)); });
  const auto& journals = self->state.journals;
  for (size_t path = 0; path < std::min(journals.size(), request.paths.size()); ++path) {
    all->begin();
    self->request(journals[path], caf::infinite, check_journal_request{{request.paths[path]}})
        .then(
            [found, all](const check_answer_texts& answer) {
              found->differences.insert(found->differences.end(), answer.differences.begin(),
                                        answer.differences.end());
              all->end();
            },
            [all](const caf::error&) { all->end(); }); // the set ends as well
  }
  all->end();
  return promise;
}

/// Each journal receives the changes of its path.
void on_changes(disk_set_pointer self, const index_changes& changes) {
  auto own = divide(changes, self->state.paths->map());
  for (size_t path = 0; path < own.size(); ++path)
    if (!own[path].changes.empty() || !own[path].gone.empty())
      self->send(self->state.journals[path], std::move(own[path]));
}

/// Sends `request` to all journals, and calls `done` with their answers, by path.
template <class Answer, class Request, class Done>
void ask_journals(disk_set_pointer self, const Request& request, Done done) {
  const auto& journals = self->state.journals;
  auto answers = std::make_shared<std::vector<Answer>>(journals.size());
  auto all = std::make_shared<countdown>([answers, done]() mutable { done(*answers); });
  for (size_t path = 0; path < journals.size(); ++path) {
    all->begin();
    self->request(journals[path], caf::infinite, request)
        .then(
            [answers, all, path](const Answer& answer) {
              (*answers)[path] = answer;
              all->end();
            },
            [answers, all, path](const caf::error&) {
              (*answers)[path].failure = {errc::internal, "the journal of a path has ended"};
              all->end();
            });
  }
  all->end();
}

caf::result<forget_answer> on_forget(disk_set_pointer self, const forget_request& request) {
  auto reply = make_answer<forget_answer>(self);
  auto promise = reply.promise();
  ask_journals<forget_answer>(self, request,
                              [reply, volume = self->state.paths->volume(), left_out = self->state.left_out](
                                  const std::vector<forget_answer>& answers) mutable {
                                reply.deliver(sum_of(answers, volume, left_out));
                              });
  return promise;
}

caf::result<close_mover_answer> on_close(disk_set_pointer self) {
  auto reply = make_answer<close_mover_answer>(self);
  auto promise = reply.promise();
  ask_journals<close_journal_answer>(self, close_journal_request{},
                                     [reply](const std::vector<close_journal_answer>& answers) mutable {
                                       reply.deliver({failures_of(answers)});
                                     });
  return promise;
}

// ---- memory ----

template <class Message>
void tell_disks(disk_set_pointer self, const Message& message) {
  for (const disk_actor& disk : self->state.disks)
    self->send(disk, message);
}

caf::result<retire_answer> on_forget_memory(disk_set_pointer self, const forget_memory& gone) {
  auto reply = make_answer<retire_answer>(self);
  auto promise = reply.promise();
  auto disks = std::make_shared<countdown>([reply]() mutable { reply.deliver({}); });
  for (const disk_actor& disk : self->state.disks) {
    disks->begin();
    self->request(disk, caf::infinite, gone)
        .then([disks](const retire_answer&) { disks->end(); },
              [](const caf::error&) {}); // the set ends as well
  }
  disks->end();
  return promise;
}

// ---- life ----

void on_exit(disk_set_pointer self, const caf::error& why) {
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

void on_member_down(disk_set_pointer self, const caf::down_msg& down) {
  self->state.alive.erase(down.source);
  on_exit(self, down.reason);
  if (self->state.alive.empty())
    self->quit(self->state.ending);
}

void spawn_path(disk_set_pointer self, size_t i, disk_set_seed& seed) {
  auto& state = self->state;
  const disk_set_arguments& with = seed.with;
  const auto& file = state.paths->file(i);
  const metrics::path_probes& probes = with.probes[file->path_index()];
  state.probes.push_back(probes.disk);
  disk_arguments io;
  io.path = {file, with.limits, with.health, probes.disk, with.tier_probe, seed.service, i};
  io.path.meter = with.meter;
  if (with.devices)
    io.path.share = with.devices->join(file->fd(), with.group, with.limits);
  io.segments = with.segments;
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

disk_set_actor::behavior_type set_behavior(disk_set_pointer self,
                                           const std::shared_ptr<disk_set_seed>& seed) {
  auto& state = self->state;
  state.paths = seed->paths;
  state.left_out = seed->left_out;
  state.copiers = seed->with.copiers;
  state.service = seed->service;
  state.warn = seed->with.warn;
  state.damages = damage_reports(state.paths);
  for (size_t i = 0; i < state.paths->size(); ++i)
    spawn_path(self, i, *seed);
  auto watch = [self](const auto& member) {
    self->monitor(member);
    self->state.alive.insert(member.address());
  };
  std::for_each(state.disks.begin(), state.disks.end(), watch);
  std::for_each(state.journals.begin(), state.journals.end(), watch);
  self->set_exit_handler([self](const caf::exit_msg& exit) { on_exit(self, exit.reason); });
  self->set_down_handler([self](const caf::down_msg& down) { on_member_down(self, down); });
  return {
      [self](const start_journal& start) { on_start_journal(self, start); },
      [self](const read_request& request) { return on_read(self, request); },
      [self](const write_request& request) { return on_write(self, request); },
      [self](const index_changes& changes) { on_changes(self, changes); },
      [self](const forget_request& request) { return on_forget(self, request); },
      [self](const check_journal_request& request) { return on_check_journals(self, request); },
      [self](const close_mover_request&) { return on_close(self); },
      [self](register_memory wanted) { tell_disks(self, wanted); },
      [self](const add_memory& wanted) { tell_disks(self, wanted); },
      [self](const forget_memory& gone) { return on_forget_memory(self, gone); },
  };
}

} // namespace

disk_set_actor spawn_disk_set(caf::actor_system& system, opened_disk& opened, disk_set_arguments arguments) {
  count_opened(opened, arguments.probes, *arguments.tier_probe);
  auto seed = std::make_shared<disk_set_seed>();
  for (size_t i = 0; i < opened.paths->size(); ++i)
    seed->homes.push_back(arguments.place());
  seed->paths = opened.paths;
  seed->each = std::move(opened.each);
  seed->service = opened.service;
  seed->left_out = !opened.left_out.empty();
  seed->with = std::move(arguments);
  runtime::home home = seed->homes.front(); // with one path, the home of its disk and journal
  return runtime::spawn_homed(system, home, set_behavior, std::move(seed));
}

namespace {

clear_keeper_actor::behavior_type keeper_behavior(clear_keeper_actor::pointer self, const group_ptr& group) {
  return {
      [self, group, asked = false](const remember_clear_request& request) mutable {
        assert(!asked); // there is one keeper per clear
        asked = true;
        self->quit();
        return remember_clear(group->state_directory, group->disk_files, request.clear,
                              [&group] { return group->phase(); });
      },
  };
}

} // namespace

clear_keeper_actor spawn_clear_keeper(caf::actor_system& system, group_ptr group) {
  return group->detached ? system.spawn<caf::detached>(keeper_behavior, group)
                         : system.spawn(keeper_behavior, group);
}

} // namespace terrace::actors

#include "actors/disk/disk_set.hpp"

#include "actors/answer.hpp"
#include "actors/disk/disk_actor.hpp"
#include "actors/disk/journal_actor.hpp"
#include "actors/disk/opened_disk_text.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <set>

namespace terrace::actors {

namespace {

struct disk_set_state {
  const char* name = "disk set";
  std::shared_ptr<const disk_paths> paths;
  bool left_out = false; ///< the volume has paths that are not in service
  std::vector<disk_actor> disks;
  std::vector<journal_actor> journals; ///< both by path
  std::set<caf::actor_addr> alive;
  caf::error ending; ///< why it ends; none while it serves
};

/// What its behaviour begins with, on its own thread.
struct disk_set_seed {
  disk_set_arguments with;
  std::vector<runtime::home> homes;
  std::shared_ptr<const disk_paths> paths;
  std::vector<opened_path> each;
  std::shared_ptr<disk_service> service;
  bool left_out = false;
};

using self_pointer = caf::stateful_actor<disk_set_state, runtime::homed<disk_set_actor::base>>*;

// ---- reading and writing ----

struct io_gathering {
  disks_answer all;
  size_t waiting_for = 0;
};

void add_part(io_gathering& gathered, const std::vector<size_t>& own, const disk_answer& answer) {
  bool refused = answer.failure.code == errc::busy;
  if (answer.failure.code != errc::ok && !refused)
    gathered.all.failure = answer.failure;
  for (size_t n = 0; n < own.size(); ++n) {
    int failed = refused ? EBUSY : answer.failure.code != errc::ok ? EIO : answer.failed[n];
    gathered.all.failed[own[n]] = failed;
    gathered.all.away[own[n]] = refused || (failed != 0 && answer.out_of_service);
  }
}

caf::result<disks_answer> transfer(self_pointer self, const disk_request& request) {
  auto& state = self->state;
  auto reply = make_answer<disks_answer>(self);
  auto gathered = std::make_shared<io_gathering>();
  gathered->all.failed.resize(request.operations.size());
  gathered->all.away.resize(request.operations.size());
  std::vector<disk_request> parts(state.disks.size());
  std::vector<std::vector<size_t>> index(state.disks.size()); ///< of each part's operations in the request
  for (size_t i = 0; i < request.operations.size(); ++i) {
    const disk_operation& whole = request.operations[i];
    auto at = state.paths->locate(whole.file_offset);
    parts[at.path].operations.push_back({at.file_offset, whole.memory, whole.bytes});
    index[at.path].push_back(i);
  }
  for (const auto& own : index)
    gathered->waiting_for += !own.empty();
  if (gathered->waiting_for == 0)
    reply.deliver({});
  for (size_t path = 0; path < parts.size(); ++path) {
    if (index[path].empty())
      continue;
    disk_request& part = parts[path];
    part.direction = request.direction;
    part.urgency = request.urgency;
    part.context = request.context;
    part.owners = request.owners;
    self->request(state.disks[path], caf::infinite, std::move(part))
        .then(
            [gathered, reply, own = std::move(index[path])](const disk_answer& answer) mutable {
              add_part(*gathered, own, answer);
              if (--gathered->waiting_for == 0)
                reply.deliver(std::move(gathered->all));
            },
            [reply](const caf::error&) mutable {
              reply.fail({errc::internal, "a disk has ended"});
            });
  }
  return reply.promise();
}

// ---- the index ----

/// Each journal takes what lies on its path.
void write_down(self_pointer self, const index_changes& what) {
  auto& state = self->state;
  if (state.journals.size() == 1) {
    self->send(state.journals.front(), what);
    return;
  }
  std::vector<index_changes> own(state.journals.size());
  for (const index_change& change : what.changes)
    own[state.paths->map().path_of(change.record.offset)].changes.push_back(change);
  for (size_t path = 0; path < own.size(); ++path) {
    if (own[path].changes.empty())
      continue;
    own[path].of = what.of;
    self->send(state.journals[path], std::move(own[path]));
  }
}

/// Sends `request` to all journals; answers with what `add` makes of their answers.
template <class Answer, class Request, class Add>
caf::result<Answer> ask_journals(self_pointer self, const Request& request, Answer first, Add add) {
  auto& state = self->state;
  auto reply = make_answer<Answer>(self);
  auto sum = std::make_shared<Answer>(std::move(first));
  auto waiting_for = std::make_shared<size_t>(state.journals.size());
  auto one_less = [reply, sum, waiting_for, add](const Answer& answer) mutable {
    if (answer.failure.code != errc::ok) {
      sum->failure.code = answer.failure.code;
      sum->failure.text += (sum->failure.text.empty() ? "" : "; ") + answer.failure.text;
    }
    add(*sum, answer);
    if (--*waiting_for == 0)
      reply.deliver(std::move(*sum));
  };
  for (const journal_actor& journal : state.journals)
    self->request(journal, caf::infinite, request).then(one_less, [one_less](const caf::error&) mutable {
      Answer lost;
      lost.failure = {errc::internal, "the journal of a path has ended"};
      one_less(lost);
    });
  return reply.promise();
}

caf::result<forget_answer> forget(self_pointer self, const forget_request& request) {
  forget_answer first;
  volume_id volume = self->state.paths->volume();
  if (self->state.left_out)
    first.missed = volume;
  return ask_journals(self, request, std::move(first),
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

void member_ended(self_pointer self, const caf::down_msg& down) {
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
  journal.warn = with.warn;
  state.journals.push_back(spawn_journal(self->system(), seed.homes[i], std::move(journal)));
}

disk_set_actor::behavior_type set_behavior(self_pointer self, const std::shared_ptr<disk_set_seed>& seed) {
  auto& state = self->state;
  state.paths = seed->paths;
  state.left_out = seed->left_out;
  for (size_t i = 0; i < state.paths->size(); ++i)
    spawn_path(self, i, *seed);
  auto watch = [self](const auto& member) {
    self->monitor(member);
    self->state.alive.insert(member.address());
  };
  std::for_each(state.disks.begin(), state.disks.end(), watch);
  std::for_each(state.journals.begin(), state.journals.end(), watch);
  self->set_exit_handler([self](const caf::exit_msg& exit) { end(self, exit.reason); });
  self->set_down_handler([self](const caf::down_msg& down) { member_ended(self, down); });
  return {
      [self](const start_journal& start) {
        for (const journal_actor& journal : self->state.journals)
          self->send(journal, start);
      },
      [self](const disk_request& request) { return transfer(self, request); },
      [self](const index_changes& what) { write_down(self, what); },
      [self](const forget_request& request) { return forget(self, request); },
      [self](const close_journal_request& request) {
        return ask_journals(self, request, close_journal_answer{}, [](auto&, const auto&) {});
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
  for (size_t i = 0; i < opened.paths->size(); ++i)
    arguments.probes[opened.paths->file(i)->path_index()].journal->recovered(
        {opened.each[i].objects, damaged_in(opened.each[i]), opened.seconds});
  auto seed = std::make_shared<disk_set_seed>();
  for (size_t i = 0; i < opened.paths->size(); ++i)
    seed->homes.push_back(arguments.place());
  seed->paths = opened.paths;
  seed->each = std::move(opened.each);
  seed->service = opened.service;
  seed->left_out = !opened.left_out.empty();
  seed->with = std::move(arguments);
  runtime::home home = seed->homes.front(); // with one path, that of all that it asks
  return runtime::spawn_homed(system, home, set_behavior, std::move(seed));
}

} // namespace terrace::actors

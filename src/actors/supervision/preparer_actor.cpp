#include "actors/supervision/preparer_actor.hpp"

#include <caf/actor_system.hpp>
#include <caf/send.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cstddef>
#include <utility>

namespace terrace::actors {

namespace {

struct preparer_state {
  const char* name = "preparer";
  preparer_arguments with;
  std::optional<disk_opening> disk;
  std::chrono::steady_clock::time_point begun;
  policy_notes notes;  ///< notes for the policy
  size_t told = 0;     ///< number of notes already sent
  size_t expected = 0; ///< number of objects that the policy has not been told to expect
  bool more = true;    ///< there are objects left to restore
  bool placed = false; ///< all objects are placed, and their extents are taken
  bool disk_done = false;
  bool memory_done = false;
};

using preparer_pointer = preparer_actor::stateful_pointer<preparer_state>;

constexpr size_t restored_together = 4096; ///< number of objects per message to the policy

void end_if_done(preparer_pointer self) {
  if (self->state.disk_done && self->state.memory_done)
    self->quit();
}

void report_disk(preparer_pointer self, error failure) {
  auto& state = self->state;
  disk_prepared report;
  report.group = state.with.group;
  report.failure = std::move(failure);
  if (report.failure.code == errc::ok)
    report.disk = std::make_shared<opened_disk>(state.disk->finish());
  if (report.disk)
    report.disk->seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - state.begun).count();
  caf::anon_send(state.with.report_to, std::move(report));
  state.disk_done = true;
  end_if_done(self);
}

auto on_lost(preparer_pointer self, const char* who) {
  return [self, who](const caf::error&) {
    report_disk(self, {errc::internal, std::string("the ") + who + " has ended"});
  };
}

/// Returns the next notes; the objects placed at the end may give many at once.
policy_notes next_notes(preparer_state& state) {
  auto& all = state.notes.notes;
  size_t count = std::min(restored_together, all.size() - state.told);
  auto first = all.begin() + static_cast<std::ptrdiff_t>(state.told);
  policy_notes part{state.notes.tier, {first, first + static_cast<std::ptrdiff_t>(count)}, 0};
  state.told += count;
  return part;
}

/// Restores the next part, unless the policy has not received all of the last one.
void restore_some(preparer_state& state) {
  if (state.told != state.notes.notes.size() || state.placed)
    return;
  if (state.more) {
    state.more = state.disk->restore(restored_together);
  } else {
    state.disk->place();
    state.placed = true;
  }
  state.notes = state.disk->take_notes();
  state.told = 0;
}

/// The policy processes one part while the next one is restored.
void restore(preparer_pointer self) {
  auto& state = self->state;
  restore_some(state);
  if (state.placed && state.told == state.notes.notes.size()) {
    report_disk(self, {});
    return;
  }
  restored_request request{next_notes(state), std::exchange(state.expected, 0)};
  assert(request.found.notes.size() <= restored_together);
  self->request(state.with.policy, caf::infinite, std::move(request))
      .then([self](const restored_answer&) { restore(self); }, on_lost(self, "policy"));
  restore_some(state);
}

void on_open_disk(preparer_pointer self) {
  auto& state = self->state;
  state.begun = std::chrono::steady_clock::now();
  auto disk =
      disk_opening::open(*state.with.disk, state.with.disk_plan, pending_clears(state.with.state_directory));
  if (!disk) {
    report_disk(self, disk.error());
    return;
  }
  state.disk.emplace(std::move(*disk));
  reserve_spaces_request request;
  for (const recovered_space& space : state.disk->spaces())
    request.fingerprints.push_back({space.fingerprint});
  self->request(state.with.spaces, caf::infinite, std::move(request))
      .then(
          [self](const reserve_spaces_answer& answer) {
            self->state.disk->name_spaces(answer.ids);
            self->state.expected = self->state.disk->objects();
            restore(self);
          },
          on_lost(self, "group"));
}

/// Commits one piece per message, so that an exit message is handled between two of them.
void on_commit_piece(preparer_pointer self) {
  auto& with = self->state.with;
  if (self->state.memory_done) { // nothing to commit
    end_if_done(self);
    return;
  }
  auto done = with.memory->prefault(with.prefault_piece_bytes);
  if (done && !*done) {
    self->send(self, commit_piece_notice{});
    return;
  }
  assert(!self->state.memory_done);
  caf::anon_send(with.report_to, memory_committed{done ? error{} : done.error()});
  self->state.memory_done = true;
  end_if_done(self);
}

preparer_actor::behavior_type preparer_behavior(preparer_pointer self,
                                                const std::shared_ptr<preparer_arguments>& arguments) {
  self->state.with = std::move(*arguments);
  self->state.disk_done = !self->state.with.disk;
  self->state.memory_done = self->state.with.prefault_piece_bytes == 0;
  if (!self->state.disk_done)
    self->send(self, open_disk_notice{});
  self->send(self, commit_piece_notice{});
  return {
      [self](open_disk_notice) { on_open_disk(self); },
      [self](commit_piece_notice) { on_commit_piece(self); },
  };
}

} // namespace

preparer_actor spawn_preparer(caf::actor_system& system, preparer_arguments arguments) {
  bool detached = arguments.detached;
  auto seed = std::make_shared<preparer_arguments>(std::move(arguments));
  return detached ? system.spawn<caf::detached>(preparer_behavior, seed)
                  : system.spawn(preparer_behavior, seed);
}

} // namespace terrace::actors

#include "actors/transfer/load_actor.hpp"

#include "actors/transfer/transfer_steps.hpp"

#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/stateful_actor.hpp>

#include <algorithm>

namespace terrace::actors {

namespace {

struct load_state : transfer_progress<load_job, load_result> {
  const char* name = "load";
  std::vector<object_place> places; ///< host places of the window's objects
  std::vector<bool> from_disk;      ///< which of them were read in this window
  std::vector<hold_ptr> holds;
  reservation_ptr passing; ///< objects of the window that are delivered and not kept
  uint64_t promoted = 0;   ///< bytes that were brought into host memory to stay
  size_t usable = 0;       ///< of the window's objects, from its begin
};

using self_pointer = caf::stateful_actor<load_state>*;

void start_window(self_pointer self);
void hold_window(self_pointer self);

/// The disk tier, unless it cannot be read now.
const disk_parts* usable_disk(const load_state& state) {
  const disk_parts* disk = state.job.group->disk();
  return disk != nullptr && disk->service->reads() ? disk : nullptr;
}

/// A chain longer than host memory cannot stay there: its first half stays, and the rest streams past instead of driving
/// everything else out.
bool passes(const load_state& state) {
  uint64_t room = state.job.group->memory->size();
  uint64_t bytes = 0;
  for (uint64_t each : state.job.objects->payload_bytes)
    bytes += physical_bytes_for(each);
  return state.job.runs && bytes > room && state.promoted >= room / 2;
}

/// Accounts the window's first `objects` objects as delivered and goes on, or ends when the window was cut.
void complete_window(self_pointer self, size_t objects) {
  auto& state = self->state;
  size_t per_chunk = state.job.objects_per_chunk;
  objects -= objects % per_chunk;
  for (size_t i = 0; i < objects; ++i) {
    uint64_t bytes = state.window->payload_bytes[i];
    state.result.bytes += bytes;
    auto tier = state.from_disk[i] ? tier_kind::disk : tier_kind::host;
    state.result.bytes_by_tier[static_cast<size_t>(tier)] += bytes;
    (state.from_disk[i] ? state.job.group->disk()->probe : state.job.group->host_probe)->read(bytes);
  }
  state.result.chunks += objects / per_chunk;
  if (!state.job.runs) {
    state.result.places.insert(state.result.places.end(), state.places.begin(),
                               state.places.begin() + static_cast<ptrdiff_t>(objects));
    state.result.holds.insert(state.result.holds.end(), state.holds.begin(), state.holds.end());
  }
  const disk_parts* disk = state.job.group->disk();
  if (disk != nullptr && disk->second_looks && disk->second_looks->load(std::memory_order_relaxed) &&
      disk->service->writes() && !state.holds.empty() &&
      std::find(state.from_disk.begin(), state.from_disk.end(), false) != state.from_disk.end())
    self->send(disk->write_through,
               write_through_notice{state.job.in, state.window, state.holds.front(), {}});
  bool cut = objects < state.end - state.begin;
  state.holds.clear();
  state.passing.reset();
  state.begin = state.end;
  if (cut || state.begin == state.job.objects->size())
    finish(self, {});
  else
    start_window(self);
}

void copy_window(self_pointer self) {
  auto& state = self->state;
  if (!state.job.runs || state.usable == 0) {
    complete_window(self, state.usable);
    return;
  }
  copy_request request;
  request.direction = copy_direction::out_of_arena;
  request.outside = state.job.target;
  request.context = state.job.context;
  request.owners.assign(state.holds.begin(), state.holds.end());
  request.owners.push_back(state.passing);
  for (size_t i = 0; i < state.usable; ++i)
    add_pieces(state, request, state.places[i], i);
  self->request(state.job.group->copiers->next(), caf::infinite, std::move(request))
      .then(
          [self](const copy_answer& copied) {
            if (copied.failure.code != errc::ok)
              finish(self, copied.failure);
            else
              complete_window(self, self->state.usable);
          },
          on_lost(self, "copier"));
}

/// The window counts up to the first object that is not there.
void cut_at_first_gap(load_state& state) {
  state.usable = static_cast<size_t>(std::find_if(state.places.begin(), state.places.end(),
                                                  [](const object_place& p) { return !p.present(); }) -
                                     state.places.begin());
}

/// Others are writing some of the window's objects: let go of everything, wait for them, begin again; at last deliver what
/// is there.
void wait_for_others(self_pointer self) {
  auto& state = self->state;
  state.holds.clear();
  if (++state.attempts > window_attempts_max) {
    state.places.assign(state.window->size(), {});
    state.usable = 0;
    complete_window(self, 0);
    return;
  }
  await_others(self, hold_window);
}

/// What was read from disk and found good becomes visible.
void publish_read(self_pointer self, const acquire_answer& acquired, const std::vector<size_t>& published,
                  bool others) {
  publish_request request;
  request.hold = true;
  request.in = self->state.job.in;
  if (self->state.job.context)
    request.inference = self->state.job.context->inference;
  for (size_t i : published)
    request.places.push_back(acquired.places[i]);
  if (!others && passes(self->state)) {
    auto& state = self->state;
    for (size_t n = 0; n < published.size(); ++n) {
      state.places[published[n]] = request.places[n];
      state.from_disk[published[n]] = true;
    }
    state.passing = acquired.reserved;
    cut_at_first_gap(state);
    copy_window(self);
    return;
  }
  self->request(self->state.job.group->host, caf::infinite, std::move(request))
      .then(
          [self, published, others](const publish_answer& answer) {
            auto& state = self->state;
            for (size_t n = 0; n < published.size(); ++n) {
              state.places[published[n]] = answer.held->places()[n];
              state.from_disk[published[n]] = true;
              state.promoted += physical_bytes_for(answer.held->places()[n].payload_bytes);
            }
            state.holds.push_back(answer.held);
            if (others) {
              wait_for_others(self);
              return;
            }
            cut_at_first_gap(state);
            copy_window(self);
          },
          on_lost(self, "host tier"));
}

/// What was cleared from the disk tier meanwhile is not brought back.
void confirm_read(self_pointer self, const acquire_answer& acquired, const hold_ptr& disk_held,
                  const std::vector<size_t>& read, bool others) {
  confirm_request request;
  for (size_t i : read)
    request.ids.push_back(disk_held->places()[i].id);
  self->request(self->state.job.group->disk()->tier, caf::infinite, std::move(request))
      .then(
          [self, acquired, disk_held, read, others](const confirm_answer& answer) {
            std::vector<size_t> still;
            for (size_t n = 0; n < read.size(); ++n)
              if (answer.present[n])
                still.push_back(read[n]);
            publish_read(self, acquired, still, others);
          },
          on_lost(self, "disk tier"));
}

/// What cannot be read, or is not what was expected, is dropped from the disk tier.
void take_read(self_pointer self, const acquire_answer& acquired, const hold_ptr& disk_held,
               const std::vector<size_t>& reading, const std::vector<move_outcome>& outcomes, bool others) {
  auto& state = self->state;
  std::vector<size_t> read;
  discard_notice damaged;
  detach_notice stalled;
  for (size_t n = 0; n < reading.size(); ++n) {
    size_t i = reading[n];
    switch (outcomes[n]) {
      case move_outcome::done: read.push_back(i); break;
      case move_outcome::failed: damaged.ids.push_back(disk_held->places()[i].id); break;
      case move_outcome::stalled: stalled.ids.push_back(acquired.places[i].id); break;
      case move_outcome::away: break;
    }
  }
  if (!damaged.ids.empty())
    self->send(state.job.group->disk()->tier, std::move(damaged));
  if (!stalled.ids.empty()) // nobody should wait for the kernel to give their memory back
    self->send(state.job.group->host, std::move(stalled));
  if (!read.empty()) {
    confirm_read(self, acquired, disk_held, read, others);
  } else if (others) {
    wait_for_others(self);
  } else {
    cut_at_first_gap(state);
    copy_window(self);
  }
}

/// Reads the reserved objects of the window from disk into their place in host memory.
void read_window(self_pointer self, const acquire_answer& acquired, const hold_ptr& disk_held) {
  auto& state = self->state;
  read_request request;
  request.in = state.job.in;
  request.context = state.job.context;
  request.owners = {acquired.reserved, disk_held};
  std::vector<size_t> reading;
  bool others = false;
  for (size_t i = 0; i < acquired.states.size(); ++i) {
    others = others || acquired.states[i] == acquired_state::pending;
    if (acquired.states[i] != acquired_state::reserved)
      continue;
    reading.push_back(i);
    request.objects.push_back({state.window->keys[i], disk_held->places()[i],
                               state.job.group->memory->at(acquired.places[i].offset)});
  }
  if (reading.empty()) {
    take_read(self, acquired, disk_held, {}, {}, others);
    return;
  }
  self->request(state.job.group->disk()->set, caf::infinite, std::move(request))
      .then(
          [self, acquired, disk_held, reading, others](const move_answer& answer) {
            if (ended(self, "load"))
              return;
            if (answer.failure.code != errc::ok)
              finish(self, answer.failure);
            else
              take_read(self, acquired, disk_held, reading, answer.outcomes, others);
          },
          on_lost(self, "disk"));
}

/// Takes what the tier gave for the window; returns whether anything is held.
void keep(load_state& state, const acquire_answer& acquired) {
  state.places.assign(acquired.states.size(), {});
  for (size_t i = 0; i < acquired.states.size(); ++i)
    if (acquired.states[i] == acquired_state::held)
      state.places[i] = acquired.places[i];
  state.holds = {acquired.held};
}

/// Second round: the disk tier holds what it has, and the host tier reserves space for exactly that.
void fill_window(self_pointer self, const hold_ptr& disk_held) {
  auto& state = self->state;
  acquire_request request;
  request.objects = state.window;
  request.note_access = false;
  request.context = state.job.context;
  request.may_fill.resize(state.window->size());
  for (size_t i = 0; i < request.may_fill.size(); ++i)
    request.may_fill[i] = disk_held->places()[i].present();
  self->request(state.job.group->host, caf::infinite, std::move(request))
      .then(
          [self, disk_held](const acquire_answer& acquired) {
            if (acquired.failure.code != errc::ok) {
              finish(self, acquired.failure);
              return;
            }
            keep(self->state, acquired);
            read_window(self, acquired, disk_held);
          },
          on_lost(self, "host tier"));
}

/// The part of a lease's disk hold that belongs to the window; it shares the lease's ownership.
hold_ptr window_of(const hold_ptr& held, size_t begin, size_t end) {
  auto places = std::vector<object_place>(held->places().begin() + static_cast<ptrdiff_t>(begin),
                                          held->places().begin() + static_cast<ptrdiff_t>(end));
  return hold_ptr(new object_hold({}, std::move(places)), [held](object_hold* part) { delete part; });
}

void ask_disk(self_pointer self) {
  auto& state = self->state;
  state.holds.clear();
  if (state.job.disk_held) {
    fill_window(self, window_of(state.job.disk_held, state.begin, state.end));
    return;
  }
  probe_request request{state.window, true, state.job.note_access};
  self->request(state.job.group->disk()->tier, caf::infinite, std::move(request))
      .then(
          [self](const probe_answer& answer) {
            auto& now = self->state;
            auto held = answer.held;
            if (!held) // nothing on disk: what host memory has is all there is
              held = std::make_shared<object_hold>(release_sink_ptr{},
                                                   std::vector<object_place>(now.window->size()));
            fill_window(self, held);
          },
          on_lost(self, "disk tier"));
}

/// First round: is everything in host memory?
void hold_window(self_pointer self) {
  if (ended(self, "load"))
    return;
  auto& state = self->state;
  acquire_request request;
  request.objects = state.window;
  request.fill = false;
  request.note_access = state.job.note_access && state.attempts == 0;
  request.context = state.job.context;
  self->request(state.job.group->host, caf::infinite, std::move(request))
      .then(
          [self](const acquire_answer& acquired) {
            auto& now = self->state;
            keep(now, acquired);
            size_t held = static_cast<size_t>(
                std::count(acquired.states.begin(), acquired.states.end(), acquired_state::held));
            if (held == acquired.states.size()) {
              now.usable = held;
              copy_window(self);
            } else if (std::count(acquired.states.begin(), acquired.states.end(), acquired_state::pending) !=
                       0) {
              wait_for_others(self);
            } else if (usable_disk(now) != nullptr) {
              ask_disk(self);
            } else {
              cut_at_first_gap(now);
              copy_window(self);
            }
          },
          on_lost(self, "host tier"));
}

void start_window(self_pointer self) {
  auto& state = self->state;
  // Without a copy everything has to be held at once, so it is one window.
  if (!next_window(state, state.job.runs ? state.job.group->window_bytes.load() : UINT64_MAX)) {
    finish(self, {});
    return;
  }
  state.from_disk.assign(state.window->size(), false);
  hold_window(self);
}

caf::behavior load_behavior(self_pointer self) { return transfer_behavior<load_job>(self, start_window); }

} // namespace

caf::actor spawn_load(caf::actor_system& system) { return system.spawn(load_behavior); }

} // namespace terrace::actors

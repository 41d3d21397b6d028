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
  std::vector<tier_kind>
      read_from; ///< parallel: the tier below that they were read from in this window, or the first
  std::vector<hold_ptr> holds;
  reservation_ptr passing; ///< objects of the window that are delivered and not kept
  uint64_t promoted = 0;   ///< bytes that were brought into host memory to stay
  size_t usable = 0;       ///< of the window's objects, from its begin
};

using self_pointer = caf::stateful_actor<load_state>*;

void start_window(self_pointer self);
void hold_window(self_pointer self);

/// What a window lacks is read from the tiers below, one after the other.
struct below_reading {
  acquire_answer acquired;
  tier_holds below;
  size_t next = 0;          ///< of `below`
  std::vector<size_t> good; ///< of the window's objects: read, verified and not cleared meanwhile
  bool others = false;      ///< others are writing some of the window's objects
};
using reading_ptr = std::shared_ptr<below_reading>;

/// A chain longer than host memory cannot stay there: its first half stays, and the rest streams past instead of driving
/// everything else out.
bool passes(const load_state& state) {
  uint64_t room = state.job.group->memory->size();
  uint64_t bytes = 0;
  for (uint64_t each : state.job.objects->payload_bytes)
    bytes += physical_bytes_for(each);
  return state.job.runs && bytes > room && state.promoted >= room / 2;
}

/// What the first tier served may be missing below.
void offer_again(self_pointer self) {
  auto& state = self->state;
  for (const tier_parts& tier : state.job.group->tiers())
    if (tier.second_looks && tier.second_looks->load(std::memory_order_relaxed) && tier.writes())
      self->send(tier.write_through,
                 write_through_notice{state.job.in, state.window, state.holds.front(), {}});
}

/// Accounts the window's first `objects` objects as delivered and goes on, or ends when the window was cut.
void complete_window(self_pointer self, size_t objects) {
  auto& state = self->state;
  size_t per_chunk = state.job.objects_per_chunk;
  objects -= objects % per_chunk;
  for (size_t i = 0; i < objects; ++i) {
    uint64_t bytes = state.window->payload_bytes[i];
    state.result.bytes += bytes;
    state.result.bytes_by_tier[static_cast<size_t>(state.read_from[i])] += bytes;
    state.job.group->tier(state.read_from[i])->probe->read(bytes);
  }
  state.result.chunks += objects / per_chunk;
  if (!state.job.runs) {
    state.result.places.insert(state.result.places.end(), state.places.begin(),
                               state.places.begin() + static_cast<ptrdiff_t>(objects));
    state.result.holds.insert(state.result.holds.end(), state.holds.begin(), state.holds.end());
  }
  if (!state.holds.empty() &&
      std::find(state.read_from.begin(), state.read_from.end(), tier_kind::host) != state.read_from.end())
    offer_again(self);
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

/// What was read and found good becomes visible.
void publish_read(self_pointer self, const reading_ptr& reading) {
  auto& state = self->state;
  if (reading->good.empty()) {
    if (reading->others) {
      wait_for_others(self);
    } else {
      cut_at_first_gap(state);
      copy_window(self);
    }
    return;
  }
  publish_request request;
  request.hold = true;
  request.in = state.job.in;
  if (state.job.context)
    request.inference = state.job.context->inference;
  for (size_t i : reading->good)
    request.places.push_back(reading->acquired.places[i]);
  if (!reading->others && passes(state)) {
    for (size_t n = 0; n < reading->good.size(); ++n)
      state.places[reading->good[n]] = request.places[n];
    state.passing = reading->acquired.reserved;
    cut_at_first_gap(state);
    copy_window(self);
    return;
  }
  self->request(state.job.group->host, caf::infinite, std::move(request))
      .then(
          [self, reading](const publish_answer& answer) {
            auto& now = self->state;
            for (size_t n = 0; n < reading->good.size(); ++n) {
              const object_place& place = answer.held->places()[n];
              now.places[reading->good[n]] = place;
              now.promoted += physical_bytes_for(place.payload_bytes);
            }
            now.holds.push_back(answer.held);
            if (reading->others) {
              wait_for_others(self);
              return;
            }
            cut_at_first_gap(now);
            copy_window(self);
          },
          on_lost(self, "host tier"));
}

void read_next_tier(self_pointer self, const reading_ptr& reading);

/// What was cleared from the tier meanwhile is not brought back.
void confirm_read(self_pointer self, const reading_ptr& reading, const tier_hold& from,
                  const std::vector<size_t>& read) {
  confirm_request request;
  for (size_t i : read)
    request.ids.push_back(from.held->places()[i].id);
  self->request(self->state.job.group->tier(from.tier)->tier, caf::infinite, std::move(request))
      .then(
          [self, reading, read, tier = from.tier](const confirm_answer& answer) {
            for (size_t n = 0; n < read.size(); ++n)
              if (answer.present[n]) {
                reading->good.push_back(read[n]);
                self->state.read_from[read[n]] = tier;
              }
            read_next_tier(self, reading);
          },
          on_lost(self, "tier below"));
}

/// What cannot be read, or is not what was expected, is dropped from its tier.
void take_read(self_pointer self, const reading_ptr& reading, const tier_hold& from,
               const std::vector<size_t>& wanted, const std::vector<move_outcome>& outcomes) {
  auto& state = self->state;
  std::vector<size_t> read;
  discard_notice damaged;
  detach_notice stalled;
  for (size_t n = 0; n < wanted.size(); ++n) {
    size_t i = wanted[n];
    switch (outcomes[n]) {
      case move_outcome::done: read.push_back(i); break;
      case move_outcome::failed: damaged.ids.push_back(from.held->places()[i].id); break;
      case move_outcome::stalled: stalled.ids.push_back(reading->acquired.places[i].id); break;
      case move_outcome::away: break;
    }
  }
  if (!damaged.ids.empty())
    self->send(state.job.group->tier(from.tier)->tier, std::move(damaged));
  if (!stalled.ids.empty()) // nobody should wait for the kernel to give their memory back
    self->send(state.job.group->host, std::move(stalled));
  if (read.empty())
    read_next_tier(self, reading);
  else
    confirm_read(self, reading, from, read);
}

/// Reads the reserved objects of the window that the next tier below is the fastest to have.
void read_next_tier(self_pointer self, const reading_ptr& reading) {
  auto& state = self->state;
  if (reading->next == reading->below.size()) {
    publish_read(self, reading);
    return;
  }
  size_t k = reading->next++;
  const tier_hold& from = reading->below[k];
  auto is_fastest = [&](size_t i) {
    return from.held->places()[i].present() &&
           std::none_of(reading->below.begin(), reading->below.begin() + static_cast<ptrdiff_t>(k),
                        [i](const tier_hold& one) { return one.held->places()[i].present(); });
  };
  read_request request;
  request.in = state.job.in;
  request.context = state.job.context;
  request.owners = {reading->acquired.reserved, from.held};
  std::vector<size_t> wanted;
  for (size_t i = 0; i < reading->acquired.states.size(); ++i) {
    if (reading->acquired.states[i] != acquired_state::reserved || !is_fastest(i))
      continue;
    wanted.push_back(i);
    request.objects.push_back({state.window->keys[i], from.held->places()[i],
                               state.job.group->memory->at(reading->acquired.places[i].offset)});
  }
  if (wanted.empty()) {
    read_next_tier(self, reading);
    return;
  }
  self->request(state.job.group->tier(from.tier)->mover, caf::infinite, std::move(request))
      .then(
          [self, reading, k, wanted](const move_answer& answer) {
            if (ended(self, "load"))
              return;
            if (answer.failure.code != errc::ok)
              finish(self, answer.failure);
            else
              take_read(self, reading, reading->below[k], wanted, answer.outcomes);
          },
          on_lost(self, "mover of a tier"));
}

/// Takes what the tier gave for the window; returns whether anything is held.
void keep(load_state& state, const acquire_answer& acquired) {
  state.places.assign(acquired.states.size(), {});
  for (size_t i = 0; i < acquired.states.size(); ++i)
    if (acquired.states[i] == acquired_state::held)
      state.places[i] = acquired.places[i];
  state.holds = {acquired.held};
}

/// Second round: the tiers below hold what they have, and the host tier reserves space for exactly that.
void fill_window(self_pointer self, const tier_holds& below) {
  auto& state = self->state;
  acquire_request request;
  request.objects = state.window;
  request.note_access = false;
  request.context = state.job.context;
  request.may_fill.resize(state.window->size());
  for (const tier_hold& one : below)
    for (size_t i = 0; i < request.may_fill.size(); ++i)
      request.may_fill[i] = request.may_fill[i] || one.held->places()[i].present();
  self->request(state.job.group->host, caf::infinite, std::move(request))
      .then(
          [self, below](const acquire_answer& acquired) {
            if (acquired.failure.code != errc::ok) {
              finish(self, acquired.failure);
              return;
            }
            keep(self->state, acquired);
            auto reading = std::make_shared<below_reading>();
            reading->acquired = acquired;
            reading->below = below;
            reading->others = std::find(acquired.states.begin(), acquired.states.end(),
                                        acquired_state::pending) != acquired.states.end();
            read_next_tier(self, reading);
          },
          on_lost(self, "host tier"));
}

/// The part of a lease's hold that belongs to the window; it shares the lease's ownership.
hold_ptr window_of(const hold_ptr& held, size_t begin, size_t end) {
  auto places = std::vector<object_place>(held->places().begin() + static_cast<ptrdiff_t>(begin),
                                          held->places().begin() + static_cast<ptrdiff_t>(end));
  return hold_ptr(new object_hold({}, std::move(places)), [held](object_hold* part) { delete part; });
}

/// Whether objects of the window may be in a tier below.
bool may_be_below(const load_state& state) {
  const auto& tiers = state.job.group->tiers();
  return std::any_of(tiers.begin() + 1, tiers.end(), [](const tier_parts& tier) { return tier.reads(); });
}

/// Asks the tiers from `next` on what they have, until nothing is missing.
void ask_below(self_pointer self, size_t next, tier_holds below) {
  auto& state = self->state;
  const auto& tiers = state.job.group->tiers();
  while (next < tiers.size() && !tiers[next].reads())
    ++next;
  if (next >= tiers.size()) {
    fill_window(self, below);
    return;
  }
  probe_request request{state.window, true, state.job.note_access};
  self->request(tiers[next].tier, caf::infinite, std::move(request))
      .then(
          [self, next, below = std::move(below),
           kind = tiers[next].kind](const probe_answer& answer) mutable {
            if (answer.held)
              below.push_back({kind, answer.held});
            ask_below(self, next + 1, std::move(below));
          },
          on_lost(self, "tier below"));
}

void ask_below(self_pointer self) {
  auto& state = self->state;
  state.holds.clear();
  if (state.job.below.empty()) {
    ask_below(self, 1, {});
    return;
  }
  tier_holds below;
  for (const tier_hold& one : state.job.below)
    below.push_back({one.tier, window_of(one.held, state.begin, state.end)});
  fill_window(self, below);
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
            } else if (may_be_below(now)) {
              ask_below(self);
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
  state.read_from.assign(state.window->size(), tier_kind::host);
  hold_window(self);
}

caf::behavior load_behavior(self_pointer self) { return transfer_behavior<load_job>(self, start_window); }

} // namespace

caf::actor spawn_load(caf::actor_system& system) { return system.spawn(load_behavior); }

} // namespace terrace::actors

#include "actors/tier/memory_actor.hpp"

#include "actors/supervision/preparer_actor.hpp"
#include "base/countdown.hpp"
#include "base/printable.hpp"
#include "memory/arena_resize.hpp"

#include <caf/actor_system.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <cassert>
#include <utility>

namespace terrace::actors {

namespace {

struct memory_state {
  const char* name = "memory";
  memory_arguments with;
  arena_resize resize;
  bool committing = false; ///< a preparer is running
};

using memory_pointer = memory_actor::stateful_pointer<memory_state>;

std::string describe(const memory_state& state) {
  return "group " + state.with.parts->name + " has " + readable_bytes(state.with.parts->memory->size()) +
         " of host memory";
}

void commit(memory_pointer self) {
  auto& state = self->state;
  assert(!state.committing);
  state.committing = true;
  auto worker = spawn_preparer(self->system(), {.memory = state.with.parts->memory,
                                                .prefault_piece_bytes = state.with.prefault_piece_bytes,
                                                .report_to = caf::actor_cast<caf::actor>(self),
                                                .detached = state.with.detached});
  self->link_to(worker); // the preparer ends with this actor, between two pieces
}

// ---- removal ----

void drop(memory_pointer self, uint32_t number) {
  auto& with = self->state.with;
  with.parts->memory->drop(number);
  uint64_t left = with.parts->memory->leaving_bytes();
  with.log(describe(self->state) + ": segment " + std::to_string(number) + " was removed" +
           (left == 0 ? "" : ", " + readable_bytes(left) + " are still used by leases or clients"));
}

/// The segment is empty: it is dropped when no mover and no device refers to it either.
void on_emptied(memory_pointer self, uint32_t number) {
  const auto& with = self->state.with;
  const trust_group& parts = *with.parts;
  const forget_memory gone{parts.memory->segment(number)->data()};
  auto movers = std::make_shared<countdown>([self, number] { drop(self, number); });
  for (const tier_handle& tier : parts.tiers()) {
    if (!tier.mover)
      continue;
    movers->begin();
    self->request(tier.mover, caf::infinite, gone)
        .then([movers](const retire_answer&) { movers->end(); },
              [](const caf::error&) {}); // the daemon is shutting down
  }
  if (with.devices) {
    movers->begin();
    self->request(with.devices, caf::infinite, gone)
        .then([movers](const retire_answer&) { movers->end(); },
              [](const caf::error&) {}); // the daemon is shutting down
  }
  movers->end();
}

void shrink(memory_pointer self) {
  auto& state = self->state;
  for (const auto& [number, range] : state.resize.take_leaving())
    self->request(state.with.parts->host, caf::infinite, retire_request{{range.offset, range.bytes}})
        .then(
            [self, number = number](const retire_answer& answer) {
              if (answer.failure.code == errc::ok)
                on_emptied(self, number);
              else
                self->state.with.warn("segment " + std::to_string(number) +
                                      " could not be removed: " + answer.failure.text);
            },
            [](const caf::error&) {}); // the daemon is shutting down
  state.with.parts->fit_window();
  state.with.log(describe(state));
}

// ---- growth ----

/// Tells the devices that segments are committed. Pinning would commit them, so without prefault they are not
/// passed on.
void tell_devices(memory_pointer self, uint32_t first, uint32_t end) {
  const auto& with = self->state.with;
  if (!with.devices || with.prefault_piece_bytes == 0)
    return;
  for (uint32_t number = first; number < end; ++number)
    if (auto segment = with.parts->memory->segment(number))
      self->send(with.devices, add_memory{std::move(segment)});
}

void could_not_grow(const memory_state& state, const error& why) {
  state.with.warn(describe(state) + "; it could not grow: " + why.text);
}

/// Called when the new segments are committed, or cannot be.
void end_growth(memory_pointer self, const error& failure) {
  auto& state = self->state;
  trust_group& parts = *state.with.parts;
  auto joined = state.resize.end_growth(failure.code != errc::ok);
  if (!joined) {
    could_not_grow(state, failure);
    return;
  }
  tell_devices(self, joined->first, joined->end);
  for (uint32_t number = joined->first; number < joined->end; ++number)
    for (const tier_handle& tier : parts.tiers())
      if (tier.mover)
        self->send(tier.mover,
                   add_memory{parts.memory->segment(number), state.with.prefault_piece_bytes != 0});
  self->send(parts.host, grow_notice{joined->bytes, joined->gap_bytes});
  parts.fit_window();
  if (auto why = parts.memory->huge_pages_refusal(); !why.empty())
    state.with.warn("host memory of group " + parts.name + ": " + why);
}

void go_on(memory_pointer self) {
  auto& state = self->state;
  if (state.committing)
    return;
  auto next = state.resize.begin();
  if (next && *next == arena_resize::step::nothing)
    return;
  if (!next)
    could_not_grow(state, next.error());
  if (next && *next == arena_resize::step::grow) {
    if (state.with.prefault_piece_bytes != 0) {
      commit(self);
      return;
    }
    end_growth(self, {});
  }
  shrink(self);
}

void on_committed(memory_pointer self, const error& failure) {
  auto& state = self->state;
  state.committing = false;
  if (state.resize.growing()) {
    end_growth(self, failure);
    shrink(self);
  } else {
    if (failure.code == errc::ok)
      tell_devices(self, 0, state.with.parts->memory->segments());
    caf::anon_send(state.with.report_to, memory_prepared{state.with.group, failure});
  }
  go_on(self);
}

void on_resize(memory_pointer self, const resize_memory& wanted) {
  self->state.resize.want(wanted.bytes);
  go_on(self);
}

memory_actor::behavior_type memory_behavior(memory_pointer self,
                                            const std::shared_ptr<memory_arguments>& arguments) {
  self->state.with = std::move(*arguments);
  self->state.resize = arena_resize(self->state.with.parts->memory);
  if (self->state.with.prefault_piece_bytes != 0)
    commit(self);
  return {
      [self](const memory_committed& report) { on_committed(self, report.failure); },
      [self](const resize_memory& wanted) { on_resize(self, wanted); },
  };
}

} // namespace

memory_actor spawn_memory(caf::actor_system& system, memory_arguments arguments) {
  return system.spawn(memory_behavior, std::make_shared<memory_arguments>(std::move(arguments)));
}

} // namespace terrace::actors

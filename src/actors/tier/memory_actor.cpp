#include "actors/tier/memory_actor.hpp"

#include "actors/disk/disk_actor.hpp"
#include "actors/supervision/preparer_actor.hpp"

#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>

#include <optional>
#include <utility>

namespace terrace::actors {

namespace {

struct memory_state {
  const char* name = "memory";
  memory_arguments with;
  bool committing = false; ///< a preparer is running
  std::optional<segmented_arena::growth> growing;
  std::vector<uint32_t> leaving; ///< segments to remove once the growth is complete
  std::optional<uint64_t> wanted;
};

/// The preparer that it spawns reports to it.
using memory_interface = memory_actor::extend<caf::reacts_to<memory_committed>>;
using self_pointer = memory_interface::stateful_pointer<memory_state>;

std::string describe(const memory_state& state) {
  return "group " + state.with.parts->name + " has " + std::to_string(state.with.parts->memory->size()) +
         " bytes of host memory";
}

void next(self_pointer self);

void commit(self_pointer self) {
  auto& state = self->state;
  state.committing = true;
  caf::actor worker = spawn_preparer(self->system(), {.memory = state.with.parts->memory,
                                                      .prefault_piece_bytes = state.with.prefault_piece_bytes,
                                                      .report_to = caf::actor_cast<caf::actor>(self),
                                                      .detached = state.with.detached});
  self->link_to(worker); // it ends with this actor, between two pieces
}

void shrink(self_pointer self) {
  auto& state = self->state;
  for (uint32_t number : std::exchange(state.leaving, {})) {
    segmented_arena& memory = *state.with.parts->memory;
    auto [offset, bytes] = memory.range_of(number);
    memory.retire(number);
    auto drop = [self, number] {
      auto& with = self->state.with;
      with.parts->memory->drop(number);
      uint64_t left = with.parts->memory->leaving_bytes();
      with.log(describe(self->state) + ": segment " + std::to_string(number) + " was removed" +
               (left == 0 ? "" : ", " + std::to_string(left) + " bytes are still used by leases or clients"));
    };
    auto emptied = [self, number, drop](const retire_answer& answer) {
      auto& with = self->state.with;
      if (answer.failure.code != errc::ok) {
        with.warn("segment " + std::to_string(number) + " could not be removed: " + answer.failure.text);
        return;
      }
      auto waiting_for = std::make_shared<size_t>(1);
      auto one_less = [drop, waiting_for] {
        if (--*waiting_for == 0)
          drop();
      };
      for (const tier_parts& tier : with.parts->tiers()) {
        if (!tier.mover)
          continue;
        ++*waiting_for;
        self->request(tier.mover, caf::infinite, forget_memory{with.parts->memory->segment(number)->data()})
            .then([one_less](const retire_answer&) { one_less(); },
                  [](const caf::error&) {}); // the daemon is shutting down
      }
      one_less();
    };
    self->request(state.with.parts->host, caf::infinite, retire_request{{offset, bytes}})
        .then(emptied, [](const caf::error&) {});
  }
  state.with.parts->fit_window();
}

/// The new segments are committed, or cannot be.
void grown(self_pointer self, const error& failure) {
  auto& state = self->state;
  group_parts& parts = *state.with.parts;
  auto added = *std::exchange(state.growing, std::nullopt);
  if (failure.code != errc::ok) {
    parts.memory->take_back(added);
    state.leaving.clear();
    state.with.warn(describe(state) + "; it could not grow: " + failure.text);
    return;
  }
  grow_notice notice{0, added.gap_bytes};
  for (uint32_t i = added.first; i < added.end; ++i) {
    notice.bytes += parts.memory->range_of(i).bytes;
    for (const tier_parts& tier : parts.tiers())
      if (tier.mover)
        caf::anon_send(tier.mover,
                       add_memory{parts.memory->segment(i), state.with.prefault_piece_bytes != 0});
  }
  self->send(parts.host, notice);
  parts.fit_window();
  if (auto why = parts.memory->huge_pages_refusal(); !why.empty())
    state.with.warn("host memory of group " + parts.name + ": " + why);
}

void grow(self_pointer self, uint64_t bytes) {
  auto& state = self->state;
  auto added = state.with.parts->memory->grow(bytes);
  if (!added) {
    state.leaving.clear();
    state.with.warn(describe(state) + "; it could not grow: " + added.error().text);
    return;
  }
  state.growing = *added;
  if (state.with.prefault_piece_bytes != 0)
    commit(self);
  else
    grown(self, {});
}

void next(self_pointer self) {
  auto& state = self->state;
  if (state.committing || !state.wanted)
    return;
  segmented_arena& memory = *state.with.parts->memory;
  uint64_t target = *std::exchange(state.wanted, std::nullopt);
  uint64_t now = memory.size(), later = now;
  if (target == now)
    return;
  if (target < now) {
    state.leaving = memory.choose(now - target);
    for (uint32_t number : state.leaving)
      later -= memory.range_of(number).bytes;
  }
  if (target > later) // whole segments are removed: the excess is replaced by a smaller one
    grow(self, target - later);
  if (!state.committing) {
    shrink(self);
    state.with.log(describe(state));
  }
}

void on_committed(self_pointer self, const error& failure) {
  auto& state = self->state;
  state.committing = false;
  if (state.growing) {
    grown(self, failure);
    shrink(self);
    state.with.log(describe(state));
  } else {
    caf::anon_send(state.with.report_to, memory_prepared{state.with.group, failure});
  }
  next(self);
}

memory_interface::behavior_type memory_behavior(self_pointer self,
                                                const std::shared_ptr<memory_arguments>& arguments) {
  self->state.with = std::move(*arguments);
  if (self->state.with.prefault_piece_bytes != 0)
    commit(self);
  return {
      [self](const memory_committed& report) { on_committed(self, report.failure); },
      [self](const resize_memory& wanted) {
        self->state.wanted = wanted.bytes;
        next(self);
      },
  };
}

} // namespace

memory_actor spawn_memory(caf::actor_system& system, memory_arguments arguments) {
  return system.spawn(memory_behavior, std::make_shared<memory_arguments>(std::move(arguments)));
}

void expose_memory(metrics::exposition& exposition, std::shared_ptr<const segmented_arena> memory,
                   const metrics::labels& of) {
  exposition.add([memory = std::move(memory), of](metrics::sample_sink& sink) {
    sink.gauge("terrace_arena_bytes", "Host memory of the group, without segments being removed.", of,
               static_cast<double>(memory->size()));
    sink.gauge("terrace_arena_huge_page_bytes", "Host memory in pages of 2 MiB.", of,
               static_cast<double>(memory->huge_page_bytes()));
    sink.gauge("terrace_arena_leaving_bytes",
               "Memory of segments being removed that leases or clients still use.", of,
               static_cast<double>(memory->leaving_bytes()));
  });
}

} // namespace terrace::actors

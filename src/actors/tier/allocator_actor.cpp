#include "actors/tier/tier_actor.hpp"

#include "runtime/answer.hpp"
#include "runtime/turns.hpp"
#include "tier/space/allocation_queue.hpp"

#include <caf/actor_system.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

namespace terrace::actors {

namespace {

struct allocator_state {
  const char* name = "allocator";
  std::unique_ptr<allocation_queue> queue;
  tier_actor tier;
  std::shared_ptr<metrics::tier_probe> probe;
};

using allocator_pointer = caf::stateful_actor<allocator_state, runtime::turns<allocator_actor::base>>*;

/// Shows the state of the space, and begins a round if requests need one.
void after_turn(allocator_pointer self) {
  auto& queue = *self->state.queue;
  allocator_usage usage = queue.usage();
  self->state.probe->waiting(queue.waiting());
  self->state.probe->occupies({usage.capacity_bytes, usage.used_bytes, usage.requested_bytes,
                               usage.largest_free_run, usage.free_runs, usage.whole_bytes});
  if (auto round = queue.begin_round())
    self->send(self->state.tier, room_request{std::move(round)});
}

caf::result<allocate_answer> on_allocate(allocator_pointer self, const allocate_request& request) {
  auto reply = make_answer<allocate_answer>(self);
  self->state.queue->allocate(request,
                              [reply](allocate_answer value) mutable { reply.deliver(std::move(value)); });
  return reply.promise();
}

caf::result<retire_answer> on_retire(allocator_pointer self, const retire_request& request) {
  auto reply = make_answer<retire_answer>(self);
  self->state.queue->retire(request.range,
                            [reply](retire_answer value) mutable { reply.deliver(std::move(value)); });
  return reply.promise();
}

allocator_actor::behavior_type allocator_behavior(allocator_pointer self,
                                                  std::shared_ptr<allocator_arguments> arguments) {
  self->state.queue = std::make_unique<allocation_queue>(std::move(arguments->space),
                                                         arguments->free_ahead_bytes, arguments->waiting_max);
  self->state.tier = std::move(arguments->tier);
  self->state.probe = arguments->probe;
  auto& queue = *self->state.queue;
  self->each_turn(nullptr, [self] { after_turn(self); });
  return self->in_turns([self](const allocate_request& request) { return on_allocate(self, request); },
                        [&queue](const free_notice& notice) { queue.free(notice.extents); },
                        [&queue](const room_made& made) { queue.end_round(made.round); },
                        [&queue](const evictable_notice&) { queue.more_evictable(); },
                        [&queue](const grow_notice& notice) { queue.grow(notice); },
                        [self](const retire_request& request) { return on_retire(self, request); },
                        [&queue](const sweep_notice&) { queue.sweep(); },
                        [&queue](const usage_request&) { return queue.report(); },
                        [&queue](const check_space_request& request) { return queue.check(request); });
}

} // namespace

allocator_actor spawn_allocator(caf::actor_system& system, allocator_arguments arguments) {
  return system.spawn(allocator_behavior, std::make_shared<allocator_arguments>(std::move(arguments)));
}

} // namespace terrace::actors

#include "actors/tier/allocator_actor.hpp"

#include "coroutine/answer.hpp"
#include "tier/allocation_queue.hpp"

#include <caf/actor_system.hpp>
#include <caf/typed_event_based_actor.hpp>

namespace terrace::actors {

namespace {

struct allocator_state {
  const char* name = "allocator";
  std::unique_ptr<allocation_queue> queue;
  tier_actor tier;
  std::shared_ptr<metrics::tier_probe> probe;
};

using self_pointer = allocator_actor::stateful_pointer<allocator_state>;

/// Call after every change.
void settle(self_pointer self) {
  auto& queue = *self->state.queue;
  allocator_usage usage = queue.usage();
  self->state.probe->waiting(queue.waiting());
  self->state.probe->occupies({usage.capacity_bytes, usage.used_bytes, usage.requested_bytes,
                               usage.largest_free_run, usage.free_runs, usage.whole_bytes});
  if (auto round = queue.begin_round())
    self->send(self->state.tier, room_request{std::move(round)});
}

allocator_actor::behavior_type allocator_behavior(self_pointer self,
                                                  std::shared_ptr<allocator_arguments> arguments) {
  self->state.queue = std::make_unique<allocation_queue>(std::move(arguments->space),
                                                         arguments->free_ahead_bytes, arguments->waiting_max);
  self->state.tier = std::move(arguments->tier);
  self->state.probe = arguments->probe;
  settle(self);
  return {
      [self](const allocate_request& request) {
        auto reply = make_answer<allocate_answer>(self);
        self->state.queue->allocate(
            request, [reply](allocate_answer value) mutable { reply.deliver(std::move(value)); });
        settle(self);
        return reply.promise();
      },
      [self](const free_notice& notice) {
        self->state.queue->free(notice.extents);
        settle(self);
      },
      [self](const room_made& made) {
        self->state.queue->end_round(made.round);
        settle(self);
      },
      [self](const evictable_notice&) {
        self->state.queue->more_evictable();
        settle(self);
      },
      [self](const grow_notice& notice) {
        self->state.queue->grow(notice);
        settle(self);
      },
      [self](const retire_request& request) {
        auto reply = make_answer<retire_answer>(self);
        self->state.queue->retire(request.range,
                                  [reply](retire_answer value) mutable { reply.deliver(std::move(value)); });
        settle(self);
        return reply.promise();
      },
      [self](const sweep_notice&) {
        self->state.queue->sweep();
        settle(self);
      },
      [self](const usage_request&) {
        usage_answer report;
        report.usage = self->state.queue->usage();
        report.room_bytes = self->state.queue->room_bytes();
        report.waiting = self->state.queue->waiting();
        report.allocator = self->state.queue->allocator_name();
        return report;
      },
  };
}

} // namespace

allocator_actor spawn_allocator(caf::actor_system& system, allocator_arguments arguments) {
  return system.spawn(allocator_behavior, std::make_shared<allocator_arguments>(std::move(arguments)));
}

} // namespace terrace::actors

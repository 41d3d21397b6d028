#include "actors/supervision/metrics_actor.hpp"

#include <caf/actor_system.hpp>
#include <caf/typed_event_based_actor.hpp>

namespace terrace::actors {

namespace {

struct metrics_state {
  const char* name = "metrics";
  std::shared_ptr<metrics::exposition> serving;
};

metrics_actor::behavior_type metrics_behavior(metrics_actor::stateful_pointer<metrics_state> self,
                                              const std::shared_ptr<metrics::exposition>& serving) {
  self->state.serving = serving;
  return {
      [self](const add_source& more) { self->state.serving->add(more.source); },
  };
}

} // namespace

metrics_actor spawn_metrics(caf::actor_system& system, std::unique_ptr<metrics::exposition> serving) {
  return system.spawn(metrics_behavior, std::shared_ptr<metrics::exposition>(std::move(serving)));
}

} // namespace terrace::actors

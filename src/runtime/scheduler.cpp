#include "runtime/scheduler.hpp"

#include <caf/actor_system_config.hpp>
#include <caf/scheduled_actor.hpp>

#include <thread>

namespace terrace::runtime {

uring_policy::worker_data::worker_data(caf::scheduler::abstract_coordinator* parent)
    : pool(&static_cast<uring_coordinator*>(parent)->pool()) {}

uring_policy::worker_data::worker_data(const worker_data& prototype)
    : pool(prototype.pool), loop(&pool->loop(prototype.next_index++)) {}

void uring_coordinator::init(caf::actor_system_config& config) {
  super::init(config);
  max_throughput_ = options_.max_throughput;
  num_workers_ = options_.effective_workers(std::thread::hardware_concurrency());
  data().pool = std::make_unique<worker_pool>(options_, num_workers_, &system());
}

event_loop& route(caf::scheduler::abstract_coordinator& ours, caf::resumable* what) {
  auto& coordinator = static_cast<uring_coordinator&>(ours);
  auto& workers = coordinator.pool();
  if (workers.size() == 1)
    return workers.loop(0);
  if (what->subtype() == caf::resumable::scheduled_actor) {
    // Safe to read: the actor was idle until the message that created this job, and nobody else may queue it.
    auto* context = static_cast<caf::scheduled_actor*>(what)->context();
    for (size_t i = 0; i < workers.size(); ++i)
      if (context == coordinator.worker_by_id(i))
        return workers.loop(i);
  }
  return workers.least_loaded();
}

} // namespace terrace::runtime

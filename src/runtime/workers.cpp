#include "runtime/workers.hpp"

#include "runtime/scheduler.hpp"

#include <caf/actor_system_config.hpp>
#include <caf/scheduled_actor.hpp>
#include <thread>

namespace terrace::runtime {

namespace {

home home_at(event_loop& loop) { return {&loop.unit(), &loop.unit().port(), loop.index()}; }

} // namespace

void workers::install(caf::actor_system_config& config, const runtime_options& options) {
  config.module_factories.push_back([options](caf::actor_system& system) -> caf::actor_system::module* {
    return new uring_coordinator(system, options);
  });
}

workers::workers(caf::actor_system& system)
    : pool_(&static_cast<uring_coordinator&>(system.scheduler()).pool()) {}

result<void> workers::wait_started() { return pool_->wait_started(); }

size_t workers::size() const { return pool_->size(); }

home workers::place() { return home_at(pool_->least_busy()); }

home workers::at(size_t worker) { return home_at(pool_->loop(worker)); }

void workers::cancel(operation_id id) { pool_->cancel(id, nullptr); }

const worker_counters& workers::counters(size_t worker) const { return pool_->loop(worker).counters(); }

const turn_times& workers::turns(size_t worker) const { return pool_->loop(worker).turns(); }

bool workers::asleep(size_t worker) const { return pool_->loop(worker).asleep(); }

ring_features workers::features() const { return pool_->loop(0).unit().port().features(); }

home_unit* find_home(const caf::actor_config& config, caf::actor_system& system) {
  if (auto* asked = dynamic_cast<home_unit*>(config.host))
    return asked;
  auto* ours = dynamic_cast<uring_coordinator*>(&system.scheduler());
  if (ours == nullptr)
    return nullptr;
  for (size_t i = 0; i < ours->num_workers(); ++i)
    if (config.host == ours->worker_by_id(i))
      return &ours->pool().loop(i).unit();
  return &ours->pool().least_busy().unit();
}

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

event_loop& route(caf::scheduler::abstract_coordinator& ours, caf::resumable* job) {
  auto& coordinator = static_cast<uring_coordinator&>(ours);
  auto& workers = coordinator.pool();
  if (workers.size() == 1)
    return workers.loop(0);
  if (job->subtype() == caf::resumable::scheduled_actor) {
    // Safe to read: the actor was idle until the message that created this job, and nobody else may queue it.
    auto* context = static_cast<caf::scheduled_actor*>(job)->context();
    for (size_t i = 0; i < workers.size(); ++i)
      if (context == coordinator.worker_by_id(i))
        return workers.loop(i);
  }
  return workers.least_loaded();
}

} // namespace terrace::runtime

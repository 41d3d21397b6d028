#include "runtime/workers.hpp"
#include "runtime/scheduler.hpp"

#include <caf/actor_system_config.hpp>

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

} // namespace terrace::runtime

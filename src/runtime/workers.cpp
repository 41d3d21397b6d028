#include "runtime/workers.hpp"

#include "runtime/event_loop.hpp"
#include "runtime/worker_pool.hpp"

#include <caf/actor_system_config.hpp>
#include <caf/logger.hpp>
#include <caf/policy/unprofiled.hpp>
#include <caf/scheduled_actor.hpp>

// CAF's worker determines each job's dynamic type to name its actor in CAF's log, even if CAF was built
// without a log, as Debian's is. This costs a twentieth of a worker's time.
#if CAF_LOG_LEVEL == CAF_LOG_LEVEL_QUIET
#pragma push_macro("CAF_PUSH_AID_FROM_PTR")
#undef CAF_PUSH_AID_FROM_PTR
#define CAF_PUSH_AID_FROM_PTR(actor) CAF_VOID_STMT
#include <caf/scheduler/worker.hpp>
#pragma pop_macro("CAF_PUSH_AID_FROM_PTR")
#endif
#include <caf/scheduler/coordinator.hpp>

#include <memory>
#include <set>
#include <thread>

namespace terrace::runtime {

namespace {

// The CAF scheduler policy for the event loops. `workers::install` sets it in a configuration; nothing else uses it.

/// Returns the queue for a floating job that no worker woke, or a transfer worker: that of its actor's last worker, else of the least loaded
/// one.
event_loop& route(caf::scheduler::abstract_coordinator& ours, caf::resumable* job);

struct uring_policy : caf::policy::unprofiled {
  struct coordinator_data {
    explicit coordinator_data(caf::scheduler::abstract_coordinator*) {}
    std::unique_ptr<worker_pool> pool;
  };

  /// CAF creates one on the main thread and copies it for each worker, in the workers' order.
  struct worker_data {
    explicit worker_data(caf::scheduler::abstract_coordinator* parent);
    worker_data(const worker_data& prototype);
    worker_pool* pool = nullptr;
    mutable size_t next_index = 0; // index of the worker that gets the next copy of the prototype
    event_loop* loop = nullptr;
  };

  template <class Coordinator>
  void central_enqueue(Coordinator* self, caf::resumable* job) {
    route(*self, job).post({job, job_kind::floating, 0});
  }

  // CAF calls this only to stop one particular worker, so such a job never moves.
  template <class Worker>
  void external_enqueue(Worker* self, caf::resumable* job) {
    self->data().loop->post({job, job_kind::homed, 0});
  }

  // The context of an idle actor is its last worker, even if another thread wakes it, so the loop checks
  // which thread it is on. No floating actor runs on a transfer worker.
  template <class Worker>
  void internal_enqueue(Worker* self, caf::resumable* job) {
    event_loop& loop = *self->data().loop;
    if (loop.index() < self->data().pool->serving())
      loop.enqueue(job, job_kind::floating);
    else
      route(*self->parent(), job).post({job, job_kind::floating, 0});
  }

  template <class Worker>
  void resume_job_later(Worker* self, caf::resumable* job) {
    self->data().loop->again(job);
  }

  template <class Worker>
  caf::resumable* dequeue(Worker* self) {
    return self->data().loop->next(self);
  }

  template <class Worker>
  void before_shutdown(Worker* self) {
    self->data().loop->shut_down();
  }

  // Cleaning up an actor may wake others, also on workers visited before, so each visit empties all queues.
  template <class Worker, class F>
  void foreach_resumable(Worker* self, F visit) {
    auto& pool = *self->data().pool;
    for (bool found = true; found;) {
      found = false;
      for (size_t i = 0; i < pool.size(); ++i)
        while (auto* what = pool.loop(i).drain_one()) {
          found = true;
          visit(what);
        }
    }
  }

  template <class Coordinator, class F>
  void foreach_central_resumable(Coordinator*, F) {}
};

class uring_coordinator final : public caf::scheduler::coordinator<uring_policy> {
 public:
  using super = caf::scheduler::coordinator<uring_policy>;

  uring_coordinator(caf::actor_system& system, runtime_options options)
      : super(system), options_(std::move(options)) {}

  void init(caf::actor_system_config& config) override;

  worker_pool& pool() { return *data().pool; }

 private:
  runtime_options options_;
};

uring_policy::worker_data::worker_data(caf::scheduler::abstract_coordinator* parent)
    : pool(&static_cast<uring_coordinator*>(parent)->pool()) {}

uring_policy::worker_data::worker_data(const worker_data& prototype)
    : pool(prototype.pool), loop(&pool->loop(prototype.next_index++)) {}

void uring_coordinator::init(caf::actor_system_config& config) {
  super::init(config);
  max_throughput_ = options_.max_throughput;
  data().pool = std::make_unique<worker_pool>(
      options_, options_.effective_workers(std::thread::hardware_concurrency()), &system());
  num_workers_ = data().pool->size();
}

event_loop& route(caf::scheduler::abstract_coordinator& ours, caf::resumable* job) {
  auto& coordinator = static_cast<uring_coordinator&>(ours);
  auto& workers = coordinator.pool();
  if (workers.serving() == 1)
    return workers.loop(0);
  if (job->subtype() == caf::resumable::scheduled_actor) {
    // Safe to read: the actor was idle until the message that created this job, and nobody else may queue it.
    auto* context = static_cast<caf::scheduled_actor*>(job)->context();
    for (size_t i = 0; i < workers.serving(); ++i)
      if (context == coordinator.worker_by_id(i))
        return workers.loop(i);
  }
  return workers.least_loaded();
}

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

size_t workers::serving() const { return pool_->serving(); }

home workers::place() { return home_at(pool_->least_busy()); }

home workers::place_transfers() { return home_at(pool_->transfer_worker()); }

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

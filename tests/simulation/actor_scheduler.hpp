// CAF's scheduler for a simulation: one thread, and the seed decides which actor runs next. An actor that has something to
// do is an event of the simulation (scheduler.hpp) like the completion of an operation, so both are ordered by the same
// draws. Delayed messages and timeouts come at virtual times.
//
//   caf::actor_system_config config;
//   actor_scheduler::install(config, events, seed, {});
//   caf::actor_system system{config};
//   while (events.step()) {}
//
// Detached actors have threads of their own, whatever the scheduler; what runs here is spawned with `detached` = false.
#pragma once

#include "random.hpp"
#include "scheduler.hpp"

#include <caf/actor_system_config.hpp>
#include <caf/detail/simple_actor_clock.hpp>
#include <caf/execution_unit.hpp>
#include <caf/resumable.hpp>
#include <caf/scheduler/abstract_coordinator.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace terrace::simulation {

struct actor_delays {
  /// An actor runs up to this long after it was woken, so that operations complete between the messages of others.
  std::chrono::nanoseconds most{};
  /// Messages that an actor handles before others may run: 1 to this many, drawn each time.
  size_t messages_most = 1;
  /// Each actor has delays of its own: most have none, and some are ten times as late.
  bool differ = false;

  /// Swarm testing: in half of all runs, actors run without delay.
  static actor_delays draw(seeded_random& random);
};

/// CAF's clock in virtual time.
class virtual_clock final : public caf::detail::simple_actor_clock {
 public:
  using super = caf::detail::simple_actor_clock;

  explicit virtual_clock(scheduler& events) : events_(events) {}

  time_point now() const noexcept override;
  void set_ordinary_timeout(time_point at, caf::abstract_actor* self, caf::atom_value type,
                            uint64_t id) override;
  void set_multi_timeout(time_point at, caf::abstract_actor* self, caf::atom_value type,
                         uint64_t id) override;
  void set_request_timeout(time_point at, caf::abstract_actor* self, caf::message_id id) override;
  void schedule_message(time_point at, caf::strong_actor_ptr receiver,
                        caf::mailbox_element_ptr content) override;
  void schedule_message(time_point at, caf::group target, caf::strong_actor_ptr sender,
                        caf::message content) override;

 private:
  void wake_at(time_point at);

  scheduler& events_;
};

class actor_scheduler final : public caf::scheduler::abstract_coordinator {
 public:
  /// What an actor did, in words: its name and number, and the type of the message that it began with.
  using trace = std::function<void(std::chrono::nanoseconds, const std::string&)>;

  actor_scheduler(caf::actor_system& system, simulation::scheduler& events, uint64_t seed,
                  actor_delays delays);
  ~actor_scheduler() override;

  /// `events` outlives the actor systems of the configuration.
  static void install(caf::actor_system_config& config, simulation::scheduler& events, uint64_t seed,
                      actor_delays delays);
  /// Precondition: the system was made from an installed configuration.
  static actor_scheduler& of(caf::actor_system& system);

  void enqueue(caf::resumable* job) override;
  caf::actor_clock& clock() noexcept override { return clock_; }
  bool detaches_utility_actors() const override { return false; }

  /// The execution unit of actors that have no home; null: the scheduler's own.
  void run_on(caf::execution_unit* unit) { unit_ = unit; }
  void set_trace(trace to) { trace_ = std::move(to); }
  uint64_t jobs_run() const { return jobs_run_; }
  /// Jobs that wait for their turn.
  size_t waiting() const { return waiting_.size(); }

 protected:
  void start() override;
  void stop() override;

 private:
  class own_unit final : public caf::execution_unit {
   public:
    explicit own_unit(actor_scheduler& of) : caf::execution_unit(&of.system()), of_(of) {}
    void exec_later(caf::resumable* job) override { of_.enqueue(job); }

   private:
    actor_scheduler& of_;
  };

  uint64_t most_of(caf::resumable* job) const;
  void run(caf::resumable* job);
  void note(caf::resumable* job);

  simulation::scheduler& events_;
  seeded_random random_;
  actor_delays delays_;
  virtual_clock clock_;
  own_unit own_unit_;
  caf::execution_unit* unit_ = nullptr;
  std::map<simulation::scheduler::event_id, caf::resumable*> waiting_;
  trace trace_;
  uint64_t jobs_run_ = 0;
};

} // namespace terrace::simulation

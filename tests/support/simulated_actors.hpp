// Actors on one thread: CAF's testing scheduler, with a simulated ring under their I/O. It uses no test
// framework: tests have actor_fixture.hpp, and the fuzzer of the verbs uses this directly.
#pragma once

#include "runtime/home.hpp"
#include "runtime/io_port.hpp"
#include "runtime/simulated_ring.hpp"

#include <caf/all.hpp>
#include <caf/scheduler/test_coordinator.hpp>

#include <chrono>
#include <cstdint>
#include <memory>

namespace terrace::test {

/// The only home of a system under the testing scheduler.
class simulated_home final : public runtime::home_unit {
 public:
  simulated_home(caf::actor_system& system, uint64_t seed) : home_unit(&system, 0), port_(0) {
    auto ring = std::make_unique<runtime::simulated_ring>(seed);
    ring_ = ring.get();
    port_.open(std::move(ring), nullptr);
  }

  void exec_later(caf::resumable* what) override {
    static_cast<caf::scheduler::abstract_coordinator&>(system().scheduler()).enqueue(what);
  }

  runtime::ring_port& port() override { return port_; }
  bool is_current() const override { return true; }
  runtime::simulated_ring& ring() { return *ring_; }

 private:
  runtime::ring_port port_;
  runtime::simulated_ring* ring_;
};

class simulated_actors {
 public:
  /// Seed 0: completions keep their order.
  explicit simulated_actors(uint64_t seed = 0)
      : sys(with_testing_policy(config)),
        sched(static_cast<caf::scheduler::test_coordinator&>(sys.scheduler())),
        unit_(std::make_unique<simulated_home>(sys, seed)), ring(unit_->ring()) {}

  // Everything is drained before the system ends, because it would wait for actors that nobody runs.
  ~simulated_actors() {
    shut_down();
    unit_.reset();
  }

  simulated_actors(const simulated_actors&) = delete;
  simulated_actors& operator=(const simulated_actors&) = delete;

  runtime::home home() { return {unit_.get(), &unit_->port(), 0}; }
  runtime::io_port& port() { return unit_->port(); }

  /// Runs actors and turns completions into messages until nothing moves. Returns the number of jobs and
  /// completions.
  size_t settle() {
    size_t total = 0;
    for (;;) {
      size_t moved = unit_->port().deliver();
      while (sched.try_run_once())
        ++moved;
      total += moved;
      if (moved == 0)
        return total;
    }
  }

  /// Runs at most `jobs` jobs, so that whatever comes next meets work in progress.
  void run_some(size_t jobs) {
    while (jobs-- > 0)
      if (!sched.try_run_once() && unit_->port().deliver() == 0)
        return;
  }

  /// Advances the ring's clock and CAF's, then settles.
  void advance(std::chrono::nanoseconds by) {
    ring.advance(by);
    sched.advance_time(caf::timespan{by.count()});
    settle();
  }

  /// Sends exit to an actor and settles.
  template <class Handle>
  void stop(const Handle& who) {
    caf::anon_send_exit(who, caf::exit_reason::user_shutdown);
    settle();
  }

  /// Ends what is in flight and runs what is queued, including what waits for a timeout. Idempotent.
  void shut_down() {
    settle();
    for (auto code = 0; code < static_cast<int>(runtime::io_code_count); ++code)
      ring.release(static_cast<runtime::io_code>(code));
    settle();
    unit_->port().close();
    sched.run();
  }

 private:
  static caf::actor_system_config& with_testing_policy(caf::actor_system_config& config) {
    config.set("scheduler.policy", caf::atom("testing"));
    config.set("logger.verbosity", caf::atom("quiet"));
    return config;
  }

 public:
  caf::actor_system_config config;
  caf::actor_system sys;
  caf::scheduler::test_coordinator& sched;

 private:
  std::unique_ptr<simulated_home> unit_;

 public:
  runtime::simulated_ring& ring;
};

} // namespace terrace::test

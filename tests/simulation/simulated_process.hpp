// The actors of one process in the simulated machine: an actor system whose scheduler is the simulation, and the one home
// at which actors do I/O, over the simulated ring.
#pragma once

#include "actor_scheduler.hpp"
#include "daemon_heap.hpp"
#include "scheduler.hpp"
#include "simulated_disk.hpp"
#include "simulated_io.hpp"

#include "runtime/home.hpp"

#include <caf/all.hpp>

#include <memory>

namespace terrace::simulation {

class simulated_process {
 public:
  /// Both outlive the process.
  simulated_process(scheduler& events, simulated_disk& disk, uint64_t seed, actor_delays delays)
      : events_(events), sys(installed(config_, events, seed, delays)), unit_(sys, events, disk, seed) {
    actors().run_on(&unit_);
  }
  /// Every actor has ended, or ends when what is in flight is cancelled.
  ~simulated_process() {
    unit_.port().close();
    while (actors().waiting() != 0 && step()) { // others may have events for ever
    }
    actors().run_on(nullptr);
  }
  simulated_process(const simulated_process&) = delete;
  simulated_process& operator=(const simulated_process&) = delete;

  actor_scheduler& actors() { return actor_scheduler::of(sys); }
  runtime::home home() { return {&unit_, &unit_.port(), 0}; }
  simulated_io& ring() { return unit_.ring(); }

  /// Advances to the next event. False: nothing is left to happen.
  bool step() {
    unit_.deliver();
    bool moved = events_.step();
    unit_.deliver();
    return moved || actors().waiting() != 0;
  }
  void settle() {
    while (step()) {
    }
  }

 private:
  class unit final : public runtime::home_unit {
   public:
    unit(caf::actor_system& system, scheduler& events, simulated_disk& disk, uint64_t seed)
        : home_unit(&system, 0), port_(0) {
      auto ring = std::make_unique<simulated_io>(events, disk, seed);
      ring_ = ring.get();
      port_.open(std::move(ring), nullptr);
    }
    void exec_later(caf::resumable* job) override { actor_scheduler::of(system()).enqueue(job); }
    runtime::ring_port& port() override { return port_; }
    bool is_current() const override { return true; }
    simulated_io& ring() { return *ring_; }
    void deliver() {
      ring_->enter();
      daemon_heap::turn turn;
      port_.deliver();
    }

   private:
    runtime::ring_port port_;
    simulated_io* ring_;
  };

  static caf::actor_system_config& installed(caf::actor_system_config& config, scheduler& events,
                                             uint64_t seed, actor_delays delays) {
    actor_scheduler::install(config, events, seed, delays);
    return config;
  }

  scheduler& events_;
  caf::actor_system_config config_;

 public:
  caf::actor_system sys;

 private:
  unit unit_;
};

} // namespace terrace::simulation

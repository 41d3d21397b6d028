// Homes. An actor that submits I/O runs on one worker for its lifetime, its home. Its jobs are queued there
// whichever thread wakes it, and its operations are submitted to that worker's ring.
//
//   caf::behavior connection(caf::stateful_actor<connection_state, homed<caf::event_based_actor>>* self, int
//   fd) {
//     auto& port = self->port();
//     ...
//   }
//   auto handle = spawn_homed(sys, pool.place(), connection, fd);
#pragma once

#include "runtime/ring_port.hpp"

#include <caf/actor_config.hpp>
#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/execution_unit.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace terrace::runtime {

/// The execution unit that queues an actor's jobs at its home, from any thread. One per worker; tests create
/// their own over CAF's testing scheduler.
class home_unit : public caf::execution_unit {
 public:
  home_unit(caf::actor_system* system, size_t worker) : caf::execution_unit(system), worker_(worker) {}

  virtual ring_port& port() = 0;

  /// Queues jobs like this unit, but one that the home's thread has woken in its turn runs next (`woken::next`).
  virtual caf::execution_unit& unit_of_next() { return *this; }

  /// True if the calling thread is the home's own thread and may use the port.
  virtual bool is_current() const = 0;

  size_t worker() const { return worker_; }

  /// The number of actors at this home, used to place the next one.
  size_t residents() const { return residents_.load(std::memory_order_relaxed); }
  void move_in() { residents_.fetch_add(1, std::memory_order_relaxed); }
  void move_out() { residents_.fetch_sub(1, std::memory_order_relaxed); }

 private:
  size_t worker_;
  std::atomic<size_t> residents_{0};
};

/// A worker as a home. Valid as long as the actor system.
struct home {
  home_unit* unit = nullptr;
  io_port* port = nullptr;
  size_t worker = 0;
};

/// The home for a spawn: its host if that is a home, the spawning actor's worker if it runs on one, else the
/// least busy worker. Null if the system has no worker with a ring (CAF's testing scheduler).
home_unit* find_home(const caf::actor_config& config, caf::actor_system& system);

/// When a homed actor runs that another actor of its worker has woken.
enum class woken : uint8_t {
  in_order, ///< behind those that were woken before it; what others send meanwhile is handled in the same turn
  next, ///< next, in the turn that woke it (job_queue.hpp). For actors of a client or a request, for which a client waits
};

/// Mixin: `Base` with a home. Its I/O is cancelled when it ends.
template <class Base, woken When = woken::in_order>
class homed : public Base {
 public:
  explicit homed(caf::actor_config& config) : Base(config), home_(find_home(config, this->home_system())) {
    if (home_ != nullptr)
      home_->move_in();
  }

  ~homed() override {
    if (home_ != nullptr)
      home_->move_out();
  }

  using Base::enqueue;

  void enqueue(caf::mailbox_element_ptr message, caf::execution_unit* unit) override {
    Base::enqueue(std::move(message), home_ != nullptr ? queue_at_home() : unit);
  }

  void launch(caf::execution_unit* unit, bool lazy, bool hide) override {
    Base::launch(home_ != nullptr ? home_ : unit, lazy, hide);
  }

  bool cleanup(caf::error&& reason, caf::execution_unit* unit) override {
    // Away from its home an actor is cleaned up only when nothing refers to it, operations included, or when
    // the workers have left.
    if (home_ != nullptr && home_->is_current())
      home_->port().cancel_all(this->ctrl());
    return Base::cleanup(std::move(reason), unit);
  }

  /// The ring of this actor's home. Precondition: it has one.
  io_port& port() { return home_->port(); }

  home where() {
    return {home_, home_ != nullptr ? &home_->port() : nullptr, home_ != nullptr ? home_->worker() : 0};
  }

 private:
  caf::execution_unit* queue_at_home() {
    if constexpr (When == woken::next)
      return &home_->unit_of_next();
    else
      return home_;
  }

  home_unit* home_;
};

using homed_actor = homed<caf::event_based_actor>;

/// Spawns a function-based actor at a home: `fun` takes a pointer to the actor, then `xs`.
template <caf::spawn_options Os = caf::no_spawn_options, class F, class... Ts>
auto spawn_homed(caf::actor_system& system, const home& at, F fun, Ts&&... xs) {
  caf::actor_config config{at.unit};
  return system.spawn_functor<Os>(std::true_type{}, config, fun, std::forward<Ts>(xs)...);
}

} // namespace terrace::runtime

// The runtime's interface for the daemon.
//
//   caf::actor_system_config config;
//   workers::install(config, options);          // before the actor system is made
//   caf::actor_system system{config};
//   workers pool{system};
//   if (auto started = pool.wait_started(); !started) ...
//   spawn_homed(system, pool.place(), connection, std::move(fd));
#pragma once

#include "base/error.hpp"
#include "runtime/home.hpp"
#include "runtime/runtime_options.hpp"
#include "runtime/turn_times.hpp"

#include <caf/fwd.hpp>

namespace terrace::runtime {

class worker_pool;

/// A view of an actor system's workers; cheap to copy, valid as long as the system. Safe on any thread.
class workers {
 public:
  /// Makes the actor systems of this configuration use the scheduler of the runtime. The options must be
  /// valid.
  static void install(caf::actor_system_config& config, const runtime_options& options);

  /// Precondition: `system` was created from an installed configuration.
  explicit workers(caf::actor_system& system);

  /// Waits until every worker has its ring; returns the first failure otherwise.
  result<void> wait_started();

  size_t size() const;    ///< with the transfer workers, which are the last ones
  size_t serving() const; ///< without them

  /// Returns the home for a new actor that does I/O: the least busy worker.
  home place();
  /// The same for one that moves bytes to other machines: a transfer worker, if there are any.
  home place_transfers();
  home at(size_t worker);

  /// Cancels an operation from any thread: posts a job to its ring's worker.
  void cancel(operation_id id);

  const worker_counters& counters(size_t worker) const;
  const turn_times& turns(size_t worker) const;
  bool asleep(size_t worker) const;

  /// Features of the first worker's ring; all rings have the same. Call after `wait_started`.
  ring_features features() const;

 private:
  worker_pool* pool_;
};

} // namespace terrace::runtime

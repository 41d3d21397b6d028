// The supervisor's state, and the actor for its parts: adding disks (the end of this file) and
// shutdown (shutdown.cpp). Private to it.
#pragma once

#include "actors/supervision/preparer_actor.hpp"
#include "actors/supervision/supervisor_actor.hpp"
#include "runtime/io_port.hpp"

#include <caf/stateful_actor.hpp>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>

namespace terrace {

// The order of shutdown: listeners, connections, tiers below the first, then all other actors; each when
// nothing is left of the one before.
//
// Pure: the supervisor ends actors and reports when they have ended. Used by one thread at a time.

class shutdown_order {
 public:
  enum class phase : uint8_t {
    serving,
    closing_listeners, ///< nobody connects any more, so all connections are known
    draining,          ///< connections answer what is in flight, and end
    settling,          ///< tiers below the first write what is pending
    ending,            ///< all other actors end
    ended,
  };
  phase now() const { return now_; }
  bool serving() const { return now_ == phase::serving; }

  /// Begins with the listeners. Returns false if the shutdown has begun already.
  bool begin() {
    if (!serving())
      return false;
    now_ = phase::closing_listeners;
    return true;
  }

  /// The present phase waits for one more actor.
  void await() { ++awaited_; }
  /// Something that `in` waits for has ended, or written what it had. No effect once that phase is over.
  void arrived(phase in) {
    if (in != now_)
      return;
    assert(awaited_ != 0);
    --awaited_;
  }
  /// The time for this phase is up: it waits no longer. Returns false if it is over or has not begun.
  bool cut_short(phase which) {
    if (which != now_)
      return false;
    awaited_ = 0;
    return true;
  }

  /// Begins and returns the next phase; nullopt if the present one still waits, or if there is none.
  std::optional<phase> next() {
    if (serving() || now_ == phase::ended || awaited_ != 0)
      return std::nullopt;
    now_ = static_cast<phase>(static_cast<uint8_t>(now_) + 1);
    return now_;
  }

 private:
  phase now_ = phase::serving;
  size_t awaited_ = 0;
};

} // namespace terrace

namespace terrace::actors {

/// Tags of the two timers: the first waits for the connections, the second for the disks.
constexpr uint64_t drain_tag = 1;
constexpr uint64_t settle_tag = 2;
/// Tags of the polls for the locks of disks; the group is added.
constexpr uint64_t lock_tag = 1ULL << 32;

struct supervisor_state {
  const char* name = "supervisor";
  supervisor_arguments with;
  std::vector<std::shared_ptr<trust_group>> groups;
  std::vector<bool> memory_ready;
  std::shared_ptr<copier_pool> copiers;
  std::shared_ptr<shared_devices> devices = std::make_shared<shared_devices>();
  std::vector<preparer_actor> preparers;
  std::vector<memory_actor> memories; ///< parallel to the groups
  std::vector<listener_actor> listeners;
  metrics_actor metrics;
  gpu_registry_actor device_processes; ///< null in tests without any

  shutdown_order order;
  std::set<caf::actor_addr> awaited; ///< actors whose end the present phase waits for
  std::map<size_t, unique_fd> locks; ///< locks of groups whose disk another process has open
  bool clean = true;
};

using supervisor_interface = supervisor_actor::extend<caf::reacts_to<runtime::io_done>>;
using supervisor_pointer = caf::stateful_actor<supervisor_state, runtime::homed<supervisor_interface::base>>*;

// Adding a group's disk while the daemon serves: a preparer opens its files, their locks are waited for, and
// its actors are spawned. Part of the supervisor; runs on its thread.

/// Starts opening the group's disk, if it has one.
void prepare_disk(supervisor_pointer self, size_t group);

/// Handles the result: the disk is added, waits for its lock, or is off.
void on_disk_prepared(supervisor_pointer self, const disk_prepared& report);

/// Called when the poll for the lock of a group's disk has ended.
void on_lock_free(supervisor_pointer self, size_t group, int32_t result);

/// Registers memory with the disk's ring once both are available.
void register_with_movers(supervisor_pointer self, size_t group);

// The order of shutdown: listeners, connections, pending disk writes, then all others, each when the previous
// ones have ended. Part of the supervisor; runs on its thread.

/// Begins the shutdown, once.
void on_drain(supervisor_pointer self);

/// One of the two timers has fired.
void on_grace_over(supervisor_pointer self, uint64_t tag);

/// Called for all monitored actors: the end is expected in the present phase, or is a bug that starts the
/// shutdown.
void on_actor_down(supervisor_pointer self, const caf::down_msg& down);

} // namespace terrace::actors

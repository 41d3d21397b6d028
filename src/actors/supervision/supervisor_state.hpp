// The supervisor's state, and the actor for its parts: adding disks (disk_attach.hpp) and shutdown
// (shutdown.hpp). Private to it.
#pragma once

#include "actors/supervision/preparer_actor.hpp"
#include "actors/supervision/shutdown_course.hpp"
#include "actors/supervision/supervisor_actor.hpp"
#include "runtime/io_messages.hpp"

#include <caf/stateful_actor.hpp>

#include <map>
#include <set>

namespace terrace::actors {

/// Tags of the two timers: the first waits for the connections, the second for the disks.
constexpr uint64_t drain_tag = 1;
constexpr uint64_t settle_tag = 2;
/// Tags of the polls for the locks of disks; the group is added.
constexpr uint64_t lock_tag = 1ULL << 32;

struct supervisor_state {
  const char* name = "supervisor";
  supervisor_arguments with;
  std::vector<std::shared_ptr<group_parts>> groups;
  std::vector<bool> memory_ready;
  std::shared_ptr<copier_pool> copiers;
  std::shared_ptr<connected_clients> clients = std::make_shared<connected_clients>();
  std::shared_ptr<shared_devices> devices = std::make_shared<shared_devices>();
  std::vector<preparer_actor> preparers;
  std::vector<memory_actor> memories; ///< parallel to the groups
  std::vector<listener_actor> listeners;
  metrics_actor metrics;
  devices_actor device_processes; ///< null in tests on one thread

  shutdown_course course;
  std::set<caf::actor_addr> awaited; ///< actors whose end the present phase waits for
  std::map<size_t, unique_fd> locks; ///< locks of groups whose disk another process has open
  bool clean = true;
};

using supervisor_interface = supervisor_actor::extend<caf::reacts_to<runtime::io_done>>;
using supervisor_pointer = caf::stateful_actor<supervisor_state, runtime::homed<supervisor_interface::base>>*;

} // namespace terrace::actors

// SUPERVISOR: wires the actors of all trust groups, adds disks when they are ready, and shuts everything down
// in order. It alone decides what the death of a long-lived actor means: a bug, so the daemon drains and
// ends, and the service manager restarts it. The end of a client is handled by its connection.
#pragma once

#include "actors/connection/listener_actor.hpp"
#include "actors/gpu/daemon/devices_actor.hpp"
#include "actors/supervision/group_builder.hpp"
#include "metrics/exposition.hpp"

#include <chrono>
#include <optional>

namespace terrace::actors {

/// Of a socket for Redis clients.
struct door_plan {
  std::string password; ///< empty: none
  uint64_t value_bytes_max = 512ULL << 20;
};

struct listen_plan {
  std::string path; ///< or the address
  size_t group = 0; ///< index in `groups`
  std::shared_ptr<unique_fd> socket;
  std::function<bool(uid_t, gid_t)> admits;
  std::optional<door_plan> door;
};

struct supervisor_arguments {
  std::function<runtime::home()> place; ///< of the next actor that does I/O; safe on any thread
  uint32_t workers = 1;                 ///< for status
  std::vector<group_plan> groups;
  std::vector<group_probes> probes;       ///< parallel to `groups`
  std::vector<region_budget_ptr> regions; ///< of the groups' clients, parallel to `groups`; empty: no bounds
  std::vector<listen_plan> listens;
  teardown_ptr teardown;                       ///< for clients' memory; of segments: in the plans
  teardown_ptr lease_ends;                     ///< the same as in the plans
  std::shared_ptr<region_populator> populator; ///< of clients' memory; null: nothing is mapped ahead
  /// The same in all plans. The daemon changes it on a reload.
  std::shared_ptr<std::atomic<bool>> cost_model = std::make_shared<std::atomic<bool>>(true);
  connection_limits limits;
  uint32_t copiers = 1;
  uint64_t copy_piece_bytes = 8ULL << 20;
  int copier_nice = 0;
  uint32_t copier_slice_us = 0; ///< see copier_arguments
  std::shared_ptr<metrics::copier_probe> copier_probe = std::make_shared<metrics::copier_probe>();
  devices_arguments devices;         ///< its place, copiers and log are the supervisor's
  uint64_t prefault_piece_bytes = 0; ///< 0: no prefault
  boot_id boot;
  std::vector<std::string> ring_features;
  std::chrono::milliseconds shutdown_grace{10000};
  std::shared_ptr<metrics::space_table> spaces;
  std::unique_ptr<metrics::exposition> exposition; ///< null: no metrics
  bool detached = true; ///< false in tests that run blocking work on the same thread

  // Called on any thread.
  std::function<void(const std::string&)> log;
  detail_log detail;
  std::function<result<std::string>(const std::string& level)> set_log_level; ///< of client_environment.hpp
  std::function<void()> shut_down;                                            ///< of client_environment.hpp
  std::function<void(const std::string&)> warn;
  // Called on the supervisor's thread.
  std::function<void(const error&)> ready; ///< once: every socket accepts clients, or why not
  std::function<void(bool clean)>
      finished; ///< once: everything has ended; `clean` is false after an actor's death
};

/// Begins at once, at a home that `place` gives.
supervisor_actor spawn_supervisor(caf::actor_system& system, supervisor_arguments arguments);

} // namespace terrace::actors

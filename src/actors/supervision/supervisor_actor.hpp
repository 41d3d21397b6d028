// SUPERVISOR: wires the actors of all trust groups, adds disks when they are ready, and shuts everything down
// in order. Only the supervisor decides what the death of a long-lived actor means: a bug, so the daemon
// drains and ends, and the service manager restarts it. A client's connection handles the end of the client.
#pragma once

#include "actors/connection/listener_actor.hpp"
#include "actors/gpu/daemon/device_actor.hpp"
#include "actors/supervision/group_builder.hpp"
#include "metrics/exposition.hpp"
#include "metrics/worker_probe.hpp"

#include <chrono>
#include <optional>

namespace terrace::actors {

/// A socket for Redis clients.
struct redis_plan {
  std::string password; ///< empty: no password
};

struct listen_plan {
  std::string path; ///< path or address
  size_t group = 0; ///< index in `groups`
  std::shared_ptr<unique_fd> socket;
  std::function<bool(uid_t, gid_t)> admits;
  std::optional<redis_plan> redis;
};

struct supervisor_arguments {
  /// Returns the home of the next actor that does I/O; safe on any thread.
  std::function<runtime::home()> place;
  std::function<runtime::home()> place_transfers; ///< the same for one that moves bytes to other machines
  uint32_t workers = 1;                           ///< shown in status
  std::vector<group_plan> groups;
  std::vector<group_probes> probes; ///< parallel to `groups`
  /// Budgets for the groups' clients, parallel to `groups`; empty: no bounds.
  std::vector<region_budget_ptr> regions;
  std::vector<listen_plan> listens;
  std::shared_ptr<connected_clients> clients = std::make_shared<connected_clients>(); ///< of all groups
  /// Releases clients' memory; the plans have the one for segments.
  teardown_ptr teardown;
  teardown_ptr lease_ends;                     ///< also in the plans
  std::shared_ptr<region_populator> populator; ///< maps clients' memory; null: nothing is mapped in advance
  /// Shared with all plans. The daemon changes it on a reload.
  std::shared_ptr<std::atomic<bool>> cost_model = std::make_shared<std::atomic<bool>>(true);
  connection_limits limits;
  uint32_t copiers = 1;
  uint64_t copy_piece_bytes = 8ULL << 20;
  int copier_nice = 0;
  uint32_t copier_slice_us = 0; ///< see copier_arguments
  std::shared_ptr<metrics::copier_probe> copier_probe = std::make_shared<metrics::copier_probe>();
  devices_arguments devices;         ///< its place, copiers and log are the supervisor's
  bool starts_processes = true;      ///< of devices; false in tests without any
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
  std::function<result<std::string>(const std::string& level)> set_log_level; ///< see client_environment.hpp
  std::function<void()> shut_down;                                            ///< see client_environment.hpp
  std::function<void(const std::string&)> warn;
  // Called on the supervisor's thread.
  std::function<void(const error&)> ready; ///< called once: every socket accepts clients, or why not
  std::function<void(bool clean)>
      finished; ///< called once, when everything has ended; `clean` is false after an actor's death
};

/// Spawns the supervisor, which begins at once, at a home that `place` returns.
supervisor_actor spawn_supervisor(caf::actor_system& system, supervisor_arguments arguments);

} // namespace terrace::actors

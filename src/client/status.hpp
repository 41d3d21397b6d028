// The state of a daemon, as returned by `admin::status`. Counters start with the daemon.
#pragma once

#include "base/ids.hpp"
#include "client/types.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace terrace::client {

// Quotas of tenants, as returned by `admin::quotas` and in `group_status`.

struct tenant_tier {
  std::string tier; ///< "host", "disk"
  uint64_t used_bytes = 0;
  std::optional<uint64_t> max_bytes; ///< absent: no bound
  uint64_t guaranteed_bytes = 0;
  uint64_t waiting_requests = 0; ///< requests that wait because the tenant is at its bound
  uint64_t refused = 0;          ///< requests refused since the daemon started
};

struct tenant_status {
  std::string name;    ///< name of the quota; a salt is never shown
  uint32_t number = 0; ///< number of a tenant by rule, from 1; 0: a listed tenant, or a rule
  bool rule = false;   ///< the entry is a rule: its bytes are those of all its tenants
  std::vector<tenant_tier> tiers;
};

/// An amount in bytes, or in percent of the tier.
struct quota_amount {
  uint64_t value = 0;
  bool percent = false;
};

struct quota_change {
  std::string name; ///< name of the quota
  std::string tier; ///< "host" or "disk"
  std::optional<quota_amount> max;
  std::optional<quota_amount> guaranteed;
  bool unlimited = false; ///< removes the upper bound; do not set `max` as well
};

struct tier_status {
  std::string tier;   ///< "host", "disk", ...
  std::string state;  ///< "ready", "starting", "degraded"
  std::string reason; ///< why it is not ready
  uint64_t capacity_bytes = 0;
  uint64_t used_bytes = 0;
  uint64_t free_bytes = 0;
  uint64_t largest_free_run = 0;
  uint64_t objects = 0;
  uint64_t leased_objects = 0;
  uint64_t waiting_requests = 0;
  uint64_t hits = 0;
  uint64_t misses = 0;
  uint64_t evictions = 0;
  uint64_t bytes_read = 0;
  uint64_t bytes_written = 0;
  uint64_t errors = 0;
  std::string allocator;
  std::string policy;
  uint64_t free_runs = 0;
  double fragmentation = 0; ///< fraction of the free bytes that not even the smallest object can use, 0 to 1
  uint64_t huge_page_bytes = 0;  ///< host memory: part of its capacity
  uint64_t leaving_bytes = 0;    ///< host memory: in segments being removed that leases or clients still use
  std::string notice;            ///< information for an operator although the tier is ready
  uint64_t read_bytes_per_s = 0; ///< measured; 0: nothing was read yet, or nobody measures it
  uint64_t hit_tokens = 0;       ///< of these prefixes, found here
};

struct space_tier {
  std::string tier;
  uint64_t objects = 0;
  uint64_t bytes = 0;
};

/// The fields of a space are empty, and the numbers 0, if nobody has opened it since the daemon started.
struct space_status {
  uint32_t space = 0;
  std::string model;
  digest fingerprint;
  std::vector<open_pool> pools;
  std::string revision;
  std::string dtype;
  std::string layout;
  uint32_t chunk_tokens = 0;
  uint32_t world_size = 0;
  std::string tenant; ///< name of the quota that its salt belongs to
  bool salted = false;
  std::vector<space_tier> tiers; ///< what its objects have
};

struct group_status {
  std::string name;
  std::string path;
  bool isolated = false;
  uint32_t spaces = 0;
  uint32_t leases = 0;
  uint64_t region_bytes = 0; ///< regions of all connections of the group, until they are unmapped
  uint64_t region_bytes_max = 0;
  uint64_t sessions = 0;
  uint64_t session_bytes = 0; ///< memory of the sessions, counted as if nothing were shared
  std::vector<tier_status> tiers;
  std::vector<space_status> open_spaces; ///< the first 64
  std::vector<space_status> idle_spaces; ///< the first 64 that no client has open
  uint64_t asked_tokens = 0;             ///< of prefixes that were looked up or loaded
  /// Of clients that declare their speed: the time in which they would have computed what their loads delivered, and the time
  /// that these loads took.
  std::chrono::milliseconds computing_saved{}, saved_load{};
  std::vector<tenant_status> tenants; ///< tenants with quotas first
};

struct client_status {
  connection_id connection{};
  std::string name;
  int32_t pid = 0;
  uint32_t uid = 0;
  std::string group;
  std::string state;
  uint32_t requests_in_flight = 0;
  uint32_t regions = 0;
  uint64_t region_bytes = 0;
  uint32_t leases = 0;
  uint32_t reservations = 0;
  uint64_t requests = 0;
  std::chrono::milliseconds age{}; ///< time since it connected
  uint64_t leased_bytes = 0;       ///< host memory that its leases and readings hold
  /// The part that it may be reading although the lease or connection has ended.
  uint64_t quarantined_bytes = 0;
  uint64_t answered = 0;               ///< requests
  std::chrono::microseconds latency{}; ///< sum over all answered requests
};

/// A device in which clients have registered memory since the daemon started.
struct device_status {
  std::string device;      ///< its UUID, or "host"
  std::string state;       ///< "idle", "starting", "ready", "degraded"
  std::string reason;      ///< why it is degraded
  std::string description; ///< the driver, and the device's capabilities
  int32_t pid = 0;         ///< process id of its process; 0: there is none
  uint32_t regions = 0;
  uint64_t region_bytes = 0;
  uint64_t loaded_bytes = 0;
  uint64_t stored_bytes = 0;
  uint64_t starts = 0; ///< starts of its process
  uint64_t failures = 0;
  uint64_t pinned_bytes = 0; ///< host memory that it reads itself
  uint64_t direct_bytes = 0; ///< bytes that it has read from there
  uint64_t staged_bytes = 0; ///< bytes that have passed through staging memory, either way
  uint64_t disk_bytes = 0;   ///< bytes that it has read from disks itself
  std::string
      disk_reads; ///< whether it reads disks: "yes", "no: " and why, "not all: " and why, "not tried",
                  ///< "opening", "off"
};

struct daemon_status {
  std::string version;
  boot_id boot;
  std::chrono::milliseconds uptime{};
  uint32_t workers = 0;
  std::vector<std::string> ring; ///< features granted by the kernel
  std::vector<group_status> groups;
  std::vector<client_status> clients;
  std::vector<device_status> devices;
};

// Eviction policies of a trust group, as returned by `admin::policies`. Counters start with the daemon.

struct tier_policy {
  std::string tier; ///< "host", "disk"
  std::string policy;
  uint64_t objects = 0; ///< resident objects
};

/// The hits that a tier with this capacity and policy would have had if the clients had stored everything it
/// missed.
struct shadow_policy {
  std::string policy;
  uint64_t capacity_bytes = 0;
  uint64_t used_bytes = 0;
  uint64_t objects = 0;
  uint64_t bookkeeping_bytes = 0;
  uint64_t requests = 0;
  uint64_t asked = 0; ///< objects in all requests
  uint64_t hits = 0;
  uint64_t asked_bytes = 0;
  uint64_t hit_bytes = 0;
  uint64_t evictions = 0;
};

struct policies_status {
  std::string group;
  std::vector<tier_policy> tiers;
  uint64_t tracked = 0;           ///< objects tracked by the policies
  uint64_t ghosts = 0;            ///< tracked objects that are resident in no tier
  uint64_t bookkeeping_bytes = 0; ///< memory that all policies use
  std::vector<shadow_policy> shadows;
  uint64_t skipped_requests = 0; ///< requests that were skipped because the shadows were busy
  std::vector<std::string> known;
};

} // namespace terrace::client

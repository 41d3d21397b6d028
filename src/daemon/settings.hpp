// The daemon's settings: one options struct per component, with the default and unit of each option.
//
//   auto parsed = parse_settings(text, "terraced.toml");       // settings_toml.hpp
//   if (parsed) start(*parsed); else std::cerr << render_problems(parsed.error());
//
// A `settings` returned by `parse_settings`, or for which `validate()` reports no problem, needs no further
// checks. Plain values: copy them, compare them, pass each component its own struct.
#pragma once

#include "index/tenant_quota.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace terrace {

constexpr uint64_t kibibyte = 1ULL << 10;
constexpr uint64_t mebibyte = 1ULL << 20;
constexpr uint64_t gibibyte = 1ULL << 30;
constexpr uint64_t tebibyte = 1ULL << 40;
constexpr uint64_t huge_page_bytes = 2 * mebibyte;

/// A problem with one option. `option` is its name in the file, such as `host.bytes`, or `listen[1].path` for
/// the second [[listen]] (counted from 0).
struct option_problem {
  std::string option;
  std::string wrong;
  std::string expected;
  std::string fix;
  friend bool operator==(const option_problem&, const option_problem&) = default;
};

/// [daemon]
struct daemon_options {
  uint32_t workers = 0; ///< actor threads; 0: 1 on up to 4 processors, else a quarter of them, at most 4
  uint32_t worker_slice_us = 100; ///< kernel scheduler slice of the workers; 0: the kernel's default
  uint32_t busy_poll = 0;         ///< microseconds that a worker without work looks for some before it sleeps
  static constexpr std::array<std::string_view, 5> log_levels{"trace", "debug", "info", "warning", "error"};
  std::string log_level = "info";
  bool log_json = false; ///< one JSON object per line instead of text
  std::chrono::milliseconds shutdown_grace{
      10000}; ///< after SIGTERM: how long transfers in flight may still finish
  std::vector<option_problem> validate() const;
  friend bool operator==(const daemon_options&, const daemon_options&) = default;
};

/// [[listen]]: one listening socket. Sockets with the same group belong to one trust group.
struct listen_options {
  std::string path;              ///< absolute; `parse_settings` and `default_settings` fill it in
  std::string group = "default"; ///< 1 to 64 of a-z, 0-9, '-' and '_'
  uint32_t mode = 0600;          ///< permissions of the socket file
  std::vector<uint32_t> uids;    ///< users that may connect; both empty: the daemon's own user and root
  std::vector<uint32_t> gids;    ///< primary groups whose users may connect
  bool isolated = false;         ///< map nothing into clients; the daemon copies
  bool write_in_place = false;   ///< refused in this version
  std::optional<uint64_t>
      host_bytes; ///< the group's share of host.bytes; absent: an equal part of what is left
  std::optional<uint64_t>
      disk_bytes; ///< the group's share of disk.bytes; absent: an equal part of what is left

  /// True if a peer with these credentials may connect; `own_uid` is the daemon's.
  bool admits(uint32_t uid, uint32_t gid, uint32_t own_uid) const;

  std::vector<option_problem> validate() const;
  friend bool operator==(const listen_options&, const listen_options&) = default;
};

/// [[resp]]: a door for Redis clients. There is none by default.
struct door_options {
  std::string path;              ///< of a Unix socket, absolute; empty: `address`
  std::string address;           ///< loopback only; port 0: any free port; empty: `path`
  std::string group = "default"; ///< of a [[listen]]
  uint32_t mode = 0600;          ///< permissions of the socket file
  std::vector<uint32_t> uids;    ///< users that may connect to `path`, as in [[listen]]
  std::vector<uint32_t> gids;
  std::string password_file; ///< its first line is the password; empty: none is needed
  uint64_t value_bytes_max = 512 * mebibyte;

  std::vector<option_problem> validate() const; ///< `option` begins with "resp."
  friend bool operator==(const door_options&, const door_options&) = default;
};

/// [connection]: limits per client, and on the number of clients.
struct connection_options {
  uint32_t credit_requests = 256;        ///< requests in flight before the daemon stops reading
  uint64_t credit_bytes = 32 * mebibyte; ///< bytes of frames in flight before the daemon stops reading
  uint64_t staging_bytes =
      256 * mebibyte;                   ///< memory for reserved, not yet committed objects of one connection
  uint32_t reservations_max = 4096;     ///< reservations, not yet committed, per connection
  uint32_t spaces_max = 4096;           ///< open spaces per connection
  uint32_t group_spaces_max = 65536;    ///< spaces per trust group that are open or have objects
  uint32_t regions_max = 64;            ///< registered regions per connection
  uint64_t region_bytes = 2 * tebibyte; ///< of all regions of a connection
  uint64_t region_bytes_group = 8 * tebibyte;        ///< of all connections of a trust group
  uint64_t region_bytes_total = 32 * tebibyte;       ///< of the whole daemon
  uint32_t leases_max = 65536;                       ///< leases per connection
  uint32_t lease_objects_max = 4'194'304;            ///< objects in all leases of a connection
  uint32_t sessions_max = 32768;                     ///< sessions that a connection owns
  uint64_t session_bytes = 64 * mebibyte;            ///< of what these know of their prompts
  uint32_t sessions_group_max = 131072;              ///< sessions of a trust group
  uint64_t session_bytes_group = 256 * mebibyte;     ///< of what these know of their prompts
  uint32_t prompts_max = 256;                        ///< prompts of a trust group whose last logits are kept
  uint64_t prompt_bytes = 256 * mebibyte;            ///< of these logits
  uint64_t memo_bytes = 64 * mebibyte;               ///< of a trust group, for tokens it has hashed; 0: none
  uint64_t group_bytes = 1 * gibibyte;               ///< memory of the requests of all connections of a group
  uint32_t connections_max = 1024;                   ///< of the whole daemon
  std::chrono::milliseconds request_deadline{30000}; ///< of requests without their own deadline
  std::chrono::milliseconds request_deadline_max{600000}; ///< a later deadline is this one
  std::chrono::milliseconds handshake_deadline{10000};    ///< between connecting and hello
  std::vector<option_problem> validate() const;
  friend bool operator==(const connection_options&, const connection_options&) = default;
};

/// [host]: the host memory tier of all groups together.
struct host_options {
  uint64_t bytes = 1 * gibibyte;         ///< capacity of all host arenas, never exceeded
  uint64_t segment_bytes = 1 * gibibyte; ///< size of the memfds of an arena, at most 1 GiB
  std::string allocator = "size_class";
  uint64_t slot_bytes = 0; ///< allocator = "paged" only: the size of every slot
  uint64_t small_max_bytes =
      64 * kibibyte;          ///< allocator = "mixed" only: the largest extent that counts as small
  uint32_t small_percent = 5; ///< allocator = "mixed" only: the share of the arena kept for small ones
  std::string policy = "kmg";
  uint32_t low_watermark_percent = 0; ///< share kept free by evicting ahead; 0: evict on demand only
  bool huge_pages = false;            ///< memfds of 2 MiB pages
  std::string numa_node = "any";      ///< NUMA node of all memory, or "any"
  bool prefault = true;               ///< touch the arena at start, so that pages are charged to the daemon
  uint64_t prefault_piece_bytes = 64 * mebibyte; ///< touched per step; requests are answered between steps
  uint32_t allocation_queue = 4096;              ///< requests per group that may wait for space
  bool staging_only = false; ///< nothing stays in host memory that is not held; needs a disk

  uint64_t low_watermark_bytes(uint64_t capacity) const { return capacity / 100 * low_watermark_percent; }

  std::vector<option_problem> validate() const;
  friend bool operator==(const host_options&, const host_options&) = default;
};

/// [disk]: the disk tier of all groups together.
struct disk_options {
  /// Values of `admission`, in the order of `admission_rule` (policy/eviction_tracker.hpp).
  static constexpr std::array<std::string_view, 3> admissions{"always", "seen_twice", "beats_victim"};

  /// Values of `on_mismatch`, in the order of `mismatch_rule` (storage/path_set.hpp).
  static constexpr std::array<std::string_view, 3> mismatches{"refuse", "adapt", "wipe"};

  bool enabled = true;
  std::string path;               ///< a directory, absolute; set by `default_settings`
  std::vector<std::string> paths; ///< directories instead of `path`, one per device
  uint64_t bytes = 4 * gibibyte;  ///< capacity of all extent files, preallocated
  std::string allocator = "size_class";
  uint64_t slot_bytes = 0;                  ///< allocator = "paged" only
  uint64_t small_max_bytes = 64 * kibibyte; ///< allocator = "mixed" only
  uint32_t small_percent = 5;               ///< allocator = "mixed" only
  std::string policy = "kmg";
  uint32_t low_watermark_percent = 0;
  uint32_t depth = 32;                       ///< reads and writes in flight
  uint64_t bytes_in_flight = 256 * mebibyte; ///< bytes of them; a single larger object is transferred alone
  uint64_t write_bytes_in_flight = 64 * mebibyte; ///< of writes, while there are no reads
  uint32_t write_share_percent =
      20; ///< writes during reads, in percent of the bytes of the reads; at least one of 1 MiB
  uint64_t index_object_bytes = 48 * kibibyte; ///< of an object: the index of a new file has room for as many
  std::string on_mismatch = "refuse";     ///< for files that are not the expected volume: refuse, adapt, wipe
  std::string admission = "beats_victim"; ///< what is written: always, seen_twice, beats_victim
  uint64_t write_bytes_per_day = 0;       ///< 0: no limit
  std::chrono::milliseconds stall_after{
      10'000};            ///< an operation that takes longer takes its path out of service
  bool cost_model = true; ///< leave to clients what they compute faster than it is read, if they say how fast
  std::string demotion =
      "write_through"; ///< when host memory's objects are written: write_through, write_back, selective, off
  uint32_t allocation_queue = 4096;

  /// The directories of the files: `paths`, or `path` alone.
  std::vector<std::string> directories() const { return paths.empty() ? std::vector{path} : paths; }

  uint64_t low_watermark_bytes(uint64_t capacity) const { return capacity / 100 * low_watermark_percent; }

  std::vector<option_problem> validate() const;
  friend bool operator==(const disk_options&, const disk_options&) = default;
};

/// [policy]: options of the eviction policies of all tiers.
struct policy_options {
  /// Values of `clock`, in the order of `clock_source` (tier/policy/policy_clock.hpp).
  static constexpr std::array<std::string_view, 2> clocks{"steady", "told"};

  std::string clock = "steady"; ///< the clock that measures ages
  std::vector<option_problem> validate() const;
  friend bool operator==(const policy_options&, const policy_options&) = default;
};

/// [shadow]: measures what other policies and capacities would have hit on live requests, with metadata only.
struct shadow_options {
  std::vector<std::string> policies; ///< names; none: no shadow policies
  std::vector<uint32_t> capacity_percents = {
      100}; ///< of the group's host memory; each policy has all of them
  std::vector<option_problem> validate() const;
  friend bool operator==(const shadow_options&, const shadow_options&) = default;
};

/// [copier]: the threads that copy for isolated groups and into regions.
struct copier_options {
  uint32_t threads = 0;                ///< 0: one per two processors, 2 to 8
  uint64_t piece_bytes = 8 * mebibyte; ///< bytes copied between checks for cancellation
  uint32_t nice = 10;                  ///< of these threads: what they do waits for nobody's processor
  std::vector<option_problem> validate() const;
  friend bool operator==(const copier_options&, const copier_options&) = default;
};

/// [gpu]: memory of GPUs, which clients register. A process per GPU has all of CUDA.
struct gpu_options {
  bool enabled = true;
  uint64_t staging_bytes = 64 * mebibyte;     ///< between arenas and the GPU, pinned by each GPU's process
  std::chrono::milliseconds deadline{30'000}; ///< of each answer of such a process; later ones end it
  static constexpr std::array<std::string_view, 3> mapped_arenas{"shared", "all", "off"};
  std::string map_arenas = "shared"; ///< of which trust groups: those that are not isolated, all, none
  bool maps_arena(bool isolated) const {
    return map_arenas == "all" || (map_arenas == "shared" && !isolated);
  }
  static constexpr std::array<std::string_view, 2> direct_disks{"auto", "off"};
  std::string direct_disk = "off"; ///< whether GPUs read disks of groups that are not isolated themselves
  uint64_t direct_bytes = 160 * mebibyte; ///< of each GPU, into which they do
  bool reads_disk(bool isolated) const { return enabled && direct_disk == "auto" && !isolated; }
  uint64_t tier_bytes = 0; ///< of each trust group's tier in memory of a GPU; 0: there is none
  std::string tier_device; ///< of that tier: the UUID of a GPU, or "host"
  bool tier_peers = true;  ///< loads into other GPUs read it where the driver lets them
  std::string tier_allocator = "size_class";
  uint64_t tier_slot_bytes = 0; ///< of "paged"
  std::string tier_policy = "kmg";
  /// Values of `tier_demotion`. What comes into the tier is in host memory then, so there is no write_through.
  static constexpr std::array<std::string_view, 3> demotions{"write_back", "selective", "off"};
  std::string tier_demotion = "write_back"; ///< when host memory gets what no tier below has
  std::vector<option_problem> validate() const;
  friend bool operator==(const gpu_options&, const gpu_options&) = default;
};

/// [lease]
struct lease_options {
  std::chrono::milliseconds warn_after{
      60000};                       ///< a lease held longer is reported once in the log and in metrics
  uint32_t host_percent = 75;       ///< the share of host memory that leases and their readers may hold
  uint32_t connection_percent = 75; ///< the share of what others leave free of it that a connection may hold
  uint32_t disk_percent = 75;       ///< the share of a disk that leases may hold
  uint32_t pin_percent = 25;        ///< the bytes that pins may hold in all tiers, as a share of host memory
  uint32_t session_percent = 25;    ///< the share of host memory that held sessions may hold
  std::vector<option_problem> validate() const;
  friend bool operator==(const lease_options&, const lease_options&) = default;
};

/// [metrics]
struct metrics_options {
  bool enabled = true;
  std::string address = "127.0.0.1:9464"; ///< loopback only; port 0: any free port
  uint32_t spaces_max = 32;               ///< spaces with their own series; all others are counted as `other`
  std::vector<option_problem> validate() const;
  friend bool operator==(const metrics_options&, const metrics_options&) = default;
};

/// [[quota]]: what a tenant, or each tenant of a rule, may have. Sizes are texts, "2GiB" or "25%"; empty: none.
struct quota_options {
  std::string name;   ///< shown instead of the salt
  std::string tenant; ///< a salt; a secret
  std::string rule;   ///< the beginning of salts, and a *
  std::string group;  ///< empty: every trust group
  std::string host_max;
  std::string host_guaranteed;
  std::string disk_max;
  std::string disk_guaranteed;

  /// The keys of a table, in the order of their documentation, and where their values go.
  struct key {
    std::string_view name;
    std::string quota_options::*value;
    bool size = false; ///< bytes may also be a number
  };
  static const std::array<key, 8>& keys();

  tenant_quota parsed() const;
  friend bool operator==(const quota_options&, const quota_options&) = default;
};

/// One trust group, combined from its sockets, with its shares computed.
struct group_options {
  std::string name;
  bool isolated = false;
  bool write_in_place = false;
  uint64_t host_bytes = 0; ///< a multiple of 4 KiB, of 2 MiB with huge pages
  uint64_t disk_bytes = 0; ///< a multiple of 4 KiB; 0 when the disk tier is off
  std::vector<std::string>
      disk_files;              ///< absolute paths of its extent files, one in each directory of the tier
  std::vector<size_t> sockets; ///< indices into `settings::listen`
  friend bool operator==(const group_options&, const group_options&) = default;
};

struct settings {
  daemon_options daemon;
  std::vector<listen_options> listen; ///< at least one
  connection_options connection;
  host_options host;
  disk_options disk;
  policy_options policy;
  shadow_options shadow;
  copier_options copier;
  gpu_options gpu;
  lease_options lease;
  metrics_options metrics;
  std::vector<quota_options> quota;
  std::vector<door_options> resp;

  /// All problems of single options and inconsistencies between options.
  std::vector<option_problem> validate() const;

  /// The trust groups in the order of their first socket. Precondition: `validate()` reports no problem.
  std::vector<group_options> groups() const;

  /// The quotas of a trust group. The same precondition.
  std::vector<tenant_quota> quotas_of(std::string_view group) const;

  friend bool operator==(const settings&, const settings&) = default;

 private:
  std::vector<option_problem> validate_quotas() const;
  std::vector<option_problem> validate_shares() const;
  std::vector<option_problem> validate_doors() const;
};

/// The process environment of the daemon; the only place that reads it. Absent variables are empty.
struct environment {
  uint32_t uid = 0;
  uint32_t processors = 1;                           ///< available to this process
  std::string runtime_directory;                     ///< RUNTIME_DIRECTORY (systemd)
  std::string state_directory;                       ///< STATE_DIRECTORY (systemd)
  std::string xdg_runtime_dir;                       ///< XDG_RUNTIME_DIR
  std::string xdg_state_home;                        ///< XDG_STATE_HOME
  std::string home;                                  ///< HOME
  std::string notify_socket;                         ///< NOTIFY_SOCKET (systemd)
  std::optional<std::chrono::microseconds> watchdog; ///< WATCHDOG_USEC, if meant for this process

  static environment current();

  /// `/run/terrace/terrace.sock` for root, `$RUNTIME_DIRECTORY/terrace.sock` under systemd, or
  /// `$XDG_RUNTIME_DIR/terrace.sock`; `/tmp/terrace-UID/terrace.sock` where none is set.
  std::string socket_path() const;

  /// `$STATE_DIRECTORY` under systemd, `/var/lib/terrace` for root, else `$XDG_STATE_HOME/terrace`, which is
  /// `~/.local/state/terrace` by default.
  std::string state_path() const;

  /// The values used for 0.
  uint32_t default_workers() const;
  uint32_t default_copiers() const;
};

/// The settings of an empty file.
settings default_settings(const environment& env);

} // namespace terrace

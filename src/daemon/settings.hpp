// The daemon's settings: one struct of options for each component, each option with its default and unit in
// place.
//
//   auto parsed = parse_settings(text, "terraced.toml");       // settings_toml.hpp
//   if (parsed) start(*parsed); else std::cerr << render_problems(parsed.error());
//
// A `settings` that came out of `parse_settings`, or whose `validate()` names no problem, is safe to use
// without further checks. Plain values: copy them, compare them, hand a component its own struct.
#pragma once

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

/// What is wrong with one option. `option` is its name in the file, such as `host.bytes`, or `listen[1].path`
/// for the second [[listen]] (counted from 0).
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
  uint32_t worker_slice_us = 100; ///< the workers' slices of processor time; 0: the kernel's own
  std::string log_level = "info"; ///< trace, debug, info, warning, error
  bool log_json = false;          ///< one JSON object a line instead of text
  std::chrono::milliseconds shutdown_grace{
      10000}; ///< after SIGTERM: how long transfers in flight may still finish
  std::vector<option_problem> validate() const;
  friend bool operator==(const daemon_options&, const daemon_options&) = default;
};

/// [[listen]]: one listening socket. Sockets that name the same group serve the same trust group.
struct listen_options {
  std::string path;              ///< absolute; `parse_settings` and `default_settings` fill it in
  std::string group = "default"; ///< 1 to 64 of a-z, 0-9, '-' and '_'
  uint32_t mode = 0600;          ///< permissions of the socket file
  std::vector<uint32_t> uids;    ///< who may connect; both empty: the daemon's own uid and root
  std::vector<uint32_t> gids;    ///< who may connect by primary group
  bool isolated = false;         ///< nothing is mapped into clients; the daemon copies
  bool write_in_place = false;   ///< refused in this version
  std::optional<uint64_t>
      host_bytes; ///< the group's share of host.bytes; absent: an equal part of what is left
  std::optional<uint64_t>
      disk_bytes; ///< the group's share of disk.bytes; absent: an equal part of what is left

  /// Whether a peer with these credentials may connect; `own_uid` is the daemon's.
  bool admits(uint32_t uid, uint32_t gid, uint32_t own_uid) const;

  std::vector<option_problem> validate() const;
  friend bool operator==(const listen_options&, const listen_options&) = default;
};

/// [connection]: what each client may hold, and how many clients there may be.
struct connection_options {
  uint32_t credit_requests = 256;        ///< requests in flight before the daemon stops reading
  uint64_t credit_bytes = 32 * mebibyte; ///< bytes of frames in flight before it does
  uint64_t staging_bytes =
      256 * mebibyte;          ///< memory for reserved, not yet committed objects of one connection
  uint32_t regions_max = 64;   ///< registered regions of one connection
  uint32_t leases_max = 65536; ///< leases of one connection
  uint32_t lease_objects_max = 4'194'304;            ///< objects that these name, all together
  uint32_t connections_max = 1024;                   ///< of the whole daemon
  std::chrono::milliseconds request_deadline{30000}; ///< of requests that state none of their own
  std::vector<option_problem> validate() const;
  friend bool operator==(const connection_options&, const connection_options&) = default;
};

/// [host]: the host memory tier, all groups together.
struct host_options {
  uint64_t bytes = 1 * gibibyte;         ///< hard capacity of all host arenas
  uint64_t segment_bytes = 1 * gibibyte; ///< an arena is one memfd for each so many bytes, at most 1 GiB
  std::string allocator = "size_class";
  uint64_t slot_bytes = 0; ///< allocator = "paged" only: the size of every slot
  uint64_t small_max_bytes =
      64 * kibibyte;          ///< allocator = "mixed" only: the largest extent that counts as small
  uint32_t small_percent = 5; ///< allocator = "mixed" only: the share of the arena kept for small ones
  std::string policy = "kmg";
  uint32_t low_watermark_percent = 0; ///< free share that is evicted for ahead; 0: evict on demand alone
  bool huge_pages = false;            ///< memfds of 2 MiB pages
  std::string numa_node = "any";      ///< the number of the node that all pages come from, or "any"
  bool prefault = true;               ///< touch the arena at start, so that pages are charged to the daemon
  uint64_t prefault_piece_bytes = 64 * mebibyte; ///< touched at a time, so that start-up answers meanwhile
  uint32_t allocation_queue = 4096;              ///< requests of one group that may wait for space

  uint64_t low_watermark_bytes(uint64_t capacity) const { return capacity / 100 * low_watermark_percent; }

  std::vector<option_problem> validate() const;
  friend bool operator==(const host_options&, const host_options&) = default;
};

/// [disk]: the disk tier, all groups together.
struct disk_options {
  /// What `admission` may be, in the order of `admission_rule` (policy/eviction_tracker.hpp).
  static constexpr std::array<std::string_view, 3> admissions{"always", "seen_twice", "beats_victim"};

  /// What `on_mismatch` may be, in the order of `mismatch_rule` (storage/path_set.hpp).
  static constexpr std::array<std::string_view, 3> mismatches{"refuse", "adapt", "wipe"};

  bool enabled = true;
  std::string path;               ///< a directory; absolute; `default_settings` fills it in
  std::vector<std::string> paths; ///< directories, in place of `path`: one for each device
  uint64_t bytes = 4 * gibibyte;  ///< hard capacity of all extent files, preallocated
  std::string allocator = "size_class";
  uint64_t slot_bytes = 0;                  ///< allocator = "paged" only
  uint64_t small_max_bytes = 64 * kibibyte; ///< allocator = "mixed" only
  uint32_t small_percent = 5;               ///< allocator = "mixed" only
  std::string policy = "kmg";
  uint32_t low_watermark_percent = 0;
  uint32_t depth = 32;                            ///< reads and writes in flight in the kernel
  uint64_t bytes_in_flight = 256 * mebibyte;      ///< bytes of them; a single larger object goes alone
  uint64_t write_bytes_in_flight = 64 * mebibyte; ///< of writes, while nobody reads
  uint32_t write_share_percent = 20;  ///< beside reads: of their bytes in flight; at least one write of 1 MiB
  std::string on_mismatch = "refuse"; ///< files that are not the store that is expected: refuse, adapt, wipe
  std::string admission = "beats_victim"; ///< what is written: always, seen_twice, beats_victim
  uint64_t write_bytes_per_day = 0;       ///< 0: no limit
  std::chrono::milliseconds stall_after{
      10'000};               ///< an operation that takes longer takes its path out of service
  bool write_through = true; ///< stores go to disk as well; false: disk holds nothing new
  uint32_t allocation_queue = 4096;

  /// Where the files are: `paths`, or `path` alone.
  std::vector<std::string> directories() const { return paths.empty() ? std::vector{path} : paths; }

  uint64_t low_watermark_bytes(uint64_t capacity) const { return capacity / 100 * low_watermark_percent; }

  std::vector<option_problem> validate() const;
  friend bool operator==(const disk_options&, const disk_options&) = default;
};

/// [policy]: what the eviction policies of all tiers share.
struct policy_options {
  /// What `clock` may be, in the order of `clock_source` (actors/policy_clock.hpp).
  static constexpr std::array<std::string_view, 2> clocks{"steady", "told"};

  std::string clock = "steady"; ///< by which ages are counted
  std::vector<option_problem> validate() const;
  friend bool operator==(const policy_options&, const policy_options&) = default;
};

/// [shadow]: what other policies and capacities would have hit, watched on live traffic. Metadata alone.
struct shadow_options {
  std::vector<std::string> policies; ///< names; none: no shadows
  std::vector<uint32_t> capacity_percents = {
      100}; ///< of the group's host memory; each policy has all of them
  std::vector<option_problem> validate() const;
  friend bool operator==(const shadow_options&, const shadow_options&) = default;
};

/// [copier]: the threads that copy for isolated groups and into regions.
struct copier_options {
  uint32_t threads = 0;                ///< 0: one for each two processors, 2 to 8
  uint64_t piece_bytes = 8 * mebibyte; ///< copied between two looks at cancellation
  std::vector<option_problem> validate() const;
  friend bool operator==(const copier_options&, const copier_options&) = default;
};

/// [lease]
struct lease_options {
  std::chrono::milliseconds warn_after{60000}; ///< an older lease is reported once in the log and in metrics
  std::vector<option_problem> validate() const;
  friend bool operator==(const lease_options&, const lease_options&) = default;
};

/// [metrics]
struct metrics_options {
  bool enabled = true;
  std::string address = "127.0.0.1:9464"; ///< loopback only; port 0 takes a free one
  uint32_t spaces_max = 32;               ///< spaces with series of their own; the rest are `other`
  std::vector<option_problem> validate() const;
  friend bool operator==(const metrics_options&, const metrics_options&) = default;
};

/// One trust group as its sockets describe it, shares worked out.
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
  lease_options lease;
  metrics_options metrics;

  /// All that is wrong with any option, and all contradictions between options.
  std::vector<option_problem> validate() const;

  /// The trust groups in the order of their first socket. Precondition: `validate()` names no problem.
  std::vector<group_options> groups() const;

  friend bool operator==(const settings&, const settings&) = default;
};

/// What a daemon takes from its process environment; the one place that reads it. Absent variables are empty.
struct environment {
  uint32_t uid = 0;
  uint32_t processors = 1;                           ///< that this process may run on
  std::string runtime_directory;                     ///< RUNTIME_DIRECTORY (systemd)
  std::string state_directory;                       ///< STATE_DIRECTORY (systemd)
  std::string xdg_runtime_dir;                       ///< XDG_RUNTIME_DIR
  std::string xdg_state_home;                        ///< XDG_STATE_HOME
  std::string home;                                  ///< HOME
  std::string notify_socket;                         ///< NOTIFY_SOCKET (systemd)
  std::optional<std::chrono::microseconds> watchdog; ///< WATCHDOG_USEC, when meant for this process

  static environment current();

  /// `/run/terrace/terrace.sock` for root, `$RUNTIME_DIRECTORY/terrace.sock` under systemd, or
  /// `$XDG_RUNTIME_DIR/terrace.sock`; `/tmp/terrace-UID/terrace.sock` where none is set.
  std::string socket_path() const;

  /// `$STATE_DIRECTORY` under systemd, `/var/lib/terrace` for root, else `$XDG_STATE_HOME/terrace`, which is
  /// `~/.local/state/terrace` by default.
  std::string state_path() const;

  /// 0 in the options means these.
  uint32_t default_workers() const;
  uint32_t default_copiers() const;
};

/// The settings of an empty file.
settings default_settings(const environment& env);

} // namespace terrace

// The daemon's settings: one options struct per component. Their members are the rows of options.def.
//
//   auto parsed = parse_settings(text, "terraced.toml");       // settings_toml.hpp
//   if (parsed) start(*parsed); else std::cerr << render_problems(parsed.error());
//
// A `settings` returned by `parse_settings`, or for which `validate()` reports no problem, needs no further
// checks. Plain values: copy them, compare them, pass each component its own struct.
#pragma once

#include "index/tenant_directory.hpp"

#include <algorithm>
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
constexpr uint64_t page_bytes = 4 * kibibyte;     // what O_DIRECT and every allocator align to
constexpr uint64_t slot_bytes_max = 1 * gibibyte; // a registered io_uring buffer may not be larger
constexpr uint64_t host_bytes_max = 64 * tebibyte;
constexpr uint64_t disk_bytes_max = 1024 * tebibyte;

/// A problem with one option. `option` is its name in the file, such as `host.bytes`, or `listen[1].path` for
/// the second [[listen]] (counted from 0).
struct option_problem {
  std::string option;
  std::string wrong;
  std::string expected;
  std::string fix;
  friend bool operator==(const option_problem&, const option_problem&) = default;
};

/// The types of options. A value of each kind is written in the file as described.
namespace option_types {
using flag = bool;         ///< true or false
using count = uint32_t;    ///< a whole number
using text = std::string;  ///< a string
using place = std::string; ///< a path; "auto": the default from the environment
using places =
    std::vector<std::string>;  ///< a path, or an array of them; "auto": the default from the environment
using allocator = std::string; ///< a name; see `parse_allocator`
using bytes = uint64_t;        ///< a whole number, or a string such as "64MiB"
using share = std::optional<uint64_t>;      ///< bytes, or "auto" for an equal part
using duration = std::chrono::milliseconds; ///< a string such as "60s"
using permissions = uint32_t;               ///< a string such as "0600"
using ids = std::vector<uint32_t>;          ///< an array of user or group ids
using counts = std::vector<uint32_t>;       ///< an array of whole numbers
using names = std::vector<std::string>;     ///< an array of strings
} // namespace option_types

// The members of the structs that follow are the rows of options.def, with their defaults.
#define TERRACE_OPTION_MEMBER(key, kind, value, ...) option_types::kind key = value;

/// [daemon]
struct daemon_options {
  static constexpr std::array<std::string_view, 5> log_levels{"trace", "debug", "info", "warning", "error"};
#define DAEMON_OPTION TERRACE_OPTION_MEMBER
#include "daemon/options.def"
  friend bool operator==(const daemon_options&, const daemon_options&) = default;
};

/// [[listen]]: one listening socket. Sockets with the same group belong to one trust group.
struct listen_options {
#define LISTEN_OPTION TERRACE_OPTION_MEMBER
#include "daemon/options.def"

  /// True if a peer with these credentials may connect; `own_uid` is the daemon's.
  bool admits(uint32_t uid, uint32_t gid, uint32_t own_uid) const;

  std::vector<option_problem> contradictions() const; ///< `option` begins with "listen."
  friend bool operator==(const listen_options&, const listen_options&) = default;
};

/// [[resp]]: a socket for Redis clients. There is none by default.
struct redis_options {
#define RESP_OPTION TERRACE_OPTION_MEMBER
#include "daemon/options.def"

  /// Whether `address` is the path of a Unix socket.
  bool at_path() const { return address.starts_with('/'); }

  std::vector<option_problem> contradictions() const; ///< `option` begins with "resp."
  friend bool operator==(const redis_options&, const redis_options&) = default;
};

/// [[remote]]: the remote tier of a trust group, on Valkey or Redis servers, in a bucket or behind a plugin. There is none by default.
struct remote_options {
  /// At least: it answers later than a server with its values in memory.
  static constexpr std::chrono::milliseconds lookup_budget_of_bulk{50};
  /// Values of `demotion`. One that is never written to has nothing that it could share.
  static constexpr std::array<std::string_view, 3> demotions{"selective", "write_through", "write_back"};

#define REMOTE_OPTION TERRACE_OPTION_MEMBER
#include "daemon/options.def"

  std::vector<option_problem> contradictions() const; ///< `option` begins with "remote."
  friend bool operator==(const remote_options&, const remote_options&) = default;
};

/// [connection]: limits per client, and on the number of clients.
struct connection_options {
#define CONNECTION_OPTION TERRACE_OPTION_MEMBER
#include "daemon/options.def"

  // What follows from these options: CHANGELOG.md, "Bounds that follow from another option".
  uint32_t credit_requests() const;
  uint64_t credit_bytes() const;
  uint32_t spaces_max() const { return std::max(64U, group_spaces_max / 16); } ///< that a connection has open
  uint32_t reservations_max() const { return static_cast<uint32_t>(group_bytes / (256 * kibibyte)); }
  uint32_t leases_max() const { return static_cast<uint32_t>(group_bytes / (16 * kibibyte)); }
  uint32_t lease_objects_max() const; ///< of all leases of a connection
  std::chrono::milliseconds request_deadline_max() const { return 20 * request_deadline; }
  uint64_t session_bytes() const { return group_bytes / 16; }      ///< of the sessions of a connection
  uint64_t session_bytes_group() const { return group_bytes / 4; } ///< of the sessions of a trust group
  uint64_t prompt_bytes() const { return group_bytes / 4; } ///< of the logits of a trust group's prompts
  uint64_t prompts_max() const { return group_bytes / (4 * mebibyte); }
  /// Returns the bound of a trust group's known tokens. 0: the group remembers none.
  uint64_t memo_bytes() const;
  uint64_t sessions_max() const { return group_bytes / (32 * kibibyte); } ///< that a connection owns
  uint64_t sessions_group_max() const { return 4 * sessions_max(); }
  std::chrono::milliseconds handshake_deadline() const { return request_deadline / 3; }
  std::chrono::milliseconds lease_warn_after() const { return 2 * request_deadline; }
  uint64_t device_staging_bytes() const; ///< between host memory and each GPU
  friend bool operator==(const connection_options&, const connection_options&) = default;
};

/// [host]: the host memory tier of all groups together.
struct host_options {
#define HOST_OPTION TERRACE_OPTION_MEMBER
#include "daemon/options.def"

  uint64_t low_watermark_bytes(uint64_t capacity) const { return capacity / 100 * low_watermark_percent; }

  std::vector<option_problem> contradictions() const;
  friend bool operator==(const host_options&, const host_options&) = default;
};

/// [disk]: the disk tier of all groups together.
struct disk_options {
  /// Values of `admission`, in the order of `admission_rule` (base/eviction_types.hpp).
  static constexpr std::array<std::string_view, 3> admissions{"always", "seen_twice", "beats_victim"};

  /// Values of `on_mismatch`, in the order of `mismatch_rule` (storage/path_set.hpp).
  static constexpr std::array<std::string_view, 3> mismatches{"refuse", "adapt", "wipe"};

#define DISK_OPTION TERRACE_OPTION_MEMBER
#include "daemon/options.def"

  bool enabled() const { return bytes != 0; }

  std::vector<option_problem> contradictions() const;
  friend bool operator==(const disk_options&, const disk_options&) = default;
};

/// [policy]: options of the eviction policies of all tiers.
struct policy_options {
  /// Values of `clock`, in the order of `clock_source` (tier/policy/policy_clock.hpp).
  static constexpr std::array<std::string_view, 2> clocks{"steady", "told"};

#define POLICY_OPTION TERRACE_OPTION_MEMBER
#include "daemon/options.def"
  friend bool operator==(const policy_options&, const policy_options&) = default;
};

/// [shadow]: measures what other policies and capacities would have hit on live requests, with metadata only.
struct shadow_options {
#define SHADOW_OPTION TERRACE_OPTION_MEMBER
#include "daemon/options.def"
  std::vector<option_problem> contradictions() const;
  friend bool operator==(const shadow_options&, const shadow_options&) = default;
};

/// [copier]: the threads that copy for isolated groups and into regions.
struct copier_options {
#define COPIER_OPTION TERRACE_OPTION_MEMBER
#include "daemon/options.def"
  friend bool operator==(const copier_options&, const copier_options&) = default;
};

/// [gpu]: memory of GPUs, which clients register. A process per GPU has all of CUDA.
struct gpu_options {
  static constexpr std::array<std::string_view, 3> mapped_arenas{"shared", "all", "off"};
  /// Values of `tier_demotion`. What comes into the tier is in host memory then, so there is no write_through.
  static constexpr std::array<std::string_view, 3> demotions{"write_back", "selective", "off"};

#define GPU_OPTION TERRACE_OPTION_MEMBER
#include "daemon/options.def"

  bool maps_arena(bool isolated) const {
    return map_arenas == "all" || (map_arenas == "shared" && !isolated);
  }
  bool reads_disk(bool isolated) const { return enabled && direct_bytes != 0 && !isolated; }

  std::vector<option_problem> contradictions() const;
  friend bool operator==(const gpu_options&, const gpu_options&) = default;
};

/// [lease]
struct lease_options {
#define LEASE_OPTION TERRACE_OPTION_MEMBER
#include "daemon/options.def"
  friend bool operator==(const lease_options&, const lease_options&) = default;
};

/// [metrics]
struct metrics_options {
#define METRICS_OPTION TERRACE_OPTION_MEMBER
#include "daemon/options.def"
  bool enabled() const { return !address.empty(); }
  std::vector<option_problem> contradictions() const;
  friend bool operator==(const metrics_options&, const metrics_options&) = default;
};

#undef TERRACE_OPTION_MEMBER

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
  std::vector<redis_options> resp;
  std::vector<remote_options> remote;

  /// All problems of single options and inconsistencies between options.
  std::vector<option_problem> validate() const;

  /// The trust groups in the order of their first socket. Precondition: `validate()` reports no problem.
  std::vector<group_options> groups() const;

  /// The quotas of a trust group. The same precondition.
  std::vector<tenant_quota> quotas_of(std::string_view group) const;

  friend bool operator==(const settings&, const settings&) = default;

 private:
  std::vector<option_problem> contradictions() const;
  std::vector<option_problem> validate_quotas() const;
  std::vector<option_problem> validate_shares() const;
  std::vector<option_problem> validate_redis_sockets() const;
  std::vector<option_problem> validate_remotes() const;
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

  /// Workers for `remotes` remote tiers: one for each, at most as many as `default_workers`.
  uint32_t transfer_workers(size_t remotes) const;
};

/// The settings of an empty file.
settings default_settings(const environment& env);

// Applies SIGHUP: compares the settings in force with newly read ones.

struct option_change {
  std::string option; ///< as in `option_problem`; only `listen` if sockets were added or removed
  std::string before; ///< as written in the file
  std::string after;
  bool at_run_time; ///< applies now; otherwise at the next start

  /// A line for the log: "daemon.log_level: "info" -> "debug", in force now".
  std::string text() const;
};

/// Every option that differs, in table order. Both must be validated.
std::vector<option_change> changes_at_run_time(const settings& old_settings, const settings& new_settings);

/// `old_settings` with those changes of `new_settings` that apply at run time.
settings apply_at_run_time(const settings& old_settings, const settings& new_settings);

} // namespace terrace

// An operator asks the daemon for its state and changes it with these calls.
#pragma once

#include "base/digest.hpp"
#include "base/error.hpp"
#include "base/ids.hpp"
#include "client/session.hpp"
#include "client/status.hpp"
#include "client/types.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace terrace::client {

/// A lease of the trust group.
struct lease_status {
  lease_id lease;
  uint64_t number = 0;        ///< leases are numbered from 1 in the order in which they were taken
  connection_id connection{}; ///< its owner; 0: it is pinned
  uint32_t space = 0;
  uint32_t chunks = 0;
  uint64_t tokens = 0;
  uint64_t bytes = 0; ///< bytes that it holds in all tiers; what several leases hold counts for each of them
  std::chrono::milliseconds age{};
  bool revoked = false; ///< revoked: its holders are being told
};

struct leases_status {
  uint64_t count = 0;               ///< number of all leases
  std::vector<lease_status> leases; ///< oldest first, at most 1,024
};

/// The result of a check.
struct check_result {
  uint64_t count = 0;                   ///< number of differences
  std::vector<std::string> differences; ///< the first 64, one sentence each
  uint64_t objects = 0;                 ///< objects in all tiers
  uint64_t sessions = 0;
  uint64_t connections = 0;
  std::map<std::string, uint64_t> references; ///< references to objects, by kind of holder
  bool idle = false; ///< no request was in progress, so what only requests may hold was compared too
  std::vector<std::string> left_out; ///< what could not be compared, and the reason
};

struct revoke_result {
  uint32_t holders = 0;           ///< connections that had the lease
  uint64_t quarantined_bytes = 0; ///< bytes that they may be reading in place
};

/// A lookup under a lease.
struct recent_lookup {
  uint64_t number = 0; ///< lookups of the trust group are numbered from 1
  std::chrono::milliseconds age{};
  connection_id connection{};
  std::string client; ///< its name
  std::string trace;  ///< of the request's options
  lookup_id id;       ///< zero: it has none
  uint32_t space = 0;
  uint32_t chunk_tokens = 0;
  uint64_t prompt_tokens = 0;
  uint64_t first_token = 0;     ///< where the first chunk begins
  std::optional<digest> parent; ///< the chunk before it, if it exists and is known
  uint32_t found_chunks = 0;
  uint32_t recompute_chunks = 0;     ///< further ones that were present, and left to the client
  uint32_t prefill_tokens_per_s = 0; ///< the speed by which they were; 0: the client has declared none
  std::vector<digest> chunks;        ///< whole ones
};

struct recent_lookups {
  std::vector<recent_lookup> lookups; ///< the oldest first
  uint64_t lost = 0;                  ///< lookups before them that are kept no longer
  uint64_t last = 0;                  ///< number of the last one of all
};

/// A prompt.
struct prompt_request {
  space in;
  prefix what;
  uint32_t tiers = 0; ///< for `evict`: bit n stands for tier_kind n; 0: all
  request_options options;
};

struct move_share {
  uint32_t chunks = 0;
  uint64_t bytes = 0;
};
struct move_result {
  uint32_t requested_chunks = 0;
  move_share moved;
  move_share present; ///< chunks that were already in the tier
  move_share missing; ///< chunks that are in no tier, or follow such a chunk and cannot be found
  move_share held;    ///< chunks that are now in the tier and also stay above it, because somebody holds them
  move_share failed;  ///< chunks that could not be moved there
};

/// Chunks one after the other of which the same is true.
struct explained_chunks {
  uint32_t first = 0;
  uint32_t count = 0;
  /// "present", or why they are a miss: "not_stored", "evicted", "cleared", "removed", "damaged", "incomplete", "retired",
  /// "out_of_service", "not_admitted", "left_to_recompute" (docs/protocol.md).
  std::string state;
  std::string tier; ///< where they are, or which tier they have left or did not take them; empty: not known
  std::chrono::seconds ago{0}; ///< since the first of them has left
  std::string detail;          ///< for people; may be empty
};
struct explain_result {
  uint32_t requested_chunks = 0;
  uint32_t found_chunks = 0; ///< leading chunks that are present
  std::vector<explained_chunks> runs;
};

/// A node of a cluster that is a remote tier's store.
struct remote_node {
  std::string address, state, reason; ///< as those of the store
  uint32_t slots = 0;
  bool replica = false; ///< payloads are read there; the slots are its primary's
};

/// Requests to a remote tier's store that were sent a second time because their answers were late.
struct remote_hedges {
  uint64_t sent = 0;
  uint64_t won = 0; ///< the second one was answered first
};

/// Objects that replicas of a cluster were asked for.
struct remote_replica_reads {
  uint64_t read = 0;
  uint64_t asked_primary = 0; ///< instead: a replica did not have them, was lost or refused
  uint64_t damaged = 0;       ///< they were not as they were written, and the primary was asked
};

/// A remote tier of the trust group.
struct remote_state {
  std::string tier; ///< "remote", "remote2" or "remote3"
  std::string address, prefix;
  std::string state;          ///< "ready", "connecting", "down"
  std::chrono::seconds since; ///< the state changed
  std::string reason, notice;
  std::vector<std::string> warnings; ///< what to change about the server
  std::string server, version;       ///< empty: the server does not tell
  bool tells_changes = false;        ///< CLIENT TRACKING is granted
  uint32_t answers = 0;              ///< the next two are of so many last answers
  std::chrono::nanoseconds mean_answer{0}, slowest_answer{0};
  uint64_t read_bytes = 0, written_bytes = 0;
  std::map<std::string, uint64_t> misses; ///< by reason
  bool memory = false;                    ///< the server has told the next three
  uint64_t used_bytes = 0, max_bytes = 0; ///< max_bytes 0: no bound
  std::string policy;
  std::string memory_refused;          ///< why it has not
  std::vector<remote_node> nodes;      ///< none: the store is no cluster
  bool encrypted = false;              ///< values are encrypted before they are sent
  bool compressed = false;             ///< values of 16-bit floats are compressed before that
  uint64_t stored_bytes = 0;           ///< what the written payload takes in the store
  std::optional<remote_hedges> hedges; ///< none: this kind of store is asked once for everything
  std::optional<remote_replica_reads> replica_reads; ///< none: replicas are not read
  uint32_t owed_clears = 0; ///< that the store has not been told of: it is away, or refuses them
};

struct remote_step {
  std::string name;
  std::chrono::nanoseconds took{0};
  std::string failure; ///< with what to do; empty: it is done
};
struct remote_probe_result {
  std::string address;
  std::vector<remote_step> steps; ///< up to the first that failed
};

struct remote_sweep_request {
  bool dry_run = false;
  uint32_t keys_per_s = 0; ///< 0: the daemon's default
  tier_kind tier = tier_kind::remote;
};
struct remote_sweep_result {
  std::string address;
  uint64_t keys = 0;    ///< below the prefix
  uint64_t current = 0; ///< values that daemons find
  uint64_t unknown = 0; ///< values of spaces without a token: see RemoteSweepAnswer
  uint64_t stale = 0, stale_bytes = 0;
};

struct pin_result {
  uint32_t requested_chunks = 0;
  uint32_t pinned_chunks = 0; ///< leading chunks; 0: nothing was found, and nothing is pinned
  uint64_t tokens = 0;
  uint64_t bytes = 0; ///< bytes that the pin holds in all tiers
  lease_id lease;     ///< the id under which `leases` lists the pin
};

struct unpin_result {
  uint32_t pins = 0; ///< pins that were removed; 0: there was none
  uint64_t bytes = 0;
};

namespace detail {
class core;
} // namespace detail

/// The daemon's operation, through an open connection: `daemon->admin().status()`. An object of this class may be kept,
/// and is used like its connection. Calls from `subscribe` on are allowed for the daemon's own user and root, and are
/// otherwise `denied`.
class admin {
 public:
  result<daemon_status> status(deadline until = {});

  /// Removes all objects of the space, or of the whole trust group; once it returns, no restart brings them
  /// back.
  result<clear_result> clear(const space* only = nullptr, deadline until = {});

  /// Returns the sessions of the trust group.
  result<sessions_status> sessions(deadline until = {});

  /// Returns one session; none: there is no such session.
  result<std::optional<session_status>> session_status_of(const session_id& id, deadline until = {});

  /// Closes any session of the trust group, also a kept one. Returns false if there is no such session, which is no
  /// error.
  result<bool> close_session(const session_id& id, deadline until = {});

  /// The policy of each tier, and what the configured shadow policies would have hit.
  result<policies_status> policies(deadline until = {});

  /// Sets the eviction policy of a tier ("host", "disk"); its residents stay. Allowed for the daemon's own
  /// user and root. Returns the previous policy. Errors: `denied`, `not_found`, `bad_request` listing the
  /// known policies.
  result<std::string> set_policy(const std::string& tier, const std::string& policy, deadline until = {});

  /// Opens the space that has this number in `status`: a salt need not be known. It is not opened again
  /// by `reconnect`. Allowed for the daemon's own user and root. Errors: `not_found`, `denied`.
  result<space> open_space(uint32_t number, deadline until = {});

  /// Returns what has come into or left the tiers of the trust group since `from`; a new cursor begins with
  /// what is there. Waits until there is something. Errors: `deadline`: nothing has happened;
  /// `gone`: events since `from` are lost, so begin with a new cursor.
  result<event_part> subscribe(const event_cursor& from, uint32_t events_max = 1024, deadline until = {});

  /// Returns the lookups under a lease with numbers above `after`, of which the daemon keeps the last 1,024 with 65,536
  /// digests. `waits`: until there is one. Errors: `deadline`.
  result<recent_lookups> recent(uint64_t after, bool waits, deadline until = {});

  /// Returns the leases of the trust group, oldest first: at most 1,024 with numbers above `after`.
  result<leases_status> leases(uint64_t after = 0, deadline until = {});

  /// Recounts everything of the trust group while it serves, and compares the result with the daemon's
  /// accounting. Each difference is an error in the daemon. Errors: `busy` while another check is in
  /// progress.
  result<check_result> check(deadline until = {});

  /// Ends a lease for its owner and all readers, which get `gone` from then on. What they may be reading in
  /// place stays until they release it or end. Errors: `not_found`.
  result<revoke_result> revoke(const lease_id& id, deadline until = {});

  /// Keeps what is found of a prompt in its tiers until it is unpinned or the daemon ends, even after this
  /// connection has ended. Errors: `no_space` over lease.pin_percent.
  result<pin_result> pin(const prompt_request& request, deadline until = {});

  /// Ends the pin of exactly this prompt.
  result<unpin_result> unpin(const prompt_request& request, deadline until = {});

  /// Removes the objects of all chunks of the prompt. Objects under a lease stay readable for its holders,
  /// but nobody finds them again.
  result<clear_result> evict(const prompt_request& request, deadline until = {});

  /// The remote tiers of the trust group, in the order in which lookups ask them.
  result<std::vector<remote_state>> remote_status(deadline until = {});
  /// Asks the store of a remote tier once. Errors: `unsupported` without such a tier.
  result<remote_probe_result> remote_probe(tier_kind tier = tier_kind::remote, deadline until = {});
  /// Removes the values that clears have left behind there. The same errors.
  result<remote_sweep_result> remote_sweep(const remote_sweep_request& what, deadline until = {});

  /// Says of each chunk of the prompt where it is, or why it is a miss. Counts no hit, and no policy is told. Without a speed of
  /// computing in the options or the space, that of the space's last lookup under a lease counts.
  result<explain_result> explain(const prompt_request& request, deadline until = {});

  /// Moves the objects of all chunks of the prompt to host memory or to disk. Objects under a lease stay in
  /// host memory as well. Errors: `unsupported` without a disk.
  result<move_result> move(const prompt_request& request, tier_kind to, deadline until = {});

  /// Returns the quotas of the trust group and the usage of their tenants.
  result<std::vector<tenant_status>> quotas(deadline until = {});

  /// Changes a quota until the configuration is reloaded with other quotas. Returns what `quotas` does.
  /// Errors: `not_found` listing the names, `bad_request`.
  result<std::vector<tenant_status>> set_quota(const quota_change& change, deadline until = {});

  /// Sets the log level to "trace", "debug", "info", "warning" or "error" until the daemon restarts or
  /// reloads its configuration. Returns the previous level. Errors: `bad_request` listing the levels.
  result<std::string> set_log_level(const std::string& level, deadline until = {});

  /// Shuts the daemon down in order: now, or, with `when_idle`, once the last client has left; until then it
  /// admits no other one. Returns the number of clients of all trust groups.
  result<uint32_t> shut_down(bool when_idle, deadline until = {});

 private:
  friend class connection;
  explicit admin(std::shared_ptr<detail::core> core) : core_(std::move(core)) {}
  std::shared_ptr<detail::core> core_;
};

} // namespace terrace::client

// What is asked of the actor of a trust group, and what it answers: spaces, leases, pins and status. `lease` is the right that
// most of these messages are about.
#pragma once

#include "base/digest.hpp"
#include "base/error.hpp"
#include "base/ids.hpp"
#include "index/space_registry.hpp"
#include "tier/messages.hpp"
#include "tier/objects/object_hold.hpp"
#include "tier/objects/reference_count.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace terrace {

/// A mark that is set once, on any thread. A copy starts with the state at the time of copying.
class revoked_mark {
 public:
  revoked_mark() = default;
  revoked_mark(const revoked_mark& other) : set_(other.is_set()) {}
  revoked_mark& operator=(const revoked_mark&) = delete;
  void set() const noexcept { set_.store(true); }
  bool is_set() const noexcept { return set_.load(); }

 private:
  mutable std::atomic<bool> set_{false};
};

/// The right to read the objects of a found prefix. The owner's connection and all readers keep it alive;
/// others find it by id until the owner ends it. The holds on its objects end with the last reference.
struct lease {
  lease_id id;
  connection_id owner{};
  /// the kind of owner that is charged: a client, a session or a pin
  reference_kind taken_for = reference_kind::lease;
  space_ptr space;
  std::vector<digest> chunks;   ///< digests of the found prefix
  uint32_t tail_tokens = 0;     ///< not 0: the last chunk is partial and has this many tokens
  std::optional<digest> before; ///< digest of the chunk before the first, if known
  uint64_t first_token = 0;     ///< position in the prompt at which the first chunk begins
  tier_holds held;              ///< objects of all ranks of the chunks (index/chunk_layout.hpp)
  uint64_t bytes = 0;           ///< physical bytes of the objects
  revoked_mark revoked;         ///< set by an operator: no new read may begin under this lease
  std::chrono::steady_clock::time_point taken;
};
using lease_ptr = std::shared_ptr<const lease>;

/// Tokens in the first `count` chunks; without `count`, in all chunks.
uint64_t tokens_of(const lease& held, size_t count);
inline uint64_t tokens_of(const lease& held) { return tokens_of(held, held.chunks.size()); }

struct open_space_request {
  space_spec spec;
  space_id known{}; ///< not 0: the space with this number, whatever the spec is
};
struct open_space_answer {
  error failure;
  space_ptr opened;
};

struct idle_spaces_request {};
struct idle_spaces_answer {
  error failure;
  std::vector<idle_space> idle; ///< at most `empty_spaces_request::spaces_max`
  size_t known = 0;             ///< all spaces of the group, idle or not
};
struct forget_spaces_request {
  std::vector<idle_space> empty; ///< spaces with no object in any tier
};
struct forget_spaces_answer {
  error failure;
  std::vector<space_id> forgotten; ///< without the spaces that were opened again in the meantime
};

struct reserve_spaces_request {
  std::vector<digest> fingerprints;
};
/// Parallel to the requested spaces; 0 for a space without room.
struct reserve_spaces_answer {
  error failure;
  std::vector<space_id> ids;
};

struct add_lease_notice {
  lease_id id;
  connection_id owner{};
  std::weak_ptr<const lease> added; ///< does not keep the lease alive
};
struct use_lease_request {
  lease_id id;
};
struct use_lease_answer {
  error failure;
  lease_ptr found;
};
struct end_lease_notice {
  lease_id id;
  connection_id owner{};
};
struct end_owner_notice {
  connection_id owner{};
};

/// Marks the lease as revoked: from now on nobody can use it by id. It stays listed until its owner has ended
/// it.
struct mark_revoked_request {
  lease_id id;
};
struct mark_revoked_answer {
  error failure; ///< `not_found`
};

/// Tells each connection of the group that the lease is marked. The connection ends whatever it has of the
/// lease.
struct revoke_request {
  lease_id id;
};
struct revoke_answer {
  error failure;                  ///< always `ok`
  bool held = false;              ///< the connection owned the lease, or read under it
  uint64_t quarantined_bytes = 0; ///< bytes that its client may still be reading in place
};

struct leases_request {
  uint64_t after = 0;   ///< a lease's number
  size_t count_max = 0; ///< most entries in `listed`
};
struct lease_report {
  lease_id id;
  uint64_t number = 0; ///< leases are numbered from 1 in the order in which they were taken
  connection_id owner{};
  space_id space{};
  uint64_t chunks = 0;
  uint64_t tokens = 0;
  uint64_t bytes = 0;
  std::chrono::steady_clock::time_point taken;
  bool revoked = false;
};
struct leases_answer {
  error failure;
  uint64_t count = 0;
  std::vector<lease_report> listed; ///< the oldest first
};

/// Asks the group to keep the lease. A pin that the group already has for this prompt is replaced.
struct pin_request {
  lease_ptr lease;        ///< a lease without an owner
  digest prompt;          ///< digest of the prompt's last chunk, found or not
  uint64_t bytes_max = 0; ///< limit for all pins together
};
struct pin_answer {
  error failure; ///< `no_space`, `busy`
};
struct unpin_request {
  space_id space{};
  digest prompt; ///< digest of the prompt when it was pinned
};
struct unpin_answer {
  error failure; ///< always `ok`
  uint32_t pins = 0;
  uint64_t bytes = 0; ///< bytes that the pins held
};

struct group_status_request {};
struct group_report {
  static constexpr size_t spaces_max = 64; ///< listed
  error failure;
  uint64_t spaces = 0;
  uint64_t leases = 0;
  uint64_t old_leases = 0;
  uint64_t sessions = 0;
  uint64_t session_bytes = 0;
  std::vector<space_ptr> open_spaces;      ///< the first `spaces_max`
  std::vector<closed_space> closed_spaces; ///< all that nobody has open
};

// Messages that check a trust group: its actor and its connections report their leases, sessions and holds.

/// Asks the group for the next part of the leases that can be found by id.
struct check_group_request {
  /// leases per answer; the answer keeps them alive until it is read
  static constexpr size_t leases_max = 32;
  uint64_t after = 0; ///< a lease's number
};

/// References by digest: they keep nothing in the tiers.
struct named_references {
  uint64_t prompts = 0; ///< references of prompt entries to whole chunks
  uint64_t tails_of_sessions = 0;
  uint64_t tails_of_prompts = 0;
  uint64_t tails_of_stores = 0; ///< tails that are stored but not yet saved
};

struct check_group_answer {
  error failure;
  named_references named; ///< in the answer to the first request
  std::vector<lease_ptr> leases;
  uint64_t next = 0; ///< `after` of the next request; 0: this was the last part
  std::vector<std::string> differences;
};

/// Asks the group to recount the next sessions.
struct check_sessions_request {
  static constexpr size_t sessions_max = 256;
  bool begins = false;
};
struct check_sessions_answer {
  error failure;
  bool more = false;
  bool interrupted = false;
  uint64_t sessions = 0; ///< number of sessions now
  std::vector<std::string> differences;
};

/// A connection reports the leases that it owns, after it has sent all its notices to the group.
struct check_owner_request {
  connection_id owner{};
  std::vector<lease_id> leases;
};

/// Asks a connection what its client holds.
struct check_client_request {
  static constexpr size_t leases_max = 4'096; ///< leases checked in one turn
};
struct check_client_answer {
  error failure;
  std::vector<std::string> differences;
  std::vector<lease_ptr> leases;  ///< leases that the client owns or reads
  std::vector<hold_ptr> readings; ///< holds on objects whose places the client was told
  bool left_out = false;          ///< the client has too many to check in one turn
};

/// The result of a check.
struct check_report {
  static constexpr size_t differences_max = 64; ///< differences that are listed
  error failure;                                ///< set: the check has no result
  uint64_t objects = 0;                         ///< objects in all tiers
  uint64_t sessions = 0;
  uint64_t connections = 0;
  std::array<uint64_t, reference_kinds> references{}; ///< references to objects of all tiers, by kind
  uint64_t references_of_requests = 0;                ///< references that only requests have
  named_references named;
  bool idle = false; ///< no request was in progress, so holds of requests and lease charges were compared too
  std::vector<std::string> left_out;    ///< what could not be compared, and the reason
  std::vector<std::string> differences; ///< the first `differences_max`
  uint64_t differences_in_all = 0;

  void add(std::string difference) {
    ++differences_in_all;
    if (differences.size() < differences_max)
      differences.push_back(std::move(difference));
  }
};

} // namespace terrace

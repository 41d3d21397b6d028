// State shared in a trust group: its spaces, leases and actors.
#pragma once

#include "base/digest.hpp"
#include "base/error.hpp"
#include "base/ids.hpp"
#include "index/space_registry.hpp"
#include "tier/objects/reference_kind.hpp"
#include "tier/objects/tier_hold.hpp"
#include "tier/tier_spaces.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace terrace {

/// Set once, on any thread; a copy has the state that it was copied in.
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

/// The right to read the objects of a found prefix. Kept by its owner's connection and by all readers; it can
/// be found by id until its owner ends it. Its holds end with the last reference.
struct lease {
  lease_id id;
  connection_id owner{};
  reference_kind taken_for = reference_kind::lease; ///< a client, a session or a pin: who is charged for it
  space_ptr in;
  std::vector<digest> chunks;   ///< of the found prefix
  uint32_t tail_tokens = 0;     ///< not 0: the last of them is a partial one, of so many tokens
  std::optional<digest> before; ///< the chunk before the first, if known
  uint64_t first_token = 0;     ///< position in the prompt at which the first chunk begins
  tier_holds held;              ///< objects of all ranks of these chunks (index/chunk_layout.hpp)
  uint64_t bytes = 0;           ///< of these objects, physical
  revoked_mark revoked;         ///< by an operator: nobody may begin to read under it any more
  std::chrono::steady_clock::time_point taken;
};
using lease_ptr = std::shared_ptr<const lease>;

/// Of the first `count` of its chunks; of all.
uint64_t tokens_of(const lease& held, size_t count);
inline uint64_t tokens_of(const lease& held) { return tokens_of(held, held.chunks.size()); }

struct open_space_request {
  space_spec spec;
};
struct open_space_answer {
  error failure;
  space_ptr opened;
};

struct idle_spaces_request {};
struct idle_spaces_answer {
  error failure;
  std::vector<idle_space> idle; ///< at most `empty_spaces_request::spaces_max`
  size_t known = 0;             ///< spaces of the group, idle or not
};
struct forget_spaces_request {
  std::vector<idle_space> empty; ///< no tier has an object of them
};
struct forget_spaces_answer {
  error failure;
  std::vector<space_id> forgotten; ///< without those that were opened since
};

struct reserve_spaces_request {
  std::vector<digest> fingerprints;
};
/// Parallel; 0 for those without room.
struct reserve_spaces_answer {
  error failure;
  std::vector<space_id> ids;
};

struct add_lease_notice {
  lease_id id;
  connection_id owner{};
  std::weak_ptr<const lease> added; ///< a reference that does not keep it
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

/// Marks the lease as revoked: from now on nobody can use it by id. It stays listed until its owner has ended it.
struct mark_revoked_request {
  lease_id id;
};
struct mark_revoked_answer {
  error failure; ///< `not_found`
};

/// To each connection of the group, once the lease is marked: what it has of the lease ends.
struct revoke_request {
  lease_id id;
};
struct revoke_answer {
  error failure;                  ///< always `ok`
  bool held = false;              ///< it owned the lease, or read under it
  uint64_t quarantined_bytes = 0; ///< that its client may be reading in place
};

struct leases_request {
  uint64_t after = 0;   ///< a lease's number
  size_t count_max = 0; ///< of `listed`
};
struct lease_report {
  lease_id id;
  uint64_t number = 0; ///< in the order in which they were taken, from 1
  connection_id owner{};
  space_id in{};
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

/// The group keeps the lease from now on, instead of another one for the same prompt.
struct pin_request {
  lease_ptr what;         ///< of no owner
  digest prompt;          ///< its last chunk, found or not
  uint64_t bytes_max = 0; ///< of all pins
};
struct pin_answer {
  error failure; ///< `no_space`, `busy`
};
struct unpin_request {
  space_id in{};
  digest prompt; ///< as it was pinned
};
struct unpin_answer {
  error failure; ///< always `ok`
  uint32_t pins = 0;
  uint64_t bytes = 0; ///< that they held
};

struct group_status_request {};
struct group_report {
  error failure;
  uint64_t spaces = 0;
  uint64_t leases = 0;
  uint64_t old_leases = 0;
  uint64_t sessions = 0;
  uint64_t session_bytes = 0;
  std::vector<space_ptr> open_spaces; ///< the first `protocol::status_spaces_max`
};

} // namespace terrace

// Which sessions hold a lease between turns, in the order in which they give it up when there are too many bytes.
//
// Pure: used by one thread at a time.
#pragma once

#include "group/group_messages.hpp"
#include "group/session_id.hpp"
#include "tier/search/lease_ledger.hpp"

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <unordered_map>

namespace terrace {

/// Physical bytes of host memory that a lease holds.
uint64_t host_bytes_of(const lease& what);

/// Number of leading chunks that the lease holds completely, with all their objects, in host memory.
uint32_t host_chunks_of(const lease& what);

/// The group knows this of a lease that a session holds.
struct session_hold_facts {
  lease_id lease;
  uint64_t host_bytes = 0; ///< bytes of host memory that it holds
  uint64_t tokens = 0;     ///< in all tiers together
  uint64_t bytes = 0;
};

/// The order in which sessions that hold something were used. The sessions own the leases, which belong to no
/// connection and are all charged to one account; it counts an object once, however many sessions hold it.
class session_holds {
 public:
  struct entry {
    session_id session;
    session_hold_facts what;
  };

  /// `account` is null if what is held is not counted.
  explicit session_holds(account_ptr account = nullptr) : account_(std::move(account)) {}

  /// From now on the session holds `what` instead of what it held before, and is the warmest.
  void replace(const session_id& session, const session_hold_facts& what);

  /// Makes the session the warmest. Does nothing if it holds nothing.
  void touch(const session_id& session);

  /// The session holds nothing any more. Returns the lease that it held; none: it held nothing.
  std::optional<lease_id> end(const session_id& session);

  /// Null: the session holds nothing.
  const entry* find(const session_id& session) const;
  const entry* find(const lease_id& lease) const;

  /// The coldest session except `except`. Null: there is no other one.
  const entry* coldest(const session_id& except) const;

  size_t size() const { return line_.size(); }
  /// physical; an object counts once
  uint64_t host_bytes() const { return account_ ? account_->bytes() : 0; }

 private:
  using place = std::list<entry>::iterator;

  account_ptr account_;
  std::list<entry> line_; ///< coldest first
  std::unordered_map<session_id, place> by_session_;
  std::unordered_map<lease_id, place> by_lease_;
};

} // namespace terrace

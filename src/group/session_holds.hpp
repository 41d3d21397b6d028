// The leases that held sessions keep between turns, and the choice of the sessions that give up theirs when
// there are too many bytes.
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

/// The leases belong to no connection. They are all charged to one account, which counts an object once,
/// however many sessions hold it.
class session_holds {
 public:
  struct entry {
    session_id session;
    lease_ptr what;           ///< never null
    uint64_t host_bytes = 0;  ///< bytes of host memory that `what` holds
    uint32_t host_chunks = 0; ///< leading chunks that are held in host memory
  };

  /// `account` is null if what is held is not counted.
  explicit session_holds(account_ptr account = nullptr) : account_(std::move(account)) {}

  /// From now on the session holds `what` and is the warmest. Returns what it held before, or null if it held
  /// nothing. `host_bytes`, `host_chunks`: see `host_bytes_of`, `host_chunks_of`.
  lease_ptr replace(const session_id& session, lease_ptr what, uint64_t host_bytes, uint32_t host_chunks = 0);

  /// Makes the session the warmest. Does nothing if it holds nothing.
  void touch(const session_id& session);

  /// Returns null if the session holds nothing.
  lease_ptr end(const session_id& session);
  lease_ptr end(const lease_id& lease);
  const entry* find(const session_id& session) const;
  const entry* find(const lease_id& lease) const;

  /// Ends the hold of the coldest session except `except`. Returns nothing if there is no other one.
  std::optional<entry> end_coldest(const session_id& except);

  size_t size() const { return line_.size(); }
  /// physical; an object counts once
  uint64_t host_bytes() const { return account_ ? account_->bytes() : 0; }

 private:
  using place = std::list<entry>::iterator;
  lease_ptr take(place at);

  account_ptr account_;
  std::list<entry> line_; ///< coldest first
  std::unordered_map<session_id, place> by_session_;
  std::unordered_map<lease_id, place> by_lease_;
};

} // namespace terrace

// What held sessions keep between turns: a lease for each, and which of them give way when there are too many bytes.
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

/// Physical, of what a lease holds in host memory.
uint64_t host_bytes_of(const lease& what);

/// How many of its first chunks a lease holds in host memory, each with all its objects.
uint32_t host_chunks_of(const lease& what);

/// The leases belong to no connection. All of them together are charged to one account, in which an object counts once,
/// however many sessions hold it.
class session_holds {
 public:
  struct entry {
    session_id session;
    lease_ptr what;           ///< never null
    uint64_t host_bytes = 0;  ///< of it
    uint32_t host_chunks = 0; ///< its first ones, which are held in host memory
  };

  /// Null: what is held is not counted.
  explicit session_holds(account_ptr account = nullptr) : account_(std::move(account)) {}

  /// The session holds `what` from now on, and is the warmest. Returns what it held before; null: nothing.
  /// `host_bytes`, `host_chunks`: see `host_bytes_of`, `host_chunks_of`.
  lease_ptr replace(const session_id& session, lease_ptr what, uint64_t host_bytes, uint32_t host_chunks = 0);

  /// It is the warmest now. No effect if it holds nothing.
  void touch(const session_id& session);

  /// Null: it holds nothing.
  lease_ptr end(const session_id& session);
  lease_ptr end(const lease_id& lease);
  const entry* find(const session_id& session) const;
  const entry* find(const lease_id& lease) const;

  /// Ends the hold of the coldest session but `except`. None: there is no other one.
  std::optional<entry> end_coldest(const session_id& except);

  size_t size() const { return line_.size(); }
  uint64_t host_bytes() const { return account_ ? account_->bytes() : 0; } ///< physical, an object once

 private:
  using place = std::list<entry>::iterator;
  lease_ptr take(place at);

  account_ptr account_;
  std::list<entry> line_; ///< the coldest first
  std::unordered_map<session_id, place> by_session_;
  std::unordered_map<lease_id, place> by_lease_;
};

} // namespace terrace

// The leases of a trust group by id, so that other connections can use them.
#pragma once

#include "connection/group_messages.hpp"

#include <cstddef>
#include <map>
#include <memory>
#include <unordered_map>
#include <unordered_set>

namespace terrace {

/// Keeps no lease alive: that is for its owner and its readers. Contains no actor.
class lease_registry {
 public:
  void add(const lease_id& id, connection_id owner, std::weak_ptr<const lease> added);
  /// Null: it was released, its owner ended, or it never existed.
  lease_ptr find(const lease_id& id) const;
  /// No effect unless it belongs to `owner`.
  void end(const lease_id& id, connection_id owner);
  /// Ends all leases of the owner.
  void end(connection_id owner);
  size_t size() const { return leases_.size(); }

 private:
  std::unordered_map<lease_id, std::weak_ptr<const lease>> leases_;
  std::map<connection_id, std::unordered_set<lease_id>> by_owner_;
};

} // namespace terrace

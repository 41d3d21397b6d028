// The leases of a trust group by id, so that other connections can use them.
#pragma once

#include "connection/group_messages.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace terrace {

/// Keeps no lease alive: that is for its owner and its readers. Contains no actor.
class lease_registry {
 public:
  void add(const lease_id& id, connection_id owner, std::weak_ptr<const lease> added);
  /// Null: it was released or revoked, its owner ended, or it never existed.
  lease_ptr find(const lease_id& id) const;
  /// No effect unless it belongs to `owner`.
  void end(const lease_id& id, connection_id owner);
  /// Ends all leases of the owner.
  void end(connection_id owner);
  /// `find` does not return it any more. It may be marked again. False: there is none.
  bool mark_revoked(const lease_id& id);
  size_t size() const { return leases_.size(); }

  /// At most `count_max` leases with numbers higher than `after`, in the order in which they were added.
  std::vector<lease_report> list(uint64_t after, size_t count_max) const;

 private:
  struct entry {
    lease_id id;
    connection_id owner{};
    std::weak_ptr<const lease> what;
  };

  lease_ptr known(const lease_id& id) const; ///< also if it is revoked
  void erase(const lease_id& id);

  std::map<uint64_t, entry> leases_; ///< by number
  uint64_t last_number_ = 0;
  std::unordered_map<lease_id, uint64_t> numbers_;
  std::map<connection_id, std::unordered_set<lease_id>> by_owner_;
};

} // namespace terrace

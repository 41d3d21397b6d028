// The leases of a trust group by id, so that other connections can use them.
#pragma once

#include "group/group_messages.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
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

  // ---- checks ----

  struct numbered_lease {
    uint64_t number = 0;
    lease_id id;
    connection_id owner{};
    lease_ptr what; ///< null: it has ended, and the notice of that is on its way
  };
  /// The next ones after this number.
  std::vector<numbered_lease> next(uint64_t after, size_t count_max) const;
  size_t owned_by(connection_id owner) const {
    auto owned = by_owner_.find(owner);
    return owned == by_owner_.end() ? 0 : owned->second.size();
  }
  bool belongs_to(const lease_id& id, connection_id owner) const {
    auto owned = by_owner_.find(owner);
    return owned != by_owner_.end() && owned->second.contains(id);
  }
  /// Whether its parts have the same leases. A sentence if not.
  std::vector<std::string> check() const;

  /// At most `count_max` leases with numbers higher than `after`, in the order in which they were added.
  std::vector<lease_report> list(uint64_t after, size_t count_max) const;

 private:
  friend struct damaged_leases; ///< tests break it
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

// The leases of a trust group by id, through which other connections can use them.
#pragma once

#include "group/group_messages.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace terrace {

// The pinned prompts of a trust group: leases without an owner that last until an operator removes them.
//
// Pure: used by one thread at a time.

class pin_registry {
 public:
  static constexpr size_t pins_max = 1'024;

  /// `prompt`: digest of the last chunk of the requested prompt. Replaces the pin of the same prompt and
  /// returns its lease, or null if there was none. Errors: `no_space` if all pins together would exceed
  /// `bytes_max`; `busy` if there are already `pins_max`. On an error nothing changes.
  result<lease_ptr> add(const lease_ptr& lease, const digest& prompt, uint64_t bytes_max);

  /// Returns null if there is no such pin.
  lease_ptr remove(space_id space, const digest& prompt);
  lease_ptr remove(const lease_id& id);

  bool has(const lease_id& id) const;

  size_t size() const { return pins_.size(); }
  uint64_t bytes() const { return bytes_; } ///< bytes that several pins hold count once for each pin

 private:
  using name = std::pair<space_id, digest>;
  lease_ptr take(std::map<name, lease_ptr>::iterator at);

  std::map<name, lease_ptr> pins_;
  uint64_t bytes_ = 0;
};

/// The registry keeps no lease alive: owners and readers do. It contains no actor.
class lease_registry {
 public:
  void add(const lease_id& id, connection_id owner, std::weak_ptr<const lease> added);
  /// Returns null if the lease was released or revoked, if its owner has ended, or if it never existed.
  lease_ptr find(const lease_id& id) const;
  /// Does nothing unless the lease belongs to `owner`.
  void end(const lease_id& id, connection_id owner);
  /// Ends all leases of the owner.
  void end(connection_id owner);
  /// From now on `find` does not return the lease. Marking it again is allowed. Returns false if there is no
  /// such lease.
  bool mark_revoked(const lease_id& id);
  size_t size() const { return leases_.size(); }

  // ---- checks ----

  struct numbered_lease {
    uint64_t number = 0;
    lease_id id;
    connection_id owner{};
    lease_ptr lease; ///< null: it has ended, and the notice of that is in flight
  };
  /// Returns the next leases after this number.
  std::vector<numbered_lease> next(uint64_t after, size_t count_max) const;
  size_t owned_by(connection_id owner) const {
    auto owned = by_owner_.find(owner);
    return owned == by_owner_.end() ? 0 : owned->second.size();
  }
  bool belongs_to(const lease_id& id, connection_id owner) const {
    auto owned = by_owner_.find(owner);
    return owned != by_owner_.end() && owned->second.contains(id);
  }
  /// Checks that the indexes of the registry have the same leases. Returns a sentence for each difference.
  std::vector<std::string> check() const;

  /// Returns at most `count_max` leases with numbers above `after`, in the order in which they were added.
  std::vector<lease_report> list(uint64_t after, size_t count_max) const;

 private:
  friend struct damaged_leases; ///< tests damage it
  struct entry {
    lease_id id;
    connection_id owner{};
    std::weak_ptr<const lease> what;
  };

  lease_ptr known(const lease_id& id) const; ///< returns revoked leases as well
  void erase(const lease_id& id);

  std::map<uint64_t, entry> leases_; ///< by number
  uint64_t last_number_ = 0;
  std::unordered_map<lease_id, uint64_t> numbers_;
  std::map<connection_id, std::unordered_set<lease_id>> by_owner_;
};

} // namespace terrace

// The pinned prompts of a trust group: leases without an owner that last until an operator removes them.
//
// Pure: used by one thread at a time.
#pragma once

#include "group/group_messages.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

namespace terrace {

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

} // namespace terrace

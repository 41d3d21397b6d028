// The pinned prompts of a trust group: leases that belong to nobody, and end when they are removed.
//
// Pure: used by one thread at a time.
#pragma once

#include "group/group_messages.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

namespace terrace {

class pin_book {
 public:
  static constexpr size_t pins_max = 1'024;

  /// `prompt`: the last chunk of what was asked for. A pin of the same prompt is replaced, and returned; null: there was
  /// none. Errors: `no_space`, over `bytes_max` of all pins; `busy`, over `pins_max`; then nothing has changed.
  result<lease_ptr> add(const lease_ptr& what, const digest& prompt, uint64_t bytes_max);

  /// Null: there is none.
  lease_ptr remove(space_id in, const digest& prompt);
  lease_ptr remove(const lease_id& id);

  bool has(const lease_id& id) const;

  size_t size() const { return pins_.size(); }
  uint64_t bytes() const { return bytes_; } ///< of what several pins hold, for each of them

 private:
  using name = std::pair<space_id, digest>;
  lease_ptr take(std::map<name, lease_ptr>::iterator at);

  std::map<name, lease_ptr> pins_;
  uint64_t bytes_ = 0;
};

} // namespace terrace

// Objects that the policy must not name for now, because their tenant has no more than its guaranteed share.
#pragma once

#include "index/object_id.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_set>
#include <utility>
#include <vector>

namespace terrace {

/// The shielded objects of one tenant, in the order in which the policy named them: the least valuable first. They lose
/// the shield in the same order. So a policy that would name them first each time names each of them once, however
/// large the share is. `live` (id) returns the bytes of an object that is still there, or 0.
class tenant_shield {
 public:
  bool empty() const { return line_.empty(); }
  size_t size() const { return line_.size(); }

  template <class Live>
  void add(object_id id, Live&& live) {
    if (!in_.insert(id).second)
      return; // its last hold has ended, and then the policy named it again
    if (line_.size() >= sweep_at_)
      sweep(live);
    line_.push_back(id);
  }

  /// Removes the first objects until they have `bytes`. The policy may name them again.
  template <class Live>
  void take(uint64_t bytes, std::vector<object_id>& out, Live&& live) {
    for (uint64_t taken = 0; taken < bytes && !line_.empty(); line_.pop_front()) {
      in_.erase(line_.front());
      if (uint64_t size = live(line_.front()); size != 0) {
        out.push_back(line_.front());
        taken += size;
      }
    }
  }

 private:
  template <class Live>
  void sweep(Live&& live) {
    std::deque<object_id> left;
    for (object_id id : std::exchange(line_, {}))
      if (live(id) != 0)
        left.push_back(id);
      else
        in_.erase(id);
    line_ = std::move(left);
    sweep_at_ = 2 * line_.size() + sweep_min;
  }

  static constexpr size_t sweep_min = 1024;
  std::deque<object_id> line_;
  std::unordered_set<object_id> in_;
  size_t sweep_at_ = sweep_min;
};

} // namespace terrace

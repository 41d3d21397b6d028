// The contents of one tier of a simulated daemon, and eviction.
#pragma once

#include "cli/simulate/chunk_tracker.hpp"

#include <functional>
#include <vector>

namespace terrace::simulate {

class tier_contents {
 public:
  /// Makes room for `capacity` chunks of a workload with `distinct` ones. The tracker must outlive it.
  tier_contents(chunk_tracker& tracker, tier_number tier, uint64_t capacity, size_t distinct)
      : tracker_(tracker), tier_(tier), capacity_(capacity), resident_(distinct) {}

  bool holds(chunk which) const { return resident_[which]; }
  uint64_t used() const { return used_; }
  uint64_t evicted() const { return evicted_; }
  uint64_t room() const { return capacity_ - used_; }
  bool has_room(uint64_t chunks) const { return chunks <= room(); }

  /// Evicts until `chunks` more fit, and calls `leaving` before each eviction. False if they cannot be made
  /// to fit; chunks evicted until then stay evicted, as in a daemon.
  bool make_room(uint64_t chunks, const std::function<void(chunk)>& leaving = {});

  /// Precondition (asserted): there is room.
  void insert(chunk which);

  void pin(chunk which) { tracker_.pin(tier_, which); }
  void unpin(chunk which) { tracker_.unpin(tier_, which); }

 private:
  chunk_tracker& tracker_;
  tier_number tier_;
  uint64_t capacity_;
  std::vector<bool> resident_;
  uint64_t used_ = 0;
  uint64_t evicted_ = 0;
};

} // namespace terrace::simulate

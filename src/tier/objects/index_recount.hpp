// Counts the index of a tier again, for checks, and sums up by path what journals must have recorded of it.
#pragma once

#include "memory/striped_allocator.hpp"
#include "tier/objects/journal_sums.hpp"
#include "tier/objects/tier_objects.hpp"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace terrace {

/// Part of a residency. Pure; used by one thread at a time.
class index_recount {
 public:
  explicit index_recount(tier_objects& objects) : objects_(objects) {}

  void begin();
  void end() { objects_.table().end_recount(); }
  bool step(uint32_t slots) { return objects_.table().recount_step(slots); }

  /// Sums up what the journals of a durable tier on these paths have recorded, before the tier serves.
  void tally_recorded(const path_map& paths);
  std::vector<journal_sums> take_recorded() { return std::move(recorded_); }
  /// Returns the summary of the index by path, from the recount after its last step. Objects that are being
  /// cleared are forgotten in it.
  std::vector<journal_sums> for_journals() const;

  /// Between these calls, journals still have the removed objects: they are told of all of them together, afterwards.
  void begin_clear(std::optional<space_id> space) { clears_.push_back(space); }
  void end_clear(std::optional<space_id> space);

 private:
  void tally(std::vector<journal_sums>& by_path, uint32_t slot, const resident& object, bool counts) const;

  tier_objects& objects_;
  std::optional<path_map> paths_; ///< paths of a durable tier
  std::vector<journal_sums> recorded_, counted_;
  std::vector<std::optional<space_id>> clears_; ///< clears in progress
};

} // namespace terrace

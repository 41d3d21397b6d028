// Counts the index of a tier again, for checks, and sums up by path what journals must have recorded of it.
#pragma once

#include "index/table_recount.hpp"
#include "memory/striped_allocator.hpp"
#include "tier/objects/index_keeping.hpp"
#include "tier/objects/tier_objects.hpp"

#include <algorithm>
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
  void end() { walk_.reset(); }
  bool step(uint32_t slots) { return walk_->step(slots); }
  const table_recount* walk() const { return walk_ ? &*walk_ : nullptr; } ///< null: no recount is in progress

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
  std::optional<table_recount> walk_;
  std::optional<path_map> paths_; ///< paths of a durable tier
  std::vector<journal_sums> recorded_, counted_;
  std::vector<std::optional<space_id>> clears_; ///< clears in progress
};

inline void index_recount::tally(std::vector<journal_sums>& by_path, uint32_t slot, const resident& object,
                                 bool counts) const {
  if (!readable(object.state()))
    return;
  journal_sums& of = by_path[paths_->path_of(object.offset())];
  if (counts)
    of.add(object.key().space, objects_.durable()->generation_at(slot));
  else
    of.subtract(object.key().space, objects_.durable()->generation_at(slot));
}

inline void index_recount::tally_recorded(const path_map& paths) {
  paths_ = paths;
  recorded_.assign(paths.paths(), {});
  const resident_table& table = objects_.table();
  for (uint32_t slot = 0; slot < table.slots(); ++slot)
    tally(recorded_, slot, table.at_slot(slot), true);
}

inline void index_recount::begin() {
  if (objects_.durable() == nullptr || !paths_) {
    walk_.emplace(objects_.table());
    return;
  }
  counted_.assign(paths_->paths(), {});
  walk_.emplace(objects_.table(), [this](uint32_t slot, const resident& object, bool counts) {
    tally(counted_, slot, object, counts);
  });
}

inline std::vector<journal_sums> index_recount::for_journals() const {
  std::vector<journal_sums> all = counted_;
  for (const auto& space : clears_)
    for (journal_sums& one : all)
      one.forget(space, objects_.durable()->epoch() + 1);
  return all;
}

inline void index_recount::end_clear(std::optional<space_id> space) {
  clears_.erase(std::ranges::find(clears_, space));
}

} // namespace terrace

// The latest journal event of each extent.
#pragma once

#include "index/index_record.hpp"

#include <vector>

namespace terrace {

/// Records may be added in any order. `settle` then determines the last event at each offset: the one with
/// the highest generation, where a removal is later than the publication with the same generation.
class journal_events {
 public:
  /// `arena_bytes` sizes a table with one bit per block, so that most queries take one memory access.
  explicit journal_events(uint64_t arena_bytes) : known_blocks_(arena_bytes / disk_alignment_bytes) {}

  /// Adds a `publish` or `remove` record.
  void add(const index_record& record) {
    uint64_t block = record.offset / disk_alignment_bytes;
    if (block < known_blocks_.size())
      known_blocks_[block] = true;
    last_.push_back({record.offset, record.generation, record.kind == record_kind::remove, records_.size()});
    records_.push_back(record);
  }

  /// Call after the last `add`.
  void settle();

  /// True if an event at the record's offset is at least as new as the record, which is therefore void.
  bool supersedes(const index_record& record) const {
    uint64_t block = record.offset / disk_alignment_bytes;
    if (block < known_blocks_.size() && !known_blocks_[block])
      return false;
    return has_later(record);
  }

  size_t size() const { return last_.size(); }

  /// The objects present now, by offset.
  template <class Use>
  void for_each_published(Use&& use) const {
    for (const event& one : last_)
      if (!one.removes)
        use(records_[one.record]);
  }

 private:
  struct event {
    uint64_t offset;
    uint64_t generation;
    bool removes;
    size_t record;
  };

  bool has_later(const index_record& record) const;

  std::vector<bool> known_blocks_;
  std::vector<index_record> records_;
  std::vector<event> last_; ///< by offset, once settled
};

} // namespace terrace

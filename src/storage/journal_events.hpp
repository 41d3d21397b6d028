// The latest that a journal says of each extent.
#pragma once

#include "storage/index_record.hpp"

#include <vector>

namespace terrace {

/// Records are added in any order, then `settle` finds the last event of each offset: the one with the highest generation, a
/// removal being later than the publication of the same generation.
class journal_events {
 public:
  /// `arena_bytes` sizes a table with a bit for each block, so that most questions cost one look.
  explicit journal_events(uint64_t arena_bytes) : known_blocks_(arena_bytes / disk_alignment_bytes) {}

  /// A `publish` or `remove` record.
  void add(const index_record& record) {
    uint64_t block = record.offset / disk_alignment_bytes;
    if (block < known_blocks_.size())
      known_blocks_[block] = true;
    last_.push_back({record.offset, record.generation, record.kind == record_kind::remove, records_.size()});
    records_.push_back(record);
  }

  /// After the last `add`.
  void settle();

  /// Something happened at the record's offset that is not older than it: what the record says does not count.
  bool supersedes(const index_record& record) const {
    uint64_t block = record.offset / disk_alignment_bytes;
    if (block < known_blocks_.size() && !known_blocks_[block])
      return false;
    return has_later(record);
  }

  size_t size() const { return last_.size(); }

  /// Those that are there now, by offset.
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

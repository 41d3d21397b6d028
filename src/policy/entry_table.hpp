// What is known of every tracked entry, found by its key: residents of all tiers, and ghosts.
#pragma once

#include "base/object_key.hpp"
#include "policy/paged_column.hpp"

#include <cstdint>

namespace terrace {

/// An entry's place in its table. Free places are used again, the last freed first.
using entry_index = uint32_t;
constexpr entry_index no_entry = ~entry_index{0};

struct entry_record {
  entry_key key;
  entry_index next = no_entry;   ///< in its bucket, or among the free places
  entry_index parent = no_entry; ///< valid while the entry is alive in some tier (see prefix_forest)
  uint32_t stamp = 0;            ///< when it was last used, by `access_clock`
  uint32_t history = 0;          ///< the learner's, see access_history
};
static_assert(sizeof(entry_record) == 32);

/// Chained hashing that grows by one bucket at a time (linear hashing, Litwin 1980), three entries a bucket: 34 bytes an
/// entry at every size, and no insertion that moves everything.
class entry_table {
 public:
  entry_table();

  entry_index find(entry_key key) const;

  /// `key` must be unknown.
  entry_index add(entry_key key);
  void remove(entry_index at);

  entry_record& operator[](entry_index at) { return records_[at]; }
  const entry_record& operator[](entry_index at) const { return records_[at]; }

  /// Places below this number have been used; those of removed entries have an empty key.
  entry_index end() const { return end_; }
  size_t size() const { return size_; }
  size_t bytes() const { return records_.bytes() + heads_.bytes(); }

 private:
  static constexpr size_t entries_per_bucket = 3;

  size_t bucket_of(entry_key key) const;
  void add_bucket();

  paged_column<entry_record> records_;
  paged_column<entry_index> heads_; ///< index + 1; 0: empty
  size_t buckets_ = 1;
  size_t round_ = 1; ///< buckets when this round of splitting began: a power of two
  entry_index free_ = no_entry;
  entry_index end_ = 0;
  size_t size_ = 0;
};

} // namespace terrace

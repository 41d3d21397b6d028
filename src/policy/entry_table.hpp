// The records of all tracked entries by key: residents of all tiers, and ghosts.
#pragma once

#include "base/object_key.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace terrace {

// An array that grows page by page: nothing moves, and at most one page is unused.

/// A `std::vector` doubles its capacity, so half of it may be unused, and the copy stalls its owner. A column
/// has at most one page of slack. Elements are value-initialized.
template <class T, size_t PageElements = 2048>
class paged_column {
 public:
  static constexpr size_t page_elements = PageElements;

  T& operator[](size_t i) { return pages_[i / page_elements][i % page_elements]; }
  const T& operator[](size_t i) const { return pages_[i / page_elements][i % page_elements]; }

  /// Makes elements 0 to `count` - 1 exist. Frees pages beyond `count` elements, but keeps one more page, so
  /// that a size near a page boundary costs nothing.
  void reach(size_t count) {
    while (pages_.size() * page_elements < count)
      pages_.push_back(std::make_unique<T[]>(page_elements));
  }

  /// Gives back all unused pages but one, so that a size that varies around the edge of a page costs nothing.
  void trim(size_t count) {
    while (pages_.size() > count / page_elements + 2)
      pages_.pop_back();
  }

  size_t bytes() const {
    return pages_.size() * page_elements * sizeof(T) + pages_.capacity() * sizeof(pages_[0]);
  }

 private:
  std::vector<std::unique_ptr<T[]>> pages_;
};

/// A stack on a paged_column.
template <class T, size_t PageElements = 2048>
class paged_stack {
 public:
  void push(const T& value) {
    column_.reach(size_ + 1);
    column_[size_++] = value;
  }
  void pop() { column_.trim(--size_); }
  T& back() { return column_[size_ - 1]; }
  T& operator[](size_t i) { return column_[i]; }
  const T& operator[](size_t i) const { return column_[i]; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  size_t bytes() const { return column_.bytes(); }

 private:
  paged_column<T, PageElements> column_;
  size_t size_ = 0;
};

/// The index of an entry in its table. Freed indexes are reused, the last freed first.
using entry_index = uint32_t;
constexpr entry_index no_entry = ~entry_index{0};

struct entry_record {
  entry_key key;
  entry_index next = no_entry;   ///< the next one in its bucket, or in the free list
  entry_index parent = no_entry; ///< valid while the entry is alive in some tier (see prefix_forest)
  uint32_t stamp = 0;            ///< time of the last access, by `access_clock`
  uint32_t history = 0;          ///< see access_history
};
static_assert(sizeof(entry_record) == 32);

/// Chained hashing that grows by one bucket at a time (linear hashing, Litwin 1980) with three entries per
/// bucket: 34 bytes per entry at every size, and no insertion rehashes the whole table.
class entry_table {
 public:
  entry_table();

  entry_index find(entry_key key) const;
  /// Returns the same as `find`, sooner if the entry is beside `near`: entries of a chain that came together
  /// have neighboring indexes.
  entry_index find_near(entry_key key, entry_index near) const;

  /// Loads what `find` and `add` read for these keys into the cache, with many misses at a time instead of
  /// one after the other; little of a large table is in the cache. Worth it from a few keys on.
  void fetch(std::span<const entry_key> keys) const;

  /// Loads the entry's record into the cache.
  void fetch(entry_index at) const { __builtin_prefetch(&records_[at]); }

  /// Makes buckets for so many entries, which otherwise come one by one and rehash what is there, but at most `buckets_max`.
  /// Takes 4 bytes for each. Returns false when all are there.
  bool reserve(size_t entries, size_t buckets_max);

  /// `key` must not be in the table.
  entry_index add(entry_key key);
  void remove(entry_index at);

  entry_record& operator[](entry_index at) { return records_[at]; }
  const entry_record& operator[](entry_index at) const { return records_[at]; }

  /// All indexes in use are below this number; removed entries have an empty key.
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
  size_t round_ = 1; ///< number of buckets when this round of splitting began, a power of two
  entry_index free_ = no_entry;
  entry_index end_ = 0;
  size_t size_ = 0;
};

// A small value per entry of a tier, initially 0.

template <class T>
class entry_marks {
 public:
  T get(entry_index at) const { return at < reached_ ? column_[at] : T{}; }
  void set(entry_index at, T value) {
    if (at >= reached_) {
      column_.reach(at + size_t{1});
      reached_ = (at / column_.page_elements + 1) * column_.page_elements;
    }
    column_[at] = value;
  }
  size_t bytes() const { return column_.bytes(); }

 private:
  paged_column<T> column_;
  size_t reached_ = 0;
};

} // namespace terrace

// Which part of a region is mapped ahead next.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace terrace {

/// A region is populated in passes of slices: a pass maps the pages that exist in it, and skips slices that are whole
/// already. The next one goes on where the last one ended.
///
/// A client decides how much of its region exists, so it also decides what a pass costs: one looks at no more than a
/// multiple of the bytes that exist, however large the region is. Pure, and used by one thread at a time.
class populate_course {
 public:
  static constexpr uint64_t page_bytes = 4096;
  static constexpr uint64_t slice_bytes = 2 << 20; ///< about 0.1 ms
  /// Without pages of its own a slice is looked at in a hundredth of the time in which one is mapped.
  static constexpr uint64_t looked_at_per_present = 8;
  static constexpr uint64_t looked_at_least = 64 << 20;

  explicit populate_course(uint64_t region_bytes);

  struct slice {
    uint64_t offset = 0;
    uint64_t bytes = 0;
  };

  /// Begins a pass over a region of which so many bytes exist. False: all that could be found was found.
  bool begin(uint64_t present_bytes);

  /// The next slice of the pass; nullopt: it is over.
  std::optional<slice> next();

  /// So many pages of the slice exist, and are mapped now.
  void add(const slice& what, uint64_t pages);

  bool is_whole(const slice& what) const { return is_whole(what.offset / slice_bytes); } ///< all of its pages
  bool whole() const { return whole_slices_ == mapped_.size(); } ///< nothing is left to populate
  uint64_t new_bytes() const { return new_bytes_; }              ///< of the pass: mapped for the first time

 private:
  uint64_t bytes_of(size_t number) const;
  bool is_whole(size_t number) const;

  const uint64_t region_bytes_;
  std::vector<uint16_t> mapped_; // by slice: pages that existed when it was looked at last
  uint64_t mapped_bytes_ = 0;    // sum of `mapped_`
  size_t whole_slices_ = 0;
  size_t at_ = 0;               // the slice that is looked at next
  size_t slices_left_ = 0;      // of the pass
  uint64_t looked_at_left_ = 0; // bytes
  uint64_t present_bytes_ = 0;  // as the pass began
  uint64_t new_bytes_ = 0;
};

/// After how many copies a region is worth another pass: each one while passes find something, and ever fewer while
/// they do not.
class populate_rhythm {
 public:
  static constexpr int32_t never = INT32_MAX;
  static constexpr int32_t most = 1 << 16;

  /// A pass has found so many bytes.
  int32_t after(uint64_t new_bytes) {
    copies_ = new_bytes != 0 ? 1 : copies_ < most ? copies_ * 2 : most;
    return copies_;
  }

 private:
  int32_t copies_ = 1;
};

} // namespace terrace

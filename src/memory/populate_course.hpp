// Decides which part of a region is mapped ahead next.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace terrace {

/// A region is populated in passes of slices: a pass maps the pages that exist in it, and skips slices that are already
/// whole. Each pass starts where the last one ended.
///
/// The client decides how much of its region exists, and so how much a pass costs: a pass looks at no more than a
/// multiple of the bytes that exist, however large the region is. Pure, and used by one thread at a time.
class populate_course {
 public:
  static constexpr uint64_t page_bytes = 4096;
  static constexpr uint64_t slice_bytes = 2 << 20; ///< mapping one takes about 0.1 ms
  /// Looking at a slice without pages takes a hundredth of the time in which a slice is mapped.
  static constexpr uint64_t looked_at_per_present = 8;
  static constexpr uint64_t looked_at_least = 64 << 20;

  explicit populate_course(uint64_t region_bytes);

  struct slice {
    uint64_t offset = 0;
    uint64_t bytes = 0;
  };

  /// Begins a pass over a region in which `present_bytes` exist. Returns false if everything that could be
  /// found has been found.
  bool begin(uint64_t present_bytes);

  /// Returns the next slice of the pass; nullopt: the pass is over.
  std::optional<slice> next();

  /// Notes that `pages` pages of the slice exist and are mapped now.
  void add(const slice& what, uint64_t pages);

  /// all of the slice's pages are mapped
  bool is_whole(const slice& what) const { return is_whole(what.offset / slice_bytes); }
  bool whole() const { return whole_slices_ == mapped_.size(); } ///< nothing is left to populate
  uint64_t new_bytes() const { return new_bytes_; } ///< bytes that this pass mapped for the first time

 private:
  uint64_t bytes_of(size_t number) const;
  bool is_whole(size_t number) const;

  const uint64_t region_bytes_;
  std::vector<uint16_t> mapped_; // by slice: how many pages existed when the slice was looked at last
  uint64_t mapped_bytes_ = 0;    // sum of `mapped_`
  size_t whole_slices_ = 0;
  size_t at_ = 0;               // the slice that is looked at next
  size_t slices_left_ = 0;      // of this pass
  uint64_t looked_at_left_ = 0; // bytes left to look at in this pass
  uint64_t present_bytes_ = 0;  // when the pass began
  uint64_t new_bytes_ = 0;
};

/// Says after how many copies a region is worth another pass: after every copy while passes find new pages,
/// and ever more rarely while they do not.
class populate_rhythm {
 public:
  static constexpr int32_t never = INT32_MAX;
  static constexpr int32_t most = 1 << 16;

  /// A pass has mapped `new_bytes` for the first time. Returns the number of copies until the next pass.
  int32_t after(uint64_t new_bytes) {
    copies_ = new_bytes != 0 ? 1 : copies_ < most ? copies_ * 2 : most;
    return copies_;
  }

 private:
  int32_t copies_ = 1;
};

} // namespace terrace

// The layout of a transfer's objects in a region: each object is split into the pieces of its runs, in order.
#pragma once

#include "base/error.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace terrace {

/// `count` pieces of `bytes` each, piece i at region offset `offset + i * stride`.
struct region_run {
  uint64_t offset = 0;
  uint64_t bytes = 0;
  uint64_t stride = 0;
  uint64_t count = 1;
};

/// A piece of one object: `bytes` at `object_offset` in the payload are at `region_offset`.
struct object_piece {
  uint64_t object_offset = 0;
  uint64_t region_offset = 0;
  uint64_t bytes = 0;
};

/// The pieces of one object, one after the other; adjacent ones are merged. A run of a million pieces takes no memory,
/// and one whose pieces are adjacent is one piece. Refers to the runs.
class piece_cursor {
 public:
  piece_cursor() = default;
  explicit piece_cursor(std::span<const region_run> runs) : runs_(runs) {}

  std::optional<object_piece> next(); ///< nothing: that was the last

 private:
  struct range {
    uint64_t offset = 0;
    uint64_t bytes = 0;
  };
  range here() const; ///< the next piece, or the rest of its run if that is adjacent
  void advance();

  std::span<const region_run> runs_;
  uint64_t piece_ = 0; ///< of the first run
  uint64_t object_offset_ = 0;
};

/// The runs of all objects of a request. Immutable after `make`.
class scatter_gather {
 public:
  /// `runs_per_object` is parallel to `object_bytes`, or empty: one run each. Errors (`bad_request`): the
  /// runs do not add up to the objects, or exceed [0, region_bytes).
  static result<scatter_gather> make(std::span<const region_run> runs,
                                     std::span<const uint32_t> runs_per_object,
                                     std::span<const uint64_t> object_bytes, uint64_t region_bytes);

  size_t objects() const { return first_run_.empty() ? 0 : first_run_.size() - 1; }

  std::span<const region_run> runs(size_t object) const {
    return std::span(runs_).subspan(first_run_[object], first_run_[object + 1] - first_run_[object]);
  }
  piece_cursor pieces(size_t object) const { return piece_cursor(runs(object)); }
  uint64_t piece_count(size_t object) const; ///< how many the cursor has; takes as long as the object has runs
  uint64_t bytes(size_t object) const;

 private:
  std::vector<region_run> runs_;
  std::vector<size_t> first_run_; ///< per object, plus one past the last
};

} // namespace terrace

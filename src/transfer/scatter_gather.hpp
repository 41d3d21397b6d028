// The layout of a transfer's objects in a region: each object is split into the pieces of its runs, in order.
#pragma once

#include "base/error.hpp"
#include "base/keep_alive.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace terrace {

/// `count` pieces of `bytes` each, piece i at region offset `offset + i * stride`.
struct region_run {
  /// As `offset`: so many bytes of the object have no place in the region.
  static constexpr uint64_t skipped = UINT64_MAX;

  uint64_t offset = 0;
  uint64_t bytes = 0;
  uint64_t stride = 0;
  uint64_t count = 1;

  bool is_skipped() const { return offset == skipped; }
};

/// A piece of one object: `bytes` at `object_offset` in the payload are at `region_offset`.
struct object_piece {
  uint64_t object_offset = 0;
  uint64_t region_offset = 0;
  uint64_t bytes = 0;
};

/// A part of a payload.
struct payload_range {
  uint64_t begin = 0;
  uint64_t end = UINT64_MAX; ///< or the payload's, if that is less
};

/// The pieces of one object, or of a part of it, one after the other; adjacent ones are merged. A run of a million pieces takes
/// no memory, and one whose pieces are adjacent is one piece. Refers to the runs.
class piece_cursor {
 public:
  piece_cursor() = default;
  explicit piece_cursor(std::span<const region_run> runs, payload_range part = {});

  std::optional<object_piece> next(); ///< nothing: that was the last

 private:
  struct range {
    uint64_t offset = 0;
    uint64_t bytes = 0;
  };
  range here() const; ///< the next piece, or the rest of its run if that is adjacent
  void advance();

  std::span<const region_run> runs_;
  uint64_t piece_ = 0;  ///< of the first run
  uint64_t within_ = 0; ///< that piece, or a skipped run
  uint64_t object_offset_ = 0;
  uint64_t end_ = UINT64_MAX; ///< of the part
};

/// The runs of all objects of a request. Immutable after `make`.
class scatter_gather {
 public:
  /// Of a few runs, which are copied. `runs_per_object` is parallel to `object_bytes`, or empty: one run each. Errors:
  /// those of `scatter_gather_maker`.
  static result<scatter_gather> make(std::span<const region_run> runs,
                                     std::span<const uint32_t> runs_per_object,
                                     std::span<const uint64_t> object_bytes, uint64_t region_bytes);

  /// Some bytes have no place: they can be loaded, and not stored.
  bool skips() const { return skips_; }

  size_t objects() const { return first_run_.empty() ? 0 : first_run_.size() - 1; }

  std::span<const region_run> runs(size_t object) const {
    return runs_.subspan(first_run_[object], first_run_[object + 1] - first_run_[object]);
  }
  piece_cursor pieces(size_t object, payload_range part = {}) const {
    return piece_cursor(runs(object), part);
  }
  struct content {
    uint64_t bytes = 0;  ///< with a place
    uint64_t pieces = 0; ///< as many as the cursor has
  };
  /// Takes as long as the object has runs.
  content count(size_t object, payload_range part = {}) const;

 private:
  friend class scatter_gather_maker;

  std::span<const region_run> runs_;
  keep_alive owner_;                ///< of the runs
  std::vector<uint32_t> first_run_; ///< per object, plus one past the last
  bool skips_ = false;
};

/// Checks the runs of a request a part at a time: there may be half a million, which take milliseconds.
class scatter_gather_maker {
 public:
  /// Runs per step: 100 us.
  static constexpr size_t step_runs = 16'384;

  struct input {
    std::span<const region_run> runs;          ///< at most 2^32 - 1
    std::span<const uint32_t> runs_per_object; ///< parallel to the objects, or empty: one run each
    keep_alive owner;                          ///< of the runs and of their numbers per object
    std::span<const uint64_t> object_bytes;    ///< must outlive the maker
    uint64_t region_bytes = 0;
    uint64_t pieces_max = UINT64_MAX; ///< of all runs
  };
  explicit scatter_gather_maker(input source);

  /// True: it is done. Errors (`bad_request`): the runs do not add up to the objects, exceed [0, region_bytes), or have
  /// more pieces.
  result<bool> step(size_t runs_max = step_runs);
  /// Call once, when it is done.
  scatter_gather take() { return std::move(made_); }

 private:
  result<void> open_object();
  result<void> add(const region_run& run);
  result<void> close_object();

  input of_;
  scatter_gather made_;
  size_t at_ = 0;       ///< the next run
  size_t object_ = 0;   ///< to which it belongs
  size_t left_ = 0;     ///< runs of that object, from the next one on
  bool open_ = false;   ///< the object has begun
  uint64_t sum_ = 0;    ///< bytes of that object so far
  uint64_t pieces_ = 0; ///< so far
};

} // namespace terrace

// The layout of a transfer's objects in a region: each object is split into the pieces of its runs, in order.
#pragma once

#include "base/error.hpp"

#include <cstdint>
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

/// The pieces of all objects of a request. Immutable after `make`.
class scatter_gather {
 public:
  /// `runs_per_object` is parallel to `object_bytes`, or empty: one run each. Errors (`bad_request`): the
  /// runs do not add up to the objects, or exceed [0, region_bytes).
  static result<scatter_gather> make(std::span<const region_run> runs,
                                     std::span<const uint32_t> runs_per_object,
                                     std::span<const uint64_t> object_bytes, uint64_t region_bytes);

  size_t objects() const { return first_run_.empty() ? 0 : first_run_.size() - 1; }

  /// The pieces of one object; adjacent pieces are merged.
  std::vector<object_piece> pieces(size_t object) const;

 private:
  std::vector<region_run> runs_;
  std::vector<size_t> first_run_; ///< per object, plus one past the last
};

} // namespace terrace

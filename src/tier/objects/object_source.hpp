// The objects of a request, of which only a part needs to exist at a time.
#pragma once

#include "tier/messages.hpp"
#include "tier/objects/object_batch.hpp"

#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace terrace {

/// All objects of a batch, or of some chunks on all ranks (numbered as in index/chunk_layout.hpp), whose keys are made
/// when they are needed: 65,536 chunks on 64 ranks have four million. Immutable and cheap to copy; safe on any thread.
class object_source {
 public:
  object_source() = default;
  object_source(batch_ptr whole) : whole_(std::move(whole)) {}
  object_source(space_ptr space, std::shared_ptr<const std::vector<digest>> chunks);

  size_t size() const { return whole_ ? whole_->size() : size_; }

  /// Some of the objects: those of `range` in `objects`.
  struct part {
    batch_ptr objects;
    object_range range;
  };
  /// Returns objects [first, first + count), up to the end. Objects made from chunks have only keys and
  /// `trailing`, which is all that a probe needs.
  part cut(size_t first, size_t count) const;

  /// Returns objects [first, first + count), up to the end, with all that a batch has.
  batch_ptr whole(size_t first, size_t count) const;

  /// Chunks with one object each: the keys equal `like` except for their chunk.
  struct chunk_part {
    object_key like;
    std::span<const digest> chunks;
  };
  std::optional<chunk_part> chunks(size_t first, size_t count) const;

  /// Returns only their keys, made in `room` if they do not exist. Precondition: `room` has `count` elements.
  std::span<const object_key> keys(size_t first, size_t count, std::span<object_key> room) const;

 private:
  batch_ptr whole_;
  space_ptr in_;
  std::shared_ptr<const std::vector<digest>> chunks_;
  size_t size_ = 0; ///< number of objects of `chunks_`
};

} // namespace terrace

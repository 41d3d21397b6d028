// The objects of a request, of which only a part at a time need exist.
#pragma once

#include "tier/objects/object_batch.hpp"
#include "tier/objects/publish.hpp"

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
  object_source(space_ptr in, std::shared_ptr<const std::vector<digest>> chunks);

  size_t size() const { return whole_ ? whole_->size() : size_; }

  /// Some of them: the objects of `range` in `objects`.
  struct part {
    batch_ptr objects;
    object_range range;
  };
  /// Objects [first, first + count), up to the end. Of chunks, only keys and `trailing`: all that a probe needs.
  part cut(size_t first, size_t count) const;

  /// Of chunks with one object each: the keys are `like` but for their chunk.
  struct chunk_part {
    object_key like;
    std::span<const digest> chunks;
  };
  std::optional<chunk_part> chunks(size_t first, size_t count) const;

  /// Their keys alone; made in `room` if they do not exist. Precondition: `room` has `count` elements.
  std::span<const object_key> keys(size_t first, size_t count, std::span<object_key> room) const;

 private:
  batch_ptr whole_;
  space_ptr in_;
  std::shared_ptr<const std::vector<digest>> chunks_;
  size_t size_ = 0; ///< objects of `chunks_`
};

} // namespace terrace

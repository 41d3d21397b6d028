// The objects of a lease whose locations a client was told.
#pragma once

#include "index/object_id.hpp"

#include <array>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace terrace {

/// Keyed by number in the lease (index/chunk_layout.hpp); a later object replaces an earlier one with its
/// number. Grows in blocks, so that no call takes long. Used by one thread at a time.
class told_places {
 public:
  bool has(size_t number, object_id id) const {
    size_t at = number / block_objects;
    return at < blocks_.size() && blocks_[at] && (*blocks_[at])[number % block_objects] == id;
  }
  /// Returns false if the object was told already.
  bool add(size_t number, object_id id) {
    size_t at = number / block_objects;
    if (at >= blocks_.size())
      blocks_.resize(at + 1);
    if (!blocks_[at])
      blocks_[at] = std::make_unique<block>();
    return std::exchange((*blocks_[at])[number % block_objects], id) != id;
  }

 private:
  static constexpr size_t block_objects = 512;
  using block = std::array<object_id, block_objects>;
  std::vector<std::unique_ptr<block>> blocks_;
};

} // namespace terrace

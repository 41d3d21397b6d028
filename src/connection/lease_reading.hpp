// Tells a client the locations of a lease's objects, step by step.
#pragma once

#include "group/group_messages.hpp"
#include "index/resident.hpp"
#include "tier/objects/object_hold.hpp"
#include "tier/objects/object_place.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace terrace {

// The objects of a lease whose locations a client was told.

/// Keyed by number in the lease (index/chunk_layout.hpp); a later object replaces an earlier one with its
/// number. Grows in blocks, so that no call takes long. Used by one thread at a time.
class sent_locations {
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

/// `client_holdings::read_some` advances it. Used by one thread at a time.
struct lease_reading {
  static constexpr size_t step_objects = 4'096; ///< one step takes well below a millisecond

  lease_ptr from;
  std::span<const object_place> places; ///< places in host memory; they outlive the reading
  std::vector<hold_ptr> holds;          ///< holds that keep the objects in place
  std::function<size_t(size_t)> number; ///< number in the lease of the n-th place

  // Stage of `read_some`.
  enum class stage : uint8_t { begins, counting, telling, told };
  stage now = stage::begins;
  size_t done = 0;                      ///< places that this stage has processed
  uint64_t fresh = 0;                   ///< places that had not been told before
  uint64_t added = 0;                   ///< the part of `fresh` that has been told
  uint64_t bytes = 0;                   ///< physical bytes of all places
  std::shared_ptr<sent_locations> told; ///< places of the lease that the client was told
};

} // namespace terrace

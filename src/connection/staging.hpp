// Staging memory: a client writes objects there before they are published. Each connection that asks for it
// has one memfd. The client maps it writable, and the daemon copies from it once, at commit.
#pragma once

#include "index/prefix_plan.hpp"
#include "index/space_registry.hpp"
#include "memory/allocator.hpp"
#include "memory/arena.hpp"
#include "memory/device_memory.hpp"
#include "memory/teardown.hpp"
#include "tier/objects/object_batch.hpp"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace terrace {

/// The segment number of a connection's staging memory on the wire; arena segments count from 0.
constexpr uint32_t staging_segment = 0x8000'0000;

/// Objects that a client is writing or that are being committed. The destructor releases their space.
struct staged {
  space_ptr space;
  batch_ptr objects; ///< objects with space; the others were already present
  size_t objects_per_chunk = 1;
  size_t present_objects = 0;  ///< objects of the request that were already present
  std::vector<extent> extents; ///< parallel to `objects`
};

/// The objects of chunks that are not completely present. A client writes a chunk completely or not at all,
/// so that the chunks of a commit are complete.
struct chunks_to_write {
  batch_ptr objects;
  std::vector<bool> wanted; ///< parallel to all objects: true if it is one of `objects`
};
chunks_to_write absent_chunks(const object_batch& all, size_t objects_per_chunk,
                              const object_bitmap& present);

class staging {
 public:
  /// Errors: those of `arena::create`.
  static result<std::unique_ptr<staging>> create(uint64_t bytes, size_t reservations_max = SIZE_MAX,
                                                 const teardown_ptr& teardown = nullptr);

  const arena& memory() const { return *memory_; }
  outside_memory source() const { return {memory_->data(), memory_->fd(), memory_->size(), memory_}; }

  /// Errors: `no_space`, with what the connection holds and its limit; `bad_request` for more than that
  /// limit; `busy` at the limit of reservations, which also bounds those that need no memory.
  result<uint64_t> reserve(staged reserved, const std::vector<uint64_t>& sizes);

  const staged* find(uint64_t reservation) const;

  /// Takes the reservation for its commit: from now on it cannot be found. `put_back` ends it. Error:
  /// `not_found`.
  result<std::shared_ptr<staged>> take(uint64_t reservation);
  void put_back(const staged& reserved);

  /// Recounts the memory and returns a sentence for each difference from the kept sums.
  std::vector<std::string> check() const;

  size_t reservations() const { return reserved_.size(); }
  bool in_use(space_id space) const; ///< a reservation that is not being committed uses the space

 private:
  friend struct damaged_staging; ///< tests damage it
  staging() = default;
  std::shared_ptr<arena> memory_;
  std::unique_ptr<allocator> space_;
  std::map<uint64_t, staged> reserved_;
  size_t reservations_max_ = SIZE_MAX;
  uint64_t next_ = 1;
  size_t committing_ = 0; ///< extents of taken reservations
};

} // namespace terrace

// Staging memory: where a client writes objects before they are published. One memfd per connection that
// requests it; the client maps it writable, and the daemon copies from it once, at commit.
#pragma once

#include "index/space_registry.hpp"
#include "memory/allocator.hpp"
#include "memory/arena.hpp"
#include "memory/outside_memory.hpp"
#include "tier/object_batch.hpp"

#include <map>
#include <memory>

namespace terrace {

/// The segment number of a connection's staging memory on the wire; arena segments count from 0.
constexpr uint32_t staging_segment = 0x8000'0000;

/// Objects that a client is writing, or that are being committed. Releases the space at its end.
struct staged {
  space_ptr in;
  batch_ptr objects; ///< those with space; the others were already present
  size_t objects_per_chunk = 1;
  size_t present_objects = 0;  ///< objects of the request that were already present
  std::vector<extent> extents; ///< parallel to `objects`
};

class staging {
 public:
  /// Errors: those of `arena::create`.
  static result<std::unique_ptr<staging>> create(uint64_t bytes);

  const arena& memory() const { return *memory_; }
  outside_memory source() const { return {memory_->data(), memory_->fd(), memory_->size(), memory_}; }

  /// Errors: `no_space`, with what the connection holds and its limit; `bad_request` for more than that limit.
  result<uint64_t> reserve(staged what, const std::vector<uint64_t>& sizes);

  const staged* find(uint64_t reservation) const;

  /// Takes it for its commit: it can no longer be found. `put_back` ends it. Error: `not_found`.
  result<std::shared_ptr<staged>> take(uint64_t reservation);
  void put_back(const staged& what);

  size_t reservations() const { return reserved_.size(); }

 private:
  staging() = default;
  std::shared_ptr<arena> memory_;
  std::unique_ptr<allocator> space_;
  std::map<uint64_t, staged> reserved_;
  uint64_t next_ = 1;
};

} // namespace terrace

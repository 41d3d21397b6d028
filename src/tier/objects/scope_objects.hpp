// Makes the objects of a transfer in slices, because a request may have a million.
//
// Pure: used by one thread at a time.
#pragma once

#include "index/space_registry.hpp"
#include "index/transfer_scope.hpp"
#include "tier/objects/object_batch.hpp"

#include <memory>
#include <optional>
#include <vector>

namespace terrace {

// Slices of object batches.

/// Returns objects [begin, end) of a batch; the batch itself if that is all of it.
batch_ptr slice(const batch_ptr& all, size_t begin, size_t end);

/// The chunks of a transfer, on one rank.
struct scope_subject {
  space_ptr space;
  std::shared_ptr<const std::vector<digest>> chunks; ///< chunks of the whole prefix
  std::optional<digest> before;                      ///< the chunk before the first, if known
  transfer_scope scope;
  uint16_t rank = 0;
};

/// Returns the policy's name of the object that the object of chunk number `chunk` follows, which is evicted
/// after it. Empty: none. `before` is the chunk before the first, if known.
entry_key parent_of(const space_spec& spec, const std::vector<digest>& chunks,
                    const std::optional<digest>& before, size_t chunk, const object_key& key);

class scope_objects {
 public:
  /// Objects made between checks for other messages: about 0.2 ms.
  static constexpr size_t slice_objects = 2'048;

  explicit scope_objects(scope_subject subject);

  /// Makes about a slice of the objects. True once all of them are made.
  bool step();

  /// Returns the objects by chunk, then pool; call once, after `step` returned true.
  batch_ptr take() { return std::move(batch_); }

 private:
  object_key key(size_t pool, uint16_t rank, const digest& chunk) const;

  scope_subject of_;
  std::shared_ptr<object_batch> batch_ = std::make_shared<object_batch>();
  size_t next_; ///< number of the next chunk
};

} // namespace terrace

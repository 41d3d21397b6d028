// Staging memory for those chunks of a request that are not yet present.
#pragma once

#include "base/error.hpp"
#include "connection/staging.hpp"
#include "index/prefix_plan.hpp"
#include "index/transfer_scope.hpp"
#include "protocol/terrace_generated.h"
#include "tier/messages.hpp"
#include "tier/objects/object_batch.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace terrace {

// Finds out which objects of a reservation host memory has, some at a time.
//
// Pure: a connection asks the tier, and passes its answers to this class. Used by one thread at a time.

class presence_search {
 public:
  static constexpr size_t probed_objects = 1'024; ///< objects per question
  static_assert(probed_objects % 64 == 0);

  explicit presence_search(batch_ptr objects) : objects_(std::move(objects)), present_(objects_->size()) {}

  /// The next question; nullopt if everything is known. Questions are asked one after the other.
  std::optional<probe_request> next() const {
    if (next_ >= objects_->size())
      return std::nullopt;
    return probe_request{objects_, false, false, {next_, probed_objects}};
  }
  void add(const probe_answer& found) {
    present_.merge(next_, found.present);
    next_ += probed_objects;
  }

  const batch_ptr& objects() const { return objects_; }
  const object_bitmap& present() const { return present_; }

 private:
  batch_ptr objects_;
  object_bitmap present_;
  size_t next_ = 0;
};

constexpr size_t reserved_objects_max = 16'384; ///< limit for one request

/// Error: `bad_request` if the request has more than `reserved_objects_max` objects.
result<void> may_reserve(const transfer_scope& scope);

struct chunk_reservation {
  uint64_t id = 0;
  batch_ptr all;            ///< all objects of the request
  std::vector<bool> wanted; ///< parallel to `all`: true if the client writes the object
};

/// Reserves memory for the chunks that are not completely `present`. Errors: those of `staging::reserve`.
result<chunk_reservation> reserve_absent(staging& memory, const space_ptr& space, const batch_ptr& all,
                                         size_t objects_per_chunk, const object_bitmap& present);

/// Answers a request that stores nothing: the client writes none of the objects, and none counts as present.
result<chunk_reservation> reserve_nothing(staging& memory, const space_ptr& space, const batch_ptr& all,
                                          size_t objects_per_chunk);

/// Writes a location for each object that the client writes. `memory`: the staging memory of the reservation.
flatbuffers::Offset<wire::ReserveAnswer> write_reserve_answer(flatbuffers::FlatBufferBuilder& body,
                                                              const chunk_reservation& reserved,
                                                              const staging& memory);

} // namespace terrace

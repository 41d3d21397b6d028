// Staging memory for those chunks of a request that are not yet present.
#pragma once

#include "base/error.hpp"
#include "connection/staging.hpp"
#include "index/prefix_plan.hpp"
#include "index/transfer_scope.hpp"
#include "protocol/frame_builder.hpp"
#include "protocol/terrace_generated.h"
#include "tier/messages.hpp"
#include "tier/objects/object_batch.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
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

inline result<void> may_reserve(const transfer_scope& scope) {
  if (scope.objects() <= reserved_objects_max)
    return {};
  return fail(errc::bad_request,
              std::to_string(scope.objects()) + " objects were asked for: expected at most " +
                  std::to_string(reserved_objects_max) + " in a reservation; reserve fewer chunks at a time");
}

inline result<chunk_reservation> reserve_absent(staging& memory, const space_ptr& space, const batch_ptr& all,
                                                size_t objects_per_chunk, const object_bitmap& present) {
  chunks_to_write to_write = absent_chunks(*all, objects_per_chunk, present);
  staged reservation;
  reservation.space = space;
  reservation.objects = to_write.objects;
  reservation.objects_per_chunk = objects_per_chunk;
  reservation.present_objects = all->size() - to_write.objects->size();
  auto id = memory.reserve(std::move(reservation), to_write.objects->payload_bytes);
  if (!id)
    return tl::unexpected(id.error());
  return chunk_reservation{*id, all, std::move(to_write.wanted)};
}

inline result<chunk_reservation> reserve_nothing(staging& memory, const space_ptr& space,
                                                 const batch_ptr& all, size_t objects_per_chunk) {
  staged reservation;
  reservation.space = space;
  reservation.objects = std::make_shared<const object_batch>();
  reservation.objects_per_chunk = objects_per_chunk;
  auto id = memory.reserve(std::move(reservation), {});
  if (!id)
    return tl::unexpected(id.error());
  return chunk_reservation{*id, all, std::vector<bool>(all->size())};
}

inline flatbuffers::Offset<wire::ReserveAnswer> write_reserve_answer(flatbuffers::FlatBufferBuilder& body,
                                                                     const chunk_reservation& reserved,
                                                                     const staging& memory) {
  const auto& extents = memory.find(reserved.id)->extents;
  const object_batch& all = *reserved.all;
  std::vector<wire::Location> locations;
  locations.reserve(all.size());
  size_t next = 0;
  for (size_t i = 0; i < all.size(); ++i)
    if (reserved.wanted[i])
      locations.emplace_back(extents[next++].offset, all.payload_bytes[i], staging_segment, 0);
    else
      locations.emplace_back(0, 0, staging_segment, 0);
  return wire::CreateReserveAnswer(body, reserved.id, staging_segment,
                                   protocol::create_structs(body, locations));
}

} // namespace terrace

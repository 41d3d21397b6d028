// Staging memory for those chunks of a request that are not yet present.
#pragma once

#include "base/error.hpp"
#include "connection/staging.hpp"
#include "index/transfer_scope.hpp"
#include "protocol/terrace_generated.h"

#include <cstdint>
#include <vector>

namespace terrace {

constexpr size_t reserved_objects_max = 16'384; ///< limit for one request

/// Error: `bad_request` if the request has more than `reserved_objects_max` objects.
result<void> may_reserve(const transfer_scope& scope);

struct chunk_reservation {
  uint64_t id = 0;
  batch_ptr all;            ///< all objects of the request
  std::vector<bool> wanted; ///< parallel to `all`: true if the client writes the object
};

/// Reserves memory for the chunks that are not completely `present`. Errors: those of `staging::reserve`.
result<chunk_reservation> reserve_absent(staging& memory, const space_ptr& in, const batch_ptr& all,
                                         size_t objects_per_chunk, const object_bitmap& present);

/// Answers a request that stores nothing: the client writes none of the objects, and none counts as present.
result<chunk_reservation> reserve_nothing(staging& memory, const space_ptr& in, const batch_ptr& all,
                                          size_t objects_per_chunk);

/// Writes a location for each object that the client writes. `memory`: the staging memory of the reservation.
flatbuffers::Offset<wire::ReserveAnswer> write_reserve_answer(flatbuffers::FlatBufferBuilder& body,
                                                              const chunk_reservation& reserved,
                                                              const staging& memory);

} // namespace terrace

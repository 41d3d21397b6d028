// Staging memory for the chunks of a request that are not present yet.
#pragma once

#include "base/error.hpp"
#include "connection/staging.hpp"
#include "index/transfer_scope.hpp"
#include "protocol/terrace_generated.h"

#include <cstdint>
#include <vector>

namespace terrace {

constexpr size_t reserved_objects_max = 16'384; ///< of one request

/// Error: `bad_request` for more objects than that.
result<void> may_reserve(const transfer_scope& scope);

struct chunk_reservation {
  uint64_t id = 0;
  batch_ptr all;            ///< objects of the request
  std::vector<bool> wanted; ///< parallel: the client writes it
};

/// Reserves memory for whole chunks that are not `present`. Errors: those of `staging::reserve`.
result<chunk_reservation> reserve_absent(staging& memory, const space_ptr& in, const batch_ptr& all,
                                         size_t objects_per_chunk, const object_bitmap& present);

/// For a request that stores nothing: the client writes none of the objects, and none counts as present.
result<chunk_reservation> reserve_nothing(staging& memory, const space_ptr& in, const batch_ptr& all,
                                          size_t objects_per_chunk);

/// With a location for each object that the client writes. `memory`: that of the reservation.
flatbuffers::Offset<wire::ReserveAnswer> write_reserve_answer(flatbuffers::FlatBufferBuilder& body,
                                                              const chunk_reservation& reserved,
                                                              const staging& memory);

} // namespace terrace

// From the prefix of a request to the objects it is about.
#pragma once

#include "actors/connection/connection.hpp"
#include "index/prefix_resolver.hpp"
#include "transfer/scatter_gather.hpp"

#include <functional>

namespace terrace::actors {

/// Calls `then` with the chunks that the prefix names, or refuses the request. At once for digests and few tokens; many
/// tokens are hashed in slices between which others have their turn. The frame's body lives until `then` returns.
void with_chunks(connection& client, const connection::request& what, const client_space& in,
                 const wire::Prefix& prefix, std::function<void(chunk_prefix)> then);

/// A range of chunks, checked: requests state it with `count` 0 for "all from `first`". Error: `bad_request`.
struct chunk_range {
  size_t first = 0;
  size_t count = 0;
};
result<chunk_range> checked_range(size_t total, uint32_t first, uint32_t count);

/// Which of a space's pools a transfer is about, by number, rising.
using pool_list = std::vector<uint16_t>;
constexpr size_t transfer_objects_max = 1'048'576;

/// What a request names, or all when it names none. Errors (`bad_request`): a pool that the space does not have, or more
/// objects of `chunks` chunks than a transfer may have.
result<pool_list> checked_pools(const space_spec& spec, const flatbuffers::Vector<uint8_t>* named,
                                size_t chunks);

/// What a transfer is about: a range of chunks in some pools.
struct transfer_scope {
  chunk_range range;
  pool_list pools;
};

/// The objects of a scope on one rank, chunk by chunk, pool by pool. `before`: the chunk in front of all of `chunks`, if
/// known.
batch_ptr objects_of(const opened_space& in, std::span<const digest> chunks,
                     const std::optional<digest>& before, const transfer_scope& scope, uint16_t rank);

/// Only the keys and `trailing` of the objects of all chunks on all ranks, numbered as index/chunk_layout.hpp says: all
/// that a probe needs.
batch_ptr keys_of_all_ranks(const opened_space& in, std::span<const digest> chunks);

/// What a lease holds on disk of the objects that `objects_of` names for the same scope and rank; null if nothing.
hold_ptr leased_on_disk(const lease_ptr& from, const transfer_scope& scope, uint16_t rank);
/// The same in host memory.
hold_ptr leased_in_host(const lease_ptr& from, const transfer_scope& scope, uint16_t rank);

/// The runs of a load or store, checked against its objects and its region.
result<std::shared_ptr<const scatter_gather>> runs_of(const protocol::run_vector& runs,
                                                      const flatbuffers::Vector<uint32_t>* runs_per_object,
                                                      const object_batch& objects, uint64_t region_bytes);

/// A region as copiers see it; keeps it until the last copy of the answer goes.
outside_memory outside(const std::shared_ptr<const client_region>& region);

} // namespace terrace::actors

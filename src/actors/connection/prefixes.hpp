// Resolves the prefix of a request into its objects.
#pragma once

#include "actors/connection/connection.hpp"
#include "index/prefix_resolver.hpp"
#include "transfer/scatter_gather.hpp"

#include <functional>

namespace terrace::actors {

/// Calls `then` with the chunks of the prefix, or refuses the request. Immediately for digests and few
/// tokens; many tokens are hashed in slices between other messages. `body` keeps the frame's body; null if the frame is
/// still being served and need not be kept unless `then` continues later.
using chunks_handler = std::function<void(chunk_prefix, keep_alive body)>;
void with_chunks(connection& client, const connection::request& what, const client_space& in,
                 const wire::Prefix& prefix, chunks_handler then);

/// A validated range of chunks: in requests, `count` 0 means "all from `first`". Error: `bad_request`.
struct chunk_range {
  size_t first = 0;
  size_t count = 0;
};
result<chunk_range> checked_range(size_t total, uint32_t first, uint32_t count);

/// The pools of a transfer by number, ascending.
using pool_list = std::vector<uint16_t>;
constexpr size_t transfer_objects_max = 1'048'576;

/// The requested pools, or all by default. Errors (`bad_request`): a pool that the space does not have, or
/// more objects than a transfer may have.
result<pool_list> checked_pools(const space_spec& spec, const flatbuffers::Vector<uint8_t>* named,
                                size_t chunks);

/// The scope of a transfer: a range of chunks in some pools.
struct transfer_scope {
  chunk_range range;
  pool_list pools;
};

/// The objects of a scope on one rank, by chunk, then pool. `before`: the chunk before all of `chunks`, if
/// known.
batch_ptr objects_of(const opened_space& in, std::span<const digest> chunks,
                     const std::optional<digest>& before, const transfer_scope& scope, uint16_t rank);

/// Calls `then` with the same: at once if they are few, otherwise they are made in slices between other messages.
/// Refuses the request if it ends meanwhile. `body` keeps what `then` needs of the frame, see `with_chunks`.
struct scope_subject {
  space_ptr in;
  std::shared_ptr<const std::vector<digest>> chunks;
  std::optional<digest> before;
  transfer_scope scope;
  uint16_t rank = 0;
};
void with_objects(connection& client, const connection::request& what, scope_subject of, keep_alive body,
                  std::function<void(batch_ptr)> then);

/// The objects that a lease holds, by tier, of those that `objects_of` returns for the same scope and rank.
tier_holds leased_part(const lease_ptr& from, const transfer_scope& scope, uint16_t rank);

/// The runs of a load or store, validated against its objects and its region.
result<std::shared_ptr<const scatter_gather>> runs_of(const protocol::run_vector& runs,
                                                      const flatbuffers::Vector<uint32_t>* runs_per_object,
                                                      const object_batch& objects, uint64_t region_bytes);

/// A region for copiers; kept until the last copy of the result is destroyed.
outside_memory outside(const std::shared_ptr<const client_region>& region);

} // namespace terrace::actors

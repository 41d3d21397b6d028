// Decides how much of a found prefix a lease may hold in host memory.
#pragma once

#include "base/steps.hpp"
#include "index/space_spec.hpp"
#include "tier/objects/object_batch.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace terrace {

/// Returns which objects of a chunk belong to trailing pools.
std::vector<bool> trailing_objects(const space_spec& spec);

/// The objects of a prefix that was found, numbered as in chunk_layout.hpp, and where they are held now.
struct leased_prefix {
  const space_spec& spec;
  std::span<const object_place> host;               ///< whole chunks; absent ones are not in host memory
  std::vector<std::span<const object_place>> below; ///< per tier below; each may be shorter
  std::vector<bool> leased; ///< parallel to `host`: leased already, so that another lease on it costs nothing
  uint64_t room = 0;        ///< physical bytes that the lease may add in host memory
};

/// Objects that a tier below holds need not be held in host memory; the others must. Objects are evicted from
/// the end of their chain, so a held object keeps everything before it in host memory once that is loaded.
/// Therefore a lease holds in host memory only the beginning of its chain, up to the first object that is
/// absent or does not fit, and holds the rest below.

/// These functions look through all objects, in steps of `lease_cut_objects`; their arguments must outlive
/// them and not change.
constexpr size_t lease_cut_objects = 16'384;

/// Adds up the physical bytes of the prefix that only tiers below hold. Room is claimed for them too, because
/// they would come to host memory, and stay there as long as the objects behind them. States and windows are
/// left out, because they are loaded as needed.
steps find_bytes_to_load(const leased_prefix& prefix, uint64_t& bytes);

/// Finds the number of chunks that the lease may have: it ends before the first object that must be held in host
/// memory, is not leased yet, and does not fit. In spaces with trailing pools, room for the states or windows of one
/// length is set aside first, because a shorter prefix needs others; if that alone is too much, there is no lease.
steps find_chunks_that_fit(const leased_prefix& prefix, size_t& chunks);

/// Finds which objects to hold in host memory, parallel to `host`, after the prefix was cut to the chunks
/// that fit and objects that it does not need were released.
steps find_kept_in_host(const leased_prefix& prefix, std::vector<bool>& keeps);

} // namespace terrace

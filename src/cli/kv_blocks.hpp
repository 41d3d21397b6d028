// Blocks as routers see them: a chunk becomes a block once engines can load it.
//
// Pure; used by one thread at a time.
#pragma once

#include "base/tier_properties.hpp"
#include "client/types.hpp"

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

namespace terrace::cli {

struct block_change {
  bool stored = false; ///< false: it was removed
  tier_kind tier = nowhere;
  digest chunk;
  friend bool operator==(const block_change&, const block_change&) = default;
};

/// Makes blocks of objects. A block is stored in a tier while the tier has every object that a prefix needs
/// of the chunk, those of all ranks and pools. If no tier has all of them but several tiers together do, it
/// is stored in the slowest of these.
///
/// Memory: about 150 bytes for each chunk with an object in the tiers, if its space has several objects per
/// chunk. No memory is kept for other chunks.
class kv_blocks {
 public:
  /// Call it before a new snapshot.
  void clear() { chunks_.clear(); }
  /// Appends the changes that the event causes. An event may repeat what is known.
  void take(const client::event& event, std::vector<block_change>& changes);
  size_t chunks() const { return chunks_.size(); }

 private:
  struct chunk_name {
    uint32_t space = 0;
    digest chunk;
    friend bool operator==(const chunk_name&, const chunk_name&) = default;
  };
  struct hash_of_name {
    size_t operator()(const chunk_name& name) const;
  };
  struct chunk_parts {
    std::vector<std::pair<uint32_t, uint8_t>>
        objects;      ///< pool and rank, with one bit for each tier that has the object; sorted
    uint8_t told = 0; ///< tiers in which the block is stored
  };
  static uint8_t tiers_of(const chunk_parts& chunk, uint32_t chunk_objects);

  std::unordered_map<chunk_name, chunk_parts, hash_of_name> chunks_;
};

} // namespace terrace::cli

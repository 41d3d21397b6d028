// Why a chunk does not continue a prefix.
#pragma once

#include "base/ids.hpp"
#include "base/miss_reason.hpp"
#include "base/tier_properties.hpp"
#include "index/chunk_layout.hpp"
#include "index/space_registry.hpp"
#include "tier/objects/departure_log.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace terrace {

struct chunk_miss {
  miss_reason why = miss_reason::not_stored;
  tier_kind from = nowhere; ///< the tier that it has left, or that is out of service
  uint32_t seconds_ago = 0;
  uint32_t object = 0; ///< the first one that is missing (index/chunk_layout.hpp)

  friend bool operator==(const chunk_miss&, const chunk_miss&) = default;
};

/// Examines the chunks of a space. Pure.
class chunk_examiner {
 public:
  chunk_examiner(space_ptr of, const departure_log& log);

  /// The objects of a chunk that a prefix needs: those of pools that need all chunks, or of all pools if there is none.
  const std::vector<uint32_t>& needed() const { return needed_; }

  /// Where an object is, by its number in the chunk. `none`: nowhere.
  struct place {
    tier_kind tier = nowhere;
    bool readable = false;
  };
  using place_of = std::function<place(uint32_t object)>;
  /// Returns nullopt if every needed object can be read. Of several reasons the latest departure counts.
  std::optional<chunk_miss> examine(const digest& chunk, const place_of& find) const;

  /// "rank 1 of pool kv" of an object.
  std::string name_of(uint32_t object) const;

 private:
  space_ptr space_;
  const departure_log& log_;
  chunk_layout layout_;
  std::vector<uint32_t> needed_;
};

} // namespace terrace

// A move of a prompt's chunks to a tier below: the plan of its parts, and the fate of each chunk.
//
// Both tiers are asked for the objects of a part, and the tier above holds those that it has. Objects that
// are above and not below are written down. Then the tier below is asked again. Objects that are there now
// leave the tier above unless somebody else holds them, and the tier above is asked what is left.
//
// Pure: the move's actor asks the tiers. Used by one thread at a time.
#pragma once

#include "index/space_registry.hpp"
#include "tier/objects/object_batch.hpp"
#include "tier/objects/object_hold.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace terrace {

struct moved_share {
  uint32_t chunks = 0;
  uint64_t bytes = 0; ///< bytes of payload
};
struct moved_chunks {
  uint32_t requested = 0;
  moved_share moved;   ///< are below now, and no longer above
  moved_share present; ///< were only below already
  moved_share missing; ///< have objects that are in neither tier
  moved_share held;    ///< are below now, and stay above as well
  moved_share failed;  ///< are not below
};

class move_plan {
 public:
  static constexpr size_t part_objects = 512;
  static constexpr uint64_t part_bytes = 64ULL << 20;

  /// `before` is the chunk before the first, if known. `bytes_max` bounds a part, unless it is a single chunk.
  move_plan(space_ptr space, std::shared_ptr<const std::vector<digest>> chunks, std::optional<digest> before,
            uint64_t bytes_max = part_bytes);

  /// Returns the objects of the next chunks, on all ranks; null: there are none.
  batch_ptr next();

  /// Both tiers have answered; both answers are parallel to the part.
  void found(const object_bitmap& above, const object_bitmap& below);
  /// True if an object is above and not below.
  bool writes() const;
  /// The tier below has answered after the write. Returns the held objects that should leave the tier above.
  std::vector<object_id> written(const object_bitmap& below, const object_hold* held);
  /// The tier above has told what is left there: the part is over.
  void left(const object_bitmap& above);

  const moved_chunks& sum() const { return sum_; }

 private:
  moved_share& fate_of(size_t first);

  space_ptr in_;
  std::shared_ptr<const std::vector<digest>> chunks_;
  std::optional<digest> before_;
  uint64_t bytes_max_;
  size_t objects_per_chunk_;
  size_t next_ = 0; ///< number of the next chunk
  batch_ptr part_;
  object_bitmap above_, below_, below_after_, above_after_;
  moved_chunks sum_;
};

} // namespace terrace

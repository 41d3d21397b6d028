// A move of a prompt's chunks to a tier below: part by part, and what became of each chunk.
//
// A part is asked for above (and held there) and below; what is above and not below is written down. Then it is asked for
// below again, what is there leaves the tier above unless somebody else holds it, and what is left above is asked for.
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
  uint64_t bytes = 0; ///< payload
};
struct moved_chunks {
  uint32_t requested = 0;
  moved_share moved;   ///< are below now, and no longer above
  moved_share present; ///< were only below already
  moved_share missing; ///< objects of them are in neither tier
  moved_share held;    ///< are below now, and stay above as well
  moved_share failed;  ///< are not below
};

class move_course {
 public:
  static constexpr size_t part_objects = 512;
  static constexpr uint64_t part_bytes = 64ULL << 20;

  /// `before`: the chunk before the first, if known. `bytes_max`: of a part, but for a single chunk.
  move_course(space_ptr in, std::shared_ptr<const std::vector<digest>> chunks, std::optional<digest> before,
              uint64_t bytes_max = part_bytes);

  /// The objects of the next chunks, on all ranks; null: there are none.
  batch_ptr next();

  /// What was where. Both parallel to the part.
  void found(const object_bitmap& above, const object_bitmap& below);
  /// Something is above and not below.
  bool writes() const;
  /// What is below now. Returns which of the held objects should leave the tier above.
  std::vector<object_id> written(const object_bitmap& below, const object_hold* held);
  /// What is left above: the part is over.
  void left(const object_bitmap& above);

  const moved_chunks& sum() const { return sum_; }

 private:
  moved_share& fate_of(size_t first);

  space_ptr in_;
  std::shared_ptr<const std::vector<digest>> chunks_;
  std::optional<digest> before_;
  uint64_t bytes_max_;
  size_t objects_per_chunk_;
  size_t next_ = 0; ///< chunk
  batch_ptr part_;
  object_bitmap above_, below_, below_after_, above_after_;
  moved_chunks sum_;
};

} // namespace terrace

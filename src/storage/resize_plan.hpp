// Which objects stay where they are when a volume is resized, and where the others go.
#pragma once

#include "storage/live_objects.hpp"
#include "storage/superblock.hpp"

#include <vector>

namespace terrace {

/// Places are offsets in the file, not in the arena, whose begin may change.
struct placed_object {
  index_record object;
  uint64_t from = 0;
  uint64_t to = 0;
};

struct resize_plan {
  volume_layout layout; ///< the new one
  uint64_t capacity_bytes = 0;
  std::vector<placed_object> objects; ///< that have room, by ascending generation
  object_sum moved;                   ///< of them
  object_sum dropped;                 ///< have no room, or no record in the new checkpoint
};

/// One step of resizing: what it makes of the volume.
struct resize_target {
  volume_layout layout;
  uint64_t capacity_bytes = 0;
};

/// The steps to that capacity. Where the parts of the index shrink as well as the file, their space is to be used for
/// objects, so it is won first.
std::vector<resize_target> resize_targets(const superblock& block, uint64_t capacity_bytes);

/// `objects` by ascending generation, as recovery gives them. Objects that lie between the new begin of the arena and its
/// new end stay. The others, the newest first, get the smallest gap that holds them, outside of everything that lives
/// now: so nothing is overwritten before the new places count.
resize_plan plan_places(const superblock& block, const resize_target& target,
                        const std::vector<index_record>& objects, size_t spaces);

/// Of a checkpoint in that layout: how many records it can have.
uint64_t records_in_checkpoint(const volume_layout& layout);

/// The layout for that capacity, or the present one where both lie so that no checkpoint of the new one can be written
/// beside one of the old.
volume_layout layout_after(const volume_layout& now, uint64_t capacity_bytes);

/// The checkpoint area of the old layout that the steps of resizing leave alone: 0 where the parts grow, for area 1 of the
/// new layout lies behind it then; 1 where they shrink.
uint64_t area_that_stays(const volume_layout& before, const volume_layout& after);

} // namespace terrace

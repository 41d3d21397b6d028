// Changes the capacity of a volume that is not in use, and resizes its index accordingly.
//
// If killed at any point, it leaves a recoverable volume. Objects are copied to free places; then a
// checkpoint in the old layout records their places; then a checkpoint in the new layout, at a place not
// needed by the old one, records the same; then the superblock switches to the new layout. Each step is
// durable before the next begins. Leftovers of an interrupted last step (a file that is too long, old blocks
// in the area of the new journal) are not part of the volume, and resizing again to the same capacity
// completes it.
#pragma once

#include "storage/live_objects.hpp"
#include "storage/superblock.hpp"
#include "storage/volume_device.hpp"

#include <functional>
#include <vector>

namespace terrace {

// Decides which objects keep their place when a volume is resized, and where the others move.

/// Places are offsets in the file, not in the arena, whose start may change.
struct placed_object {
  index_record object;
  uint64_t from = 0;
  uint64_t to = 0;
};

struct resize_plan {
  volume_layout layout; ///< the new layout
  uint64_t capacity_bytes = 0;
  std::vector<placed_object> objects; ///< the objects that fit, by ascending generation
  object_sum moved;                   ///< sum of those that move
  object_sum dropped; ///< sum of those without room, or without a record in the new checkpoint
};

/// The result of one resizing step.
struct resize_target {
  volume_layout layout;
  uint64_t capacity_bytes = 0;
};

/// Returns the steps to the given capacity. If the index shrinks along with the file, its space becomes
/// available for objects, so it is freed first. `objects`: as in `layout_for`.
std::vector<resize_target> resize_targets(const superblock& block, uint64_t capacity_bytes,
                                          uint64_t objects = 0);

/// `objects` are sorted by ascending generation, as returned by recovery. Objects within both the new start
/// and the new end of the arena stay. The others, newest first, get the smallest gap that holds them, outside
/// of all live objects, so that nothing is overwritten before the new places take effect.
resize_plan plan_places(const superblock& block, const resize_target& target, const ordered_records& objects,
                        size_t spaces);

/// The number of records that fit in a checkpoint of the layout.
uint64_t records_in_checkpoint(const volume_layout& layout);

/// Returns the layout for the given capacity, or the present one if the two overlap such that a checkpoint of
/// the new one cannot be written next to one of the old.
volume_layout layout_after(const volume_layout& now, uint64_t capacity_bytes, uint64_t objects = 0);

/// Returns the checkpoint area of the old layout that resizing does not overwrite: 0 if the areas grow,
/// because area 1 of the new layout is then behind it; 1 if they shrink.
uint64_t area_that_stays(const volume_layout& before, const volume_layout& after);

struct resize_options {
  uint64_t capacity_bytes = 0; ///< size of the whole file; rounded down to 4 KiB
  uint64_t objects = 0;        ///< room in the index; 0: as in a new volume (volume_layout.hpp)
  bool drop = false;           ///< drop objects without room; otherwise that is an error
  /// Called with the number of bytes of objects moved.
  std::function<void(uint64_t)> moved = [](uint64_t) {};
};

struct resize_report {
  superblock before;
  superblock after;
  object_sum kept;
  object_sum moved;      ///< objects that move
  object_sum dropped;    ///< the oldest objects, for which there is no room
  object_sum unreadable; ///< could not be moved because the device cannot read them

  friend bool operator==(const resize_report&, const resize_report&) = default;
};

/// Returns what `resize_volume` would do, without changes. Errors: `bad_request` for an impossible capacity;
/// those of reading the volume.
result<resize_report> plan_resize(volume_device& device, uint64_t capacity_bytes, uint64_t objects = 0);

/// Errors: those of `plan_resize`; `no_space` if objects have no room and may not be dropped (nothing is
/// changed), or if the file system is full; the device's.
result<resize_report> resize_volume(volume_device& device, const resize_options& options);

} // namespace terrace

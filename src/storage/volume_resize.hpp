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

namespace terrace {

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

// Gives a volume that nobody has open another capacity, and the parts of its index the sizes that go with it.
//
// Killed at any point, it leaves a volume that recovers: objects are copied to where nothing lies, then a checkpoint in
// the old layout says where they are, then one in the new layout, at a place that the old one does not need, says the
// same, and then the superblock says that the new layout counts. Each step is durable before the next one begins. What
// the steps leave behind at the end (a file that is too long, old blocks where the new journal is) is no part of the
// volume, and resizing again to the same capacity finishes it.
#pragma once

#include "storage/live_objects.hpp"
#include "storage/superblock.hpp"
#include "storage/volume_device.hpp"

#include <functional>

namespace terrace {

struct resize_options {
  uint64_t capacity_bytes = 0; ///< of the whole file; rounded down to 4 KiB
  bool drop = false;           ///< objects without room may go; otherwise that is refused
  /// Hears of bytes of objects that have been moved.
  std::function<void(uint64_t)> moved = [](uint64_t) {};
};

struct resize_report {
  superblock before;
  superblock after;
  object_sum kept;
  object_sum moved;      ///< of them
  object_sum dropped;    ///< the oldest of those that have no room
  object_sum unreadable; ///< they could not be moved because the device does not give their bytes

  friend bool operator==(const resize_report&, const resize_report&) = default;
};

/// What `resize_volume` would do, without doing any of it. Errors: `bad_request` for a capacity that no volume can have;
/// those of reading the volume.
result<resize_report> plan_resize(volume_device& device, uint64_t capacity_bytes);

/// Errors: those of `plan_resize`; `no_space` when objects have no room and may not be dropped (nothing was changed then), or
/// when the file system has not enough; the device's.
result<resize_report> resize_volume(volume_device& device, const resize_options& options);

} // namespace terrace

// A copy between an arena and a device's region, in slices of staging memory.
//
//   device_slices slices(request);   // that of transfer/copy_messages.hpp
//   while (auto slice = slices.next(slot_bytes)) ...
//
// Pure; one thread.
#pragma once

#include "actors/gpu/daemon/pinned_arenas.hpp"
#include "gpu/copy_request.hpp"
#include "transfer/copy_messages.hpp"

#include <cstddef>
#include <optional>
#include <vector>

namespace terrace::gpu {

/// A part of a copy that fits in a slot of staging memory, where its bytes are contiguous.
struct device_slice {
  /// `bytes` bytes at `inside` in the arena, which are at `at` in the slot.
  struct span {
    std::byte* inside = nullptr;
    uint64_t bytes = 0;
    uint64_t at = 0;
  };
  std::vector<span> spans;
  std::vector<strided_copy>
      copies; ///< between the region and the slot, whose first byte has `object_offset` 0; or the device's
              ///< arena, or `pinned`
  std::optional<pinned_arenas::place>
      pinned; ///< the region of the process that has the objects; there are no spans then
  uint64_t bytes = 0;
};

class device_slices {
 public:
  static constexpr size_t copies_max = 1024;   ///< copies per slice
  static constexpr size_t pieces_max = 16'384; ///< pieces per slice: 100 us of a turn

  /// Keeps the runs and the objects, but not the request's memory. Objects are copied in the order of their
  /// addresses, so that those of one pinned piece are adjacent.
  explicit device_slices(const terrace::copy_request& request);

  /// True once everything is cut.
  bool complete() const { return !piece_; }
  /// Returns the next slice; nothing after the last. `arenas`: those that the device reads; null: everything
  /// passes through the slot. Precondition: `bytes_max` is not 0.
  std::optional<device_slice> next(uint64_t bytes_max, const pinned_arenas* arenas = nullptr);

 private:
  void open();
  void next_piece();

  std::shared_ptr<const scatter_gather> runs_;
  std::vector<copied_object> objects_;
  bool in_device_; ///< the objects are in an arena of the device, so there are no spans
  size_t object_ = 0;
  piece_cursor pieces_;
  std::optional<object_piece> piece_; ///< the rest of the current piece; empty: everything is cut
};

} // namespace terrace::gpu

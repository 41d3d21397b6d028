// The layout of a volume's file (docs/disk-format.md).
#pragma once

#include "base/error.hpp"
#include "index/object_header.hpp"
#include "storage/superblock.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace terrace {

constexpr uint64_t smallest_capacity_bytes = 1ULL << 20;
/// Size of an extent: header block and one block of payload.
constexpr uint64_t object_bytes_smallest = 8 << 10;
constexpr uint64_t object_bytes_expected = 48 << 10; ///< average size of the extents of a large volume

/// Returns the layout for a volume of this capacity. The journal takes a thousandth. Each of the two
/// checkpoint areas has room for `objects`. If that is 0, it has room for one object per 8 KiB, the smallest
/// size, up to 1,048,576 objects, or for one per `object_bytes` if that is more. Both areas together take 2.4
/// % of a volume of up to 8 GiB, and by default 0.5 % of a large one. Objects that do not fit in a checkpoint
/// are not recovered; nothing else depends on these sizes.
volume_layout layout_for(uint64_t capacity_bytes, uint64_t objects = 0,
                         uint64_t object_bytes = object_bytes_expected);

/// True if a volume created with this layout can be used with a file of this size: nothing overlaps, all
/// parts are aligned, and most of the file is left for objects.
bool fits(const volume_layout& layout, uint64_t capacity_bytes);

// The first 4 KiB of a checkpoint area. They are written last: without them the area is empty.

constexpr uint64_t checkpoint_header_bytes = 4096;
constexpr uint32_t checkpoint_header_version = 1;

struct checkpoint_header {
  volume_id volume;
  uint64_t number = 0;           ///< number of the checkpoint; the area with the higher number is current
  uint64_t journal_sequence = 0; ///< the first journal block to read after it
  uint64_t image_blocks = 0;     ///< number of blocks after the header
  uint64_t records = 0;          ///< number of records in them, so that the reader can reserve memory

  friend bool operator==(const checkpoint_header&, const checkpoint_header&) = default;
};

void encode(const checkpoint_header& header, std::span<std::byte, checkpoint_header_bytes> out);

/// Errors: `not_found` if no header was written, `unsupported` for another version, `internal` for a damaged
/// one, `gone` for a header of another volume.
result<checkpoint_header> decode_checkpoint_header(const volume_id& volume,
                                                   std::span<const std::byte, checkpoint_header_bytes> bytes);

} // namespace terrace

// Which bytes of a volume's file are what (docs/disk-format.md).
#pragma once

#include "storage/superblock.hpp"

#include <cstdint>

namespace terrace {

constexpr uint64_t smallest_capacity_bytes = 1ULL << 20;

/// The parts of a volume of so many bytes that is made now. The journal takes a thousandth, each of the two checkpoint
/// areas has room for one object in 48 KiB (for one in 8 KiB while the volume is small): 0.5 % together for a large
/// volume. What does not fit in a checkpoint is not recovered; nothing else depends on these sizes.
volume_layout layout_for(uint64_t capacity_bytes);

/// Whether a volume that was made with this layout can go on when its file has so many bytes: nothing overlaps, all
/// begins are aligned, and most of the file is left for objects.
bool fits(const volume_layout& layout, uint64_t capacity_bytes);

} // namespace terrace

#include "storage/volume_layout.hpp"

#include "index/object_header.hpp"
#include "storage/record_block.hpp"

#include <algorithm>

namespace terrace {

namespace {

constexpr uint64_t kibibyte = 1024;
constexpr uint64_t journal_bytes_min = 64 * kibibyte;
constexpr uint64_t journal_bytes_max = 256ULL << 20;
constexpr uint64_t journal_share = 1024;
constexpr uint64_t objects_always = 1'048'576; ///< or as many as the volume can contain, if those are fewer

uint64_t whole_blocks(uint64_t bytes) { return bytes / disk_alignment_bytes * disk_alignment_bytes; }

bool aligned(uint64_t bytes) { return bytes % disk_alignment_bytes == 0; }

} // namespace

volume_layout layout_for(uint64_t capacity_bytes, uint64_t objects, uint64_t object_bytes) {
  if (objects == 0)
    objects = std::max(capacity_bytes / std::max(object_bytes, object_bytes_smallest),
                       std::min(capacity_bytes / object_bytes_smallest, objects_always));
  uint64_t image_blocks = objects / records_per_block + 1;
  volume_layout layout;
  layout.journal_begin = superblock_area_bytes;
  layout.journal_bytes =
      whole_blocks(std::clamp(capacity_bytes / journal_share, journal_bytes_min, journal_bytes_max));
  layout.checkpoint_begin = layout.journal_begin + layout.journal_bytes;
  layout.checkpoint_bytes = (1 + image_blocks) * record_block_bytes;
  layout.extents_begin = layout.checkpoint_area(2);
  return layout;
}

bool fits(const volume_layout& layout, uint64_t capacity_bytes) {
  // No place lies beyond the file, so that no sum below can wrap.
  for (uint64_t place : {layout.journal_begin, layout.journal_bytes, layout.checkpoint_begin,
                         layout.checkpoint_bytes, layout.extents_begin})
    if (!aligned(place) || place > capacity_bytes)
      return false;
  return layout.journal_begin >= superblock_area_bytes && layout.journal_bytes >= journal_bytes_min &&
         layout.checkpoint_bytes >= 2 * record_block_bytes &&
         layout.checkpoint_begin >= layout.journal_begin + layout.journal_bytes &&
         layout.extents_begin >= layout.checkpoint_area(2) && layout.extents_begin <= capacity_bytes / 4;
}

} // namespace terrace

#include "storage/volume_layout.hpp"

#include "index/object_header.hpp"
#include "storage/record_block.hpp"

#include <algorithm>
#include <array>

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

namespace {

constexpr unsigned digit_bits = 11; ///< the counters of a digit stay in the first-level cache
constexpr size_t digit_values = size_t{1} << digit_bits;

struct ordered {
  uint64_t generation;
  uint64_t place;
};

size_t digit_of(uint64_t generation, unsigned shift) { return generation >> shift & (digit_values - 1); }

/// One pass of a radix sort from the lowest digit up.
void sort_by_digit(const std::vector<ordered>& from, std::vector<ordered>& to, unsigned shift) {
  std::array<size_t, digit_values> begin{};
  for (const ordered& one : from)
    ++begin[digit_of(one.generation, shift)];
  size_t sum = 0;
  for (size_t& count : begin)
    sum += std::exchange(count, sum);
  for (const ordered& one : from)
    to[begin[digit_of(one.generation, shift)]++] = one;
}

} // namespace

void sort_by_generation(std::vector<index_record>& records) {
  auto older = [](const index_record& a, const index_record& b) { return a.generation < b.generation; };
  if (std::is_sorted(records.begin(), records.end(), older))
    return;
  std::vector<ordered> order(records.size()), other(records.size());
  uint64_t differing = 0;
  for (size_t i = 0; i < records.size(); ++i) {
    order[i] = {records[i].generation, i};
    differing |= records[i].generation ^ records[0].generation;
  }
  for (unsigned shift = 0; shift < 64; shift += digit_bits)
    if (digit_of(differing, shift) != 0) {
      sort_by_digit(order, other, shift);
      order.swap(other);
    }
  other = {};
  std::vector<index_record> sorted;
  sorted.reserve(records.size());
  for (const ordered& one : order)
    sorted.push_back(records[one.place]);
  records = std::move(sorted);
}

} // namespace terrace

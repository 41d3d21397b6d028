#include "storage/volume_layout.hpp"

#include "index/object_header.hpp"
#include "index/payload_checksum.hpp"
#include "storage/record_block.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

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

constexpr std::array<char, 8> checkpoint_magic = {'T', 'E', 'R', 'R', 'C', 'H', 'K', 'P'};

struct raw_header {
  std::array<char, 8> magic;
  uint32_t version;
  uint32_t zero;
  std::array<uint8_t, 16> volume;
  uint64_t number;
  uint64_t journal_sequence;
  uint64_t image_blocks;
  uint64_t records;
  uint64_t checksum;
  std::array<uint8_t, 4024> rest;
};

static_assert(std::endian::native == std::endian::little);
static_assert(std::is_trivially_copyable_v<raw_header> && sizeof(raw_header) == checkpoint_header_bytes);
static_assert(offsetof(raw_header, volume) == 16 && offsetof(raw_header, number) == 32 &&
              offsetof(raw_header, checksum) == 64);

} // namespace

void encode(const checkpoint_header& header, std::span<std::byte, checkpoint_header_bytes> out) {
  raw_header raw{};
  raw.magic = checkpoint_magic;
  raw.version = checkpoint_header_version;
  raw.volume = header.volume.bytes;
  raw.number = header.number;
  raw.journal_sequence = header.journal_sequence;
  raw.image_blocks = header.image_blocks;
  raw.records = header.records;
  raw.checksum = block_checksum(raw, &raw_header::checksum);
  std::memcpy(out.data(), &raw, sizeof raw);
}

result<checkpoint_header>
decode_checkpoint_header(const volume_id& volume, std::span<const std::byte, checkpoint_header_bytes> bytes) {
  raw_header raw;
  std::memcpy(&raw, bytes.data(), sizeof raw);
  if (raw.magic != checkpoint_magic)
    return fail(errc::not_found, "no checkpoint here");
  if (block_checksum(raw, &raw_header::checksum) != raw.checksum)
    return fail(errc::internal, "the checkpoint's header is damaged: its checksum does not match");
  if (raw.version != checkpoint_header_version)
    return fail(errc::unsupported, "checkpoint version " + std::to_string(checkpoint_header_version) +
                                       " was expected, " + std::to_string(raw.version) + " found");
  if (raw.volume != volume.bytes)
    return fail(errc::gone, "the checkpoint is of volume " + to_hex(volume_id{raw.volume}) + ", not of " +
                                to_hex(volume));
  return checkpoint_header{{raw.volume}, raw.number, raw.journal_sequence, raw.image_blocks, raw.records};
}

} // namespace terrace

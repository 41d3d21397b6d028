#include "storage/record_block.hpp"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstring>

namespace terrace {

namespace {

using magic_bytes = std::array<char, 8>;
constexpr magic_bytes journal_magic = {'T', 'E', 'R', 'R', 'J', 'R', 'N', 'L'};
constexpr magic_bytes image_magic = {'T', 'E', 'R', 'R', 'I', 'M', 'A', 'G'};

struct raw_heading {
  magic_bytes magic;
  uint16_t version;
  uint16_t records;
  uint32_t index;
  std::array<uint8_t, 16> volume;
  uint64_t sequence;
  uint64_t checksum; ///< checksum of the block with this field zero
};

static_assert(std::endian::native == std::endian::little);
static_assert(std::is_trivially_copyable_v<raw_heading> && sizeof(raw_heading) == record_block_heading_bytes);
static_assert(offsetof(raw_heading, index) == 12 && offsetof(raw_heading, volume) == 16 &&
              offsetof(raw_heading, sequence) == 32 && offsetof(raw_heading, checksum) == 40);
static_assert(records_per_block == 42);

constexpr size_t checksum_offset = offsetof(raw_heading, checksum);

/// Hashes the bytes before and after the checksum and mixes both, so that no copy of the block is needed.
uint64_t checksum_of(const std::byte* block) {
  uint64_t front = XXH3_64bits(block, checksum_offset);
  return XXH3_64bits_withSeed(block + record_block_heading_bytes,
                              record_block_bytes - record_block_heading_bytes, front);
}

} // namespace

void encode_block(const block_heading& heading, std::span<const index_record> records,
                  std::span<std::byte, record_block_bytes> out) {
  assert(records.size() <= records_per_block);
  std::memset(out.data(), 0, out.size());
  for (size_t i = 0; i < records.size(); ++i)
    encode(records[i],
           std::span<std::byte, index_record_bytes>(
               out.data() + record_block_heading_bytes + i * index_record_bytes, index_record_bytes));
  raw_heading raw{};
  raw.magic = heading.kind == block_kind::journal ? journal_magic : image_magic;
  raw.version = record_block_version;
  raw.records = static_cast<uint16_t>(records.size());
  raw.index = heading.index;
  raw.volume = heading.volume.bytes;
  raw.sequence = heading.sequence;
  std::memcpy(out.data(), &raw, sizeof raw);
  raw.checksum = checksum_of(out.data());
  std::memcpy(out.data(), &raw, sizeof raw);
}

block_view read_block(block_kind kind, const volume_id& volume,
                      std::span<const std::byte, record_block_bytes> bytes) {
  block_view view;
  raw_heading raw;
  std::memcpy(&raw, bytes.data(), sizeof raw);
  bool ours = raw.magic == journal_magic || raw.magic == image_magic;
  if (!ours) {
    bool zero = std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
    view.state = zero ? block_state::empty : block_state::damaged;
    return view;
  }
  if (checksum_of(bytes.data()) != raw.checksum)
    return view;
  view.heading = {raw.magic == journal_magic ? block_kind::journal : block_kind::image,
                  {raw.volume},
                  raw.sequence,
                  raw.index};
  if (view.heading.kind != kind || view.heading.volume != volume || raw.version != record_block_version) {
    view.state = block_state::foreign;
    return view;
  }
  if (raw.records > records_per_block)
    return view;
  view.state = block_state::good;
  view.records = raw.records;
  view.first = bytes.data() + record_block_heading_bytes;
  return view;
}

} // namespace terrace

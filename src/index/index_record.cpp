#include "index/index_record.hpp"

#include <array>
#include <bit>
#include <cassert>
#include <cstring>

namespace terrace {

namespace {

constexpr unsigned block_count_bits =
    24; ///< size of an extent in blocks; its first block takes the other 40 bits

constexpr uint8_t trailing_flag = 1;

struct raw_record {
  uint8_t kind;
  uint8_t digest_width;
  uint16_t pool;
  uint16_t rank;
  uint8_t flags; ///< `trailing_flag`
  uint8_t zero;
  uint32_t space;
  uint32_t payload_bytes;
  std::array<uint8_t, 32> chunk;
  std::array<uint8_t, 32> parent;
  uint64_t generation;
  uint64_t place;
};

static_assert(std::endian::native == std::endian::little);
static_assert(std::is_trivially_copyable_v<raw_record> && sizeof(raw_record) == index_record_bytes);
static_assert(offsetof(raw_record, space) == 8 && offsetof(raw_record, chunk) == 16 &&
              offsetof(raw_record, parent) == 48 && offsetof(raw_record, generation) == 80 &&
              offsetof(raw_record, place) == 88);

bool sound(const index_record& record) {
  if (record.space == 0)
    return false;
  if (record.kind == record_kind::space)
    return true;
  if (record.kind != record_kind::publish && record.kind != record_kind::remove)
    return false;
  return record.generation != 0 && record.digest_width >= digest::min_size &&
         record.digest_width <= digest::max_size && record.offset % disk_alignment_bytes == 0 &&
         record.physical_bytes % disk_alignment_bytes == 0 &&
         record.physical_bytes >= physical_bytes_for(record.payload_bytes) &&
         record.offset / disk_alignment_bytes < 1ULL << (64 - block_count_bits) &&
         record.physical_bytes / disk_alignment_bytes < 1ULL << block_count_bits;
}

} // namespace

index_record space_record(uint32_t number, const space_fingerprint& fingerprint) {
  index_record record;
  record.kind = record_kind::space;
  record.space = number;
  record.chunk = {fingerprint};
  return record;
}

index_record removal_of(const index_record& published) {
  index_record record = published;
  record.kind = record_kind::remove;
  return record;
}

void encode(const index_record& record, std::span<std::byte, index_record_bytes> out) {
  assert(sound(record));
  raw_record raw{};
  raw.kind = static_cast<uint8_t>(record.kind);
  raw.digest_width = record.digest_width;
  raw.pool = record.pool;
  raw.rank = record.rank;
  raw.flags = record.trailing ? trailing_flag : 0;
  raw.space = record.space;
  raw.payload_bytes = record.payload_bytes;
  raw.chunk = record.chunk.bytes;
  raw.parent = record.parent.bytes;
  raw.generation = record.generation;
  raw.place =
      record.offset / disk_alignment_bytes << block_count_bits | record.physical_bytes / disk_alignment_bytes;
  std::memcpy(out.data(), &raw, sizeof raw);
}

std::optional<index_record> decode_record(std::span<const std::byte, index_record_bytes> bytes) {
  raw_record raw;
  std::memcpy(&raw, bytes.data(), sizeof raw);
  index_record record;
  record.kind = static_cast<record_kind>(raw.kind);
  record.digest_width = raw.digest_width;
  record.pool = raw.pool;
  record.rank = raw.rank;
  record.trailing = (raw.flags & trailing_flag) != 0;
  record.space = raw.space;
  record.payload_bytes = raw.payload_bytes;
  record.chunk = {raw.chunk};
  record.parent = {raw.parent};
  record.generation = raw.generation;
  record.offset = (raw.place >> block_count_bits) * disk_alignment_bytes;
  record.physical_bytes = (raw.place & ((1ULL << block_count_bits) - 1)) * disk_alignment_bytes;
  if (!sound(record))
    return std::nullopt;
  return record;
}

} // namespace terrace

#include "storage/checkpoint_header.hpp"

#include "index/payload_checksum.hpp"

#include <array>
#include <bit>
#include <cstring>

namespace terrace {

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

#include "index/object_header.hpp"

#include "base/digest.hpp"
#include "base/random_id.hpp"
#include "index/index_record.hpp"
#include "index/payload_checksum.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>

namespace terrace {

namespace {

constexpr std::array<char, 8> object_magic = {'T', 'E', 'R', 'R', 'O', 'B', 'J', '\0'};

// The on-disk bytes. Little-endian, like every supported machine.
struct layout {
  std::array<char, 8> magic;
  uint32_t version;
  uint16_t pool;
  uint16_t rank;
  std::array<uint8_t, 32> space;
  std::array<uint8_t, 32> chunk;
  uint8_t digest_width;
  std::array<uint8_t, 7> zero;
  uint64_t generation;
  uint64_t epoch;
  std::array<uint8_t, 16> volume;
  uint64_t payload_bytes;
  uint64_t physical_bytes;
  uint64_t payload_checksum;
  uint64_t header_checksum;
  std::array<uint8_t, 3944> rest;
};

static_assert(std::endian::native == std::endian::little);
static_assert(std::is_trivially_copyable_v<layout> && sizeof(layout) == object_header_bytes);
static_assert(offsetof(layout, space) == 16 && offsetof(layout, chunk) == 48 &&
              offsetof(layout, digest_width) == 80);
static_assert(offsetof(layout, generation) == 88 && offsetof(layout, volume) == 104);
static_assert(offsetof(layout, payload_bytes) == 120 && offsetof(layout, header_checksum) == 144);

// Returns which fields contradict each other, or null.
const char* contradiction(const object_header& header) {
  if (header.identity.digest_width < digest::min_size || header.identity.digest_width > digest::max_size)
    return "a digest of 8 to 32 bytes was expected";
  if (header.physical_bytes % disk_alignment_bytes != 0 || header.physical_bytes < object_header_bytes)
    return "a physical size in whole 4 KiB blocks was expected";
  if (header.payload_bytes > header.physical_bytes - object_header_bytes)
    return "a physical size that holds header and payload was expected";
  return nullptr;
}

} // namespace

void encode(const object_header& header, std::span<std::byte, object_header_bytes> out) {
  assert(!contradiction(header));
  layout raw{};
  raw.magic = object_magic;
  raw.version = object_header_version;
  raw.pool = header.identity.pool;
  raw.rank = header.identity.rank;
  raw.space = header.identity.space;
  raw.chunk = header.identity.chunk.bytes;
  raw.digest_width = header.identity.digest_width;
  raw.generation = header.identity.generation;
  raw.epoch = header.identity.epoch;
  raw.volume = header.identity.volume.bytes;
  raw.payload_bytes = header.payload_bytes;
  raw.physical_bytes = header.physical_bytes;
  raw.payload_checksum = header.payload_checksum;
  raw.header_checksum = block_checksum(raw, &layout::header_checksum);
  std::memcpy(out.data(), &raw, sizeof raw);
}

result<object_header> decode(std::span<const std::byte, object_header_bytes> bytes) {
  layout raw;
  std::memcpy(&raw, bytes.data(), sizeof raw);
  if (raw.magic != object_magic)
    return fail(errc::not_found,
                "not an object header: expected the magic TERROBJ; the extent was never written");
  if (raw.version != object_header_version)
    return fail(errc::unsupported, "object header version " + std::to_string(object_header_version) +
                                       " was expected, " + std::to_string(raw.version) +
                                       " found; the object is treated as a miss");
  if (uint64_t sum = block_checksum(raw, &layout::header_checksum); sum != raw.header_checksum)
    return fail(errc::internal, "object header is damaged: its checksum is " +
                                    std::to_string(raw.header_checksum) + ", but its bytes give " +
                                    std::to_string(sum) + "; check the device");
  object_header header{
      .identity = {.space = raw.space,
                   .pool = raw.pool,
                   .rank = raw.rank,
                   .chunk = {raw.chunk},
                   .digest_width = raw.digest_width,
                   .generation = raw.generation,
                   .epoch = raw.epoch,
                   .volume = {raw.volume}},
      .payload_bytes = raw.payload_bytes,
      .physical_bytes = raw.physical_bytes,
      .payload_checksum = raw.payload_checksum,
  };
  if (const char* why = contradiction(header))
    return fail(errc::internal,
                std::string("object header is damaged although its checksum matches: ") + why);
  return header;
}

result<void> matches(const object_header& found, const object_identity& expected) {
  const object_identity& is = found.identity;
  auto differs = [](const char* field, const std::string& want, const std::string& got) {
    return fail(errc::gone, std::string("the extent contains another object: ") + field + " " + want +
                                " was expected, " + got + " found; treated as a miss");
  };
  if (is.volume != expected.volume)
    return differs("volume", to_hex(expected.volume), to_hex(is.volume));
  if (is.epoch != expected.epoch)
    return differs("epoch", std::to_string(expected.epoch), std::to_string(is.epoch));
  if (is.space != expected.space)
    return differs("space", to_hex(digest{expected.space}), to_hex(digest{is.space}));
  if (is.pool != expected.pool)
    return differs("pool", std::to_string(expected.pool), std::to_string(is.pool));
  if (is.rank != expected.rank)
    return differs("rank", std::to_string(expected.rank), std::to_string(is.rank));
  if (is.digest_width != expected.digest_width || is.chunk != expected.chunk)
    return differs("chunk", to_hex(expected.chunk, expected.digest_width), to_hex(is.chunk, is.digest_width));
  if (is.generation != expected.generation)
    return differs("generation", std::to_string(expected.generation), std::to_string(is.generation));
  return {};
}

expected_object expected_of(const opened_space& opened, const volume_id& volume, const object_key& key,
                            uint64_t generation, uint64_t payload_bytes) {
  expected_object expected;
  object_identity& identity = expected.identity;
  identity.space = opened.fingerprint.bytes;
  identity.pool = key.pool;
  identity.rank = key.rank;
  identity.chunk = key.chunk;
  identity.generation = generation;
  identity.epoch = epoch_of(generation);
  identity.volume = volume;
  expected.payload_bytes = payload_bytes;
  return expected;
}

bool is_expected(const object_header& found, const expected_object& expected) {
  return found.payload_bytes == expected.payload_bytes && matches(found, expected.identity).has_value();
}

bool is_expected(std::span<const std::byte, object_header_bytes> header, const expected_object& expected,
                 uint64_t payload_checksum) {
  auto found = decode(header);
  return found && is_expected(*found, expected) && found->payload_checksum == payload_checksum;
}

volume_id random_volume_id() { return {random_boot_id().bytes}; }

std::string to_hex(const volume_id& id) { return to_hex(digest::from(id.bytes), id.bytes.size()); }

} // namespace terrace

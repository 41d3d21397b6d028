#include "storage/superblock.hpp"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace terrace {

namespace {

constexpr std::array<char, 8> magic = {'T', 'E', 'R', 'R', 'S', 'T', 'O', 'R'};

struct layout {
  std::array<char, 8> magic;
  uint32_t version;
  uint32_t zero;
  std::array<uint8_t, 16> store;
  std::array<uint8_t, 16> boot;
  uint64_t epoch;
  uint64_t capacity_bytes;
  uint64_t checksum;
  std::array<uint8_t, 4024> rest;
};

static_assert(std::endian::native == std::endian::little);
static_assert(std::is_trivially_copyable_v<layout> && sizeof(layout) == superblock_bytes);
static_assert(offsetof(layout, store) == 16 && offsetof(layout, epoch) == 48 &&
              offsetof(layout, checksum) == 64);

uint64_t checksum_of(layout copy) {
  copy.checksum = 0;
  return XXH3_64bits(&copy, sizeof copy);
}

} // namespace

void encode(const superblock& block, std::span<std::byte, superblock_bytes> out) {
  layout raw{};
  raw.magic = magic;
  raw.version = superblock_version;
  raw.store = block.store.bytes;
  raw.boot = block.boot.bytes;
  raw.epoch = block.epoch;
  raw.capacity_bytes = block.capacity_bytes;
  raw.checksum = checksum_of(raw);
  std::memcpy(out.data(), &raw, sizeof raw);
}

result<superblock> decode_superblock(std::span<const std::byte, superblock_bytes> bytes) {
  if (std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; }))
    return fail(errc::not_found, "no superblock yet");
  layout raw;
  std::memcpy(&raw, bytes.data(), sizeof raw);
  if (raw.magic != magic)
    return fail(errc::denied, "not a Terrace store: the magic TERRSTOR was expected at its begin; "
                              "choose another path, or remove the file if nothing in it is needed");
  if (raw.version != superblock_version)
    return fail(errc::unsupported, "store version " + std::to_string(superblock_version) + " was expected, " +
                                       std::to_string(raw.version) +
                                       " found; remove the file to start with an empty store");
  if (checksum_of(raw) != raw.checksum)
    return fail(errc::internal, "the store's superblock is damaged (its checksum does not hold); "
                                "remove the file to start with an empty store, and check the device");
  return superblock{{raw.store}, {raw.boot}, raw.epoch, raw.capacity_bytes};
}

} // namespace terrace

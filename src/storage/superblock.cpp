#include "storage/superblock.hpp"

#include "index/payload_checksum.hpp"
#include "storage/aligned_buffer.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>

namespace terrace {

namespace {

constexpr std::array<char, 8> volume_magic = {'T', 'E', 'R', 'R', 'S', 'T', 'O', 'R'};

struct raw_floor {
  std::array<uint8_t, 32> space;
  uint64_t epoch;
};

struct raw_superblock {
  std::array<char, 8> magic;
  uint32_t version;
  uint32_t zero;
  std::array<uint8_t, 16> volume;
  std::array<uint8_t, 16> boot;
  std::array<uint8_t, 16> machine;
  std::array<char, volume_owner::group_bytes_max> group;
  uint64_t sequence;
  uint64_t epoch;
  uint64_t forgotten_below;
  uint64_t capacity_bytes;
  uint64_t journal_begin;
  uint64_t journal_bytes;
  uint64_t checkpoint_begin;
  uint64_t checkpoint_bytes;
  uint64_t extents_begin;
  uint64_t stripe_bytes;
  uint16_t path_index;
  uint16_t path_count;
  uint32_t floor_count;
  uint64_t checksum;
  std::array<raw_floor, superblock::floors_max> floors;
  uint64_t missing;
  std::array<uint8_t, 1304> rest;
};

static_assert(std::endian::native == std::endian::little);
static_assert(std::is_trivially_copyable_v<raw_superblock> && sizeof(raw_superblock) == superblock_bytes);
static_assert(offsetof(raw_superblock, volume) == 16 && offsetof(raw_superblock, machine) == 48 &&
              offsetof(raw_superblock, group) == 64 && offsetof(raw_superblock, sequence) == 128 &&
              offsetof(raw_superblock, journal_begin) == 160 && offsetof(raw_superblock, path_index) == 208 &&
              offsetof(raw_superblock, checksum) == 216 && offsetof(raw_superblock, floors) == 224 &&
              offsetof(raw_superblock, missing) == 2784);

tl::unexpected<error> damaged(const std::string& why) {
  return fail(errc::internal, "the volume's superblock is damaged (" + why +
                                  "); remove the file to start with an empty volume, and check the device");
}

} // namespace

void encode(const superblock& block, std::span<std::byte, superblock_bytes> out) {
  assert(block.floors.size() <= superblock::floors_max);
  raw_superblock raw{};
  raw.magic = volume_magic;
  raw.version = superblock_version;
  raw.volume = block.volume.bytes;
  raw.boot = block.boot.bytes;
  raw.machine = block.owner.machine;
  block.owner.group.copy(raw.group.data(), raw.group.size());
  raw.sequence = block.sequence;
  raw.epoch = block.epoch;
  raw.forgotten_below = block.forgotten_below;
  raw.capacity_bytes = block.capacity_bytes;
  raw.journal_begin = block.layout.journal_begin;
  raw.journal_bytes = block.layout.journal_bytes;
  raw.checkpoint_begin = block.layout.checkpoint_begin;
  raw.checkpoint_bytes = block.layout.checkpoint_bytes;
  raw.extents_begin = block.layout.extents_begin;
  raw.stripe_bytes = block.stripe_bytes;
  raw.path_index = block.path_index;
  raw.path_count = block.path_count;
  raw.floor_count = static_cast<uint32_t>(block.floors.size());
  for (size_t i = 0; i < block.floors.size(); ++i)
    raw.floors[i] = {block.floors[i].space, block.floors[i].epoch};
  raw.missing = block.missing;
  raw.checksum = block_checksum(raw, &raw_superblock::checksum);
  std::memcpy(out.data(), &raw, sizeof raw);
}

result<superblock> decode_superblock(std::span<const std::byte, superblock_bytes> bytes) {
  if (std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; }))
    return fail(errc::not_found, "no superblock yet");
  raw_superblock raw;
  std::memcpy(&raw, bytes.data(), sizeof raw);
  if (raw.magic != volume_magic)
    return fail(errc::denied,
                "not a Terrace volume: expected the magic TERRSTOR at the start of the file; "
                "choose another path, or wipe it (disk.on_mismatch = \"wipe\") if nothing in it is needed");
  if (raw.version != superblock_version)
    return fail(errc::unsupported, "volume version " + std::to_string(superblock_version) +
                                       " was expected, " + std::to_string(raw.version) +
                                       " found; remove the file to start with an empty volume");
  if (block_checksum(raw, &raw_superblock::checksum) != raw.checksum)
    return damaged("its checksum does not match");
  if (raw.floor_count > superblock::floors_max)
    return damaged(std::to_string(raw.floor_count) + " floors where " +
                   std::to_string(superblock::floors_max) + " have room");
  if (raw.path_count == 0 || raw.path_index >= raw.path_count)
    return damaged("it claims to be path " + std::to_string(raw.path_index) + " of " +
                   std::to_string(raw.path_count));
  superblock block;
  block.volume = {raw.volume};
  block.boot = {raw.boot};
  block.owner.machine = raw.machine;
  block.owner.group.assign(raw.group.begin(), std::find(raw.group.begin(), raw.group.end(), '\0'));
  block.sequence = raw.sequence;
  block.epoch = raw.epoch;
  block.forgotten_below = raw.forgotten_below;
  block.capacity_bytes = raw.capacity_bytes;
  block.layout = {raw.journal_begin, raw.journal_bytes, raw.checkpoint_begin, raw.checkpoint_bytes,
                  raw.extents_begin};
  block.path_index = raw.path_index;
  block.path_count = raw.path_count;
  block.stripe_bytes = raw.stripe_bytes;
  block.missing = raw.missing;
  for (size_t i = 0; i < raw.floor_count; ++i)
    block.floors.push_back({raw.floors[i].space, raw.floors[i].epoch});
  return block;
}

result<superblock> newest_superblock(std::span<const std::byte, 2 * superblock_bytes> both) {
  auto first = decode_superblock(both.first<superblock_bytes>());
  auto second = decode_superblock(both.last<superblock_bytes>());
  if (first && second)
    return first->sequence > second->sequence ? first : second;
  if (first || second)
    return first ? first : second;
  // Both copies are bad: the error about bytes that are there says more than the error about missing ones.
  return first.error().code == errc::not_found ? second : first;
}

void forget_all(superblock& block) {
  block.forgotten_below = ++block.epoch;
  block.floors.clear();
}

void forget_space(superblock& block, const space_fingerprint& space) {
  auto known = std::find_if(block.floors.begin(), block.floors.end(),
                            [&](const space_floor& floor) { return floor.space == space; });
  if (known == block.floors.end() && block.floors.size() == superblock::floors_max) {
    forget_all(block);
    return;
  }
  ++block.epoch;
  if (known != block.floors.end())
    known->epoch = block.epoch;
  else
    block.floors.push_back({space, block.epoch});
}

uint64_t floor_of(const superblock& block, const space_fingerprint& space) {
  uint64_t floor = block.forgotten_below;
  for (const space_floor& own : block.floors)
    if (own.space == space)
      floor = std::max(floor, own.epoch);
  return floor;
}

namespace {

result<void> write_durably(volume_device& to, uint64_t offset, const aligned_buffer& bytes) {
  if (auto done = to.write(offset, bytes.bytes()); !done)
    return done;
  return to.sync();
}

result<superblock> no_superblock() { return fail(errc::not_found, "no superblock yet"); }

} // namespace

result<superblock_copies> read_superblocks(volume_device& from) {
  auto size = from.size();
  if (!size)
    return tl::unexpected(size.error());
  aligned_buffer bytes(2 * superblock_bytes);
  std::span<const std::byte, 2 * superblock_bytes> both(bytes.data(), bytes.size());
  result<void> read;
  superblock_copies copies{{no_superblock(), no_superblock()}, no_superblock()};
  for (size_t copy = 0; copy < 2; ++copy) {
    uint64_t begin = copy * superblock_bytes;
    auto into = bytes.bytes().subspan(begin, std::min(superblock_bytes, *size - std::min(*size, begin)));
    if (auto done = into.empty() ? result<void>() : from.read(begin, into); !done) {
      copies.each[copy] = tl::unexpected(done.error());
      read = done;
    } else {
      copies.each[copy] = decode_superblock(
          std::span<const std::byte, superblock_bytes>(bytes.data() + begin, superblock_bytes));
    }
  }
  copies.newest = newest_superblock(both);
  if (!copies.newest && copies.newest.error().code == errc::not_found && !read)
    return tl::unexpected(read.error());
  return copies;
}

std::string describe_damaged_copy(const superblock_copies& copies) {
  if (!copies.newest)
    return {};
  for (size_t copy = 0; copy < copies.each.size(); ++copy) {
    const auto& one = copies.each[copy];
    bool never_written = copies.newest->sequence == 1 && !one && one.error().code == errc::not_found;
    if (!one && !never_written)
      return "copy " + std::to_string(copy) + ": " + one.error().text;
  }
  return {};
}

result<void> write_superblocks(volume_device& to, superblock& block) {
  aligned_buffer bytes(superblock_bytes);
  for (int copy = 0; copy < 2; ++copy) {
    ++block.sequence;
    encode(block, std::span<std::byte, superblock_bytes>(bytes.data(), superblock_bytes));
    if (auto done = write_durably(to, superblock_offset(block.sequence), bytes); !done)
      return done;
  }
  return {};
}

result<void> erase_superblocks(volume_device& to, uint64_t newest_sequence) {
  aligned_buffer zeros(superblock_bytes);
  if (auto done = write_durably(to, superblock_offset(newest_sequence + 1), zeros); !done)
    return done;
  // The block has nothing but its magic, so whatever part of the last write arrives, the disk has this or zeros.
  constexpr size_t magic_bytes = 8;
  aligned_buffer magic(superblock_bytes);
  encode(superblock{}, std::span<std::byte, superblock_bytes>(magic.data(), superblock_bytes));
  std::fill(magic.data() + magic_bytes, magic.data() + superblock_bytes, std::byte{0});
  for (const aligned_buffer* bytes : {&magic, &zeros})
    if (auto done = write_durably(to, superblock_offset(newest_sequence), *bytes); !done)
      return done;
  return {};
}

} // namespace terrace

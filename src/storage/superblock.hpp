// The first blocks of a volume's file: owner, layout, and what is forgotten (docs/disk-format.md).
#pragma once

#include "base/error.hpp"
#include "base/ids.hpp"
#include "index/object_header.hpp"
#include "storage/volume_device.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace terrace {

constexpr uint64_t superblock_bytes = 4096;
constexpr uint32_t superblock_version = 2;

/// The start of the file, reserved for two copies of the superblock and future extensions.
constexpr uint64_t superblock_area_bytes = 16 * superblock_bytes;

/// Offsets in the file, chosen when the volume is created and changed only by resizing (volume_resize.hpp).
/// The two checkpoint areas of `checkpoint_bytes` are adjacent.
struct volume_layout {
  uint64_t journal_begin = 0;
  uint64_t journal_bytes = 0;
  uint64_t checkpoint_begin = 0;
  uint64_t checkpoint_bytes = 0;
  uint64_t extents_begin = 0;

  uint64_t checkpoint_area(uint64_t which) const { return checkpoint_begin + which * checkpoint_bytes; }
  friend bool operator==(const volume_layout&, const volume_layout&) = default;
};

/// The owner, who alone may use a volume. Both parts survive restarts and reboots; a volume of another owner
/// is never read.
struct volume_owner {
  static constexpr size_t group_bytes_max = 64;

  std::array<uint8_t, 16> machine{}; ///< from /etc/machine-id; zeros if there is none
  std::string group;                 ///< the trust group; only its first `group_bytes_max` bytes are used

  friend bool operator==(const volume_owner&, const volume_owner&) = default;
};

/// Objects of this space with a lower epoch are forgotten.
struct space_floor {
  space_fingerprint space{};
  uint64_t epoch = 0;
  friend bool operator==(const space_floor&, const space_floor&) = default;
};

/// Returns the bit of a path in a set of paths.
constexpr uint64_t path_bit(size_t path) { return path < 64 ? 1ULL << path : 0; }

struct superblock {
  static constexpr size_t floors_max = 64;
  static constexpr size_t paths_max = 64;

  volume_id volume; ///< all paths of a volume have the same
  boot_id boot;     ///< boot of the daemon that opened the volume last
  volume_owner owner;
  uint64_t sequence = 0;        ///< counts superblocks: the newest copy is valid; even numbers are in copy 0
  uint64_t epoch = 0;           ///< raised by every opening and every clear; part of an object's generation
  uint64_t forgotten_below = 0; ///< objects of lower epochs are forgotten in every space
  uint64_t capacity_bytes = 0;  ///< size of the whole file
  volume_layout layout;
  uint16_t path_index = 0; ///< index of this file among the volume's paths
  uint16_t path_count = 1;
  uint64_t stripe_bytes = 0;       ///< 0: each object is stored on one path, the only supported mode
  uint64_t missing = 0;            ///< bits (`path_bit`) of the paths absent at the last opening
  std::vector<space_floor> floors; ///< at most `floors_max`

  friend bool operator==(const superblock&, const superblock&) = default;
};

/// Returns the offset of the copy with this sequence number. Writing the next one never touches the newest.
constexpr uint64_t superblock_offset(uint64_t sequence) { return sequence % 2 * superblock_bytes; }

/// Fills all of `out`. There may be at most `floors_max` floors (asserted).
void encode(const superblock& block, std::span<std::byte, superblock_bytes> out);

/// Decodes one copy. Errors: `not_found` for a block of zeros, `denied` for data not written by Terrace,
/// `unsupported` for another version, `internal` for a damaged block.
result<superblock> decode_superblock(std::span<const std::byte, superblock_bytes> bytes);

/// Returns the newest valid copy; a torn or damaged copy is ignored if the other is valid. Errors as above,
/// `not_found` if both are zeros.
result<superblock> newest_superblock(std::span<const std::byte, 2 * superblock_bytes> both);

/// Forgets by raising the epoch and the floor of one space or of all. If there is no room for another space,
/// all is forgotten: a cache may forget more than requested, but never less.
void forget_all(superblock& block);
void forget_space(superblock& block, const space_fingerprint& space);

/// Returns the lowest valid epoch for objects of this space.
uint64_t floor_of(const superblock& block, const space_fingerprint& space);

// Reads and writes both copies of a superblock.

struct superblock_copies {
  std::array<result<superblock>, 2> each; ///< errors as in `decode_superblock`
  result<superblock> newest;              ///< as from `newest_superblock`
};

/// Describes what is wrong with one copy of a superblock whose other copy is valid; empty if both are valid,
/// or if the volume's creation was interrupted before it wrote the second.
std::string describe_damaged_copy(const superblock_copies& copies);

/// Fails with the device's error if no copy can be read; the result contains the state of each copy. Missing
/// bytes of a file shorter than both copies count as zeros.
result<superblock_copies> read_superblocks(volume_device& from);

/// Writes both copies, one after the other, each made durable: a crash leaves one of them intact, and damage
/// to one does not bring back objects that the other has forgotten. Raises `block.sequence` by two.
result<void> write_superblocks(volume_device& to, superblock& block);

/// Zeros both copies, the older one first: until the second write is durable the volume is unchanged,
/// afterwards there is none. A power failure that tears the second write leaves a damaged superblock, not a
/// file of another kind.
result<void> erase_superblocks(volume_device& to, uint64_t newest_sequence);

} // namespace terrace

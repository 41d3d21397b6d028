// The first blocks of a volume's file: whose bytes these are, where they lie, and what of them is forgotten
// (docs/disk-format.md).
#pragma once

#include "base/error.hpp"
#include "base/ids.hpp"
#include "storage/object_header.hpp"
#include "storage/volume_id.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace terrace {

constexpr uint64_t superblock_bytes = 4096;
constexpr uint32_t superblock_version = 2;

/// The begin of the file that nothing else may touch: two copies of the superblock and room for its successors.
constexpr uint64_t superblock_area_bytes = 16 * superblock_bytes;

/// Offsets in the file, chosen when the volume is made; only resizing (volume_resize.hpp) changes them. Two checkpoint areas of `checkpoint_bytes` follow each other.
struct volume_layout {
  uint64_t journal_begin = 0;
  uint64_t journal_bytes = 0;
  uint64_t checkpoint_begin = 0;
  uint64_t checkpoint_bytes = 0;
  uint64_t extents_begin = 0;

  uint64_t checkpoint_area(uint64_t which) const { return checkpoint_begin + which * checkpoint_bytes; }
  friend bool operator==(const volume_layout&, const volume_layout&) = default;
};

/// Who may use a volume. Both survive restarts and reboots; a volume of another owner is never read.
struct volume_owner {
  static constexpr size_t group_bytes_max = 64;

  std::array<uint8_t, 16> machine{}; ///< of /etc/machine-id; zeros where there is none
  std::string group;                 ///< the trust group; its first `group_bytes_max` bytes count

  friend bool operator==(const volume_owner&, const volume_owner&) = default;
};

/// Objects of this space whose epoch is lower are forgotten.
struct space_floor {
  space_fingerprint space{};
  uint64_t epoch = 0;
  friend bool operator==(const space_floor&, const space_floor&) = default;
};

/// Of a set of paths.
constexpr uint64_t path_bit(size_t path) { return path < 64 ? 1ULL << path : 0; }

struct superblock {
  static constexpr size_t floors_max = 64;
  static constexpr size_t paths_max = 64;

  volume_id volume; ///< the same on all paths of a volume
  boot_id boot;     ///< of the daemon that opened the volume last
  volume_owner owner;
  uint64_t sequence = 0;        ///< of superblocks: the newest copy counts; even ones are copy 0
  uint64_t epoch = 0;           ///< raised by every opening and every clear; an object's is in its generation
  uint64_t forgotten_below = 0; ///< objects of lower epochs are forgotten, whatever their space
  uint64_t capacity_bytes = 0;  ///< of the whole file
  volume_layout layout;
  uint16_t path_index = 0; ///< which of the volume's paths this file is
  uint16_t path_count = 1;
  uint64_t stripe_bytes = 0; ///< 0: each object lies whole on one path, the only thing there is
  uint64_t missing =
      0; ///< the paths that were not there when the volume was opened last, as bits (`path_bit`)
  std::vector<space_floor> floors; ///< at most `floors_max`

  friend bool operator==(const superblock&, const superblock&) = default;
};

/// Where the copy with this sequence number lies. Writing the next one never touches the newest.
constexpr uint64_t superblock_offset(uint64_t sequence) { return sequence % 2 * superblock_bytes; }

/// Fills all of `out`. At most `floors_max` floors (asserted).
void encode(const superblock& block, std::span<std::byte, superblock_bytes> out);

/// One copy. Errors: `not_found` for a block of zeros, `denied` when something that is not ours stands there,
/// `unsupported` for another version, `internal` for a damaged block.
result<superblock> decode_superblock(std::span<const std::byte, superblock_bytes> bytes);

/// The newest sound one of both copies; a torn or damaged copy is passed over as long as the other is sound. Errors as
/// above, `not_found` when both are zeros.
result<superblock> newest_superblock(std::span<const std::byte, 2 * superblock_bytes> both);

/// Forgets: raises the epoch, and with it the floor of one space or of all. When there is no room for one more space,
/// all is forgotten: a cache may forget more than it was asked to, never less.
void forget_all(superblock& block);
void forget_space(superblock& block, const space_fingerprint& space);

/// The lowest epoch whose objects of this space count.
uint64_t floor_of(const superblock& block, const space_fingerprint& space);

} // namespace terrace

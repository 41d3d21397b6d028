// Reads and writes both copies of a superblock.
#pragma once

#include "storage/superblock.hpp"
#include "storage/volume_device.hpp"

#include <array>
#include <string>

namespace terrace {

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

// Both copies of a superblock, read and written.
#pragma once

#include "storage/superblock.hpp"
#include "storage/volume_device.hpp"

#include <array>

namespace terrace {

struct superblock_copies {
  std::array<result<superblock>, 2> each; ///< errors as those of `decode_superblock`
  result<superblock> newest;              ///< as `newest_superblock` says
};

/// Errors: the device's, when no copy can be read that is one; what stands in the copies is in the answer. Of a file that
/// is shorter than both copies, what is missing counts as zeros.
result<superblock_copies> read_superblocks(volume_device& from);

/// Both copies, one after the other, each made durable: a crash leaves one of them whole, and damage to one does not
/// bring back what the other says is forgotten. Raises `block.sequence` by two.
result<void> write_superblocks(volume_device& to, superblock& block);

/// Zeros in both copies, the older one first: until the last is durable the volume is as it was, and then there is none. A
/// power cut that tears the last write leaves a superblock that is damaged, and not a file of another kind.
result<void> erase_superblocks(volume_device& to, uint64_t newest_sequence);

} // namespace terrace

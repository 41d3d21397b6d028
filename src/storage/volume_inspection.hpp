// All metadata of a volume, without its objects' bytes: the output of `terrace disk inspect`.
#pragma once

#include "storage/checkpoint_header.hpp"
#include "storage/recovery.hpp"
#include "storage/volume_device.hpp"

#include <array>
#include <optional>
#include <string>

namespace terrace {

struct inspected_checkpoint {
  std::optional<checkpoint_header> header;
  std::string problem; ///< why there is none; empty if none was ever written
};

struct volume_inspection {
  superblock block;
  std::array<std::string, 2> superblock_problems; ///< problem of each copy; empty: valid
  uint64_t file_bytes = 0;
  uint64_t arena_bytes = 0;
  std::array<inspected_checkpoint, 2> checkpoints; ///< by area
  recovered_volume found;                          ///< without superseded objects
  uint64_t superseded = 0; ///< objects for which a newer one with the same key was found

  /// Journal blocks that a recovery reads, and the capacity of the journal.
  uint64_t journal_blocks_live() const { return found.position.next_sequence - found.position.live_from; }
  uint64_t journal_blocks() const { return block.layout.journal_bytes / record_block_bytes; }
  /// The number of damaged or missing metadata items; 0 for a valid volume.
  uint64_t problems() const;
};

/// Reads the superblock, both checkpoint headers, and everything that recovery reads. Errors: as
/// `read_volume`.
result<volume_inspection> inspect(volume_device& from);

} // namespace terrace

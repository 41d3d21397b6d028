// A volume's file, opened while no daemon uses it: for `terrace disk`.
#pragma once

#include "base/unique_fd.hpp"
#include "storage/extent_file.hpp"
#include "storage/recovery.hpp"
#include "storage/superblock.hpp"
#include "storage/volume_device.hpp"
#include "storage/volume_layout.hpp"

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace terrace {

// All metadata of a volume, without its objects' bytes: the output of `terrace disk inspect`.

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

enum class volume_access {
  read,  ///< others may read at the same time; no daemon can open it
  write, ///< nobody else has it open
};

/// Locked for the lifetime of the object. Opening does not change the file.
class offline_volume {
 public:
  /// Errors: `not_found` and `denied` (the path, permissions), `unsupported` (not a regular file), `busy` (a
  /// daemon or another command has it open, and which).
  static result<offline_volume> open(const std::string& path, volume_access access);

  /// Bypasses the page cache if the file system supports it.
  file_device& device() { return *device_; }

 private:
  offline_volume() = default;

  unique_fd fd_;
  std::unique_ptr<file_device> device_;
};

/// Reads the volume in the file. One path of several is a volume like any other. Errors: as
/// `newest_superblock`; `internal` if its layout is inconsistent.
result<superblock> read_volume(volume_device& from);

/// Returns how many bytes of its arena are within the file.
uint64_t arena_bytes(const superblock& block, uint64_t file_bytes);

/// Says for each file what an opening with these options would forget because `capacity_bytes` is smaller than before.
/// Only reads, without a lock: a daemon may be using the files, and then the number is that of the moment. Files that
/// are not there, are no volume of this owner or cannot be read are left to the opening. Blocks.
std::vector<std::string> describe_shrinking(const extent_files_options& files);

} // namespace terrace

// A volume's file, opened while no daemon has it: what `terrace disk` works on.
#pragma once

#include "base/unique_fd.hpp"
#include "storage/superblock.hpp"
#include "storage/volume_device.hpp"

#include <memory>

namespace terrace {

enum class volume_access {
  read,  ///< others may read it meanwhile; no daemon may open it
  write, ///< nobody else may
};

/// Locked as long as it lives. Opening changes nothing in the file.
class offline_volume {
 public:
  /// Errors: `not_found` and `denied` (the path, permissions), `unsupported` (no regular file), `busy` (a daemon or
  /// another command has it, and which).
  static result<offline_volume> open(const std::string& path, volume_access access);

  /// Past the page cache where the file system can.
  file_device& device() { return *device_; }

 private:
  offline_volume() = default;

  unique_fd fd_;
  std::unique_ptr<file_device> device_;
};

/// The volume in that file. Errors: as `newest_superblock`; `internal` when its layout contradicts itself.
/// One path of several is a volume like any other.
result<superblock> read_volume(volume_device& from);

/// Bytes of its arena that the file has.
uint64_t arena_bytes(const superblock& block, uint64_t file_bytes);

} // namespace terrace

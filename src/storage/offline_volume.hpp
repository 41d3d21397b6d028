// A volume's file, opened while no daemon uses it: for `terrace disk`.
#pragma once

#include "base/unique_fd.hpp"
#include "storage/superblock.hpp"
#include "storage/volume_device.hpp"

#include <memory>

namespace terrace {

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

} // namespace terrace

// One path of a volume while it is being opened: the file is locked and examined, and restored unless it is
// kept. All calls block for as long as the device takes.
#pragma once

#include "base/unique_fd.hpp"
#include "storage/path_set.hpp"
#include "storage/volume_device.hpp"
#include "storage/volume_layout.hpp"

#include <sys/types.h>

#include <memory>
#include <string>

namespace terrace {

/// Returns the owner in its on-disk form.
volume_owner owner_on_disk(volume_owner owner);

class path_opening {
 public:
  /// Opens the file, or creates an empty one, and locks it. Errors: `busy` if another process has it open,
  /// `unsupported` if it is not a regular file, and the system's.
  static result<std::unique_ptr<path_opening>> begin(const std::string& path);

  /// Unless `keep` was called, removes a file created by this opening and restores the size of any other.
  ~path_opening();
  path_opening(const path_opening&) = delete;
  path_opening& operator=(const path_opening&) = delete;

  /// Examines the start of the file. Errors: the device's.
  result<found_path> look(const volume_owner& owner);

  /// Overwrites the index with zeros, so that nothing previously in this file's volume is recovered.
  result<void> erase_index(const volume_layout& layout);

  /// Makes the file's name durable: an fsync of the file need not do so.
  result<void> sync_name() const;

  file_device& device() { return device_; }
  int fd() const { return fd_.get(); }
  bool made() const { return made_; }
  bool had_bytes() const { return size_ != 0; }

  /// The file was not changed, so a created file is removed and otherwise nothing needs restoring.
  void keep_unless_made() { kept_ = !made_; }
  unique_fd keep() {
    kept_ = true;
    return std::move(fd_);
  }

 private:
  path_opening(std::string path, unique_fd fd, bool made, off_t size);

  std::string path_;
  unique_fd fd_;
  file_device device_;
  bool made_;
  off_t size_;
  bool kept_ = false;
};

} // namespace terrace

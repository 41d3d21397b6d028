// One path of a volume on its way to be open: its file, locked and looked at, and put back as it was found unless it is kept.
// All calls block for as long as the device likes.
#pragma once

#include "base/unique_fd.hpp"
#include "storage/path_set.hpp"
#include "storage/volume_device.hpp"
#include "storage/volume_layout.hpp"

#include <sys/types.h>

#include <memory>
#include <string>

namespace terrace {

/// What a configured owner is as it stands on disk.
volume_owner owner_on_disk(volume_owner owner);

class path_opening {
 public:
  /// Opens the file, or makes an empty one, and locks it. Errors: `busy` when another process has it open, `unsupported` for
  /// what is no regular file, the system's.
  static result<std::unique_ptr<path_opening>> begin(const std::string& path);

  /// Unless `keep` was called, a file that this opening made is gone, and another one as long as it was.
  ~path_opening();
  path_opening(const path_opening&) = delete;
  path_opening& operator=(const path_opening&) = delete;

  /// What stands at the begin of the file. Errors: the device's.
  result<found_path> look(const volume_owner& owner);

  /// Nothing of the same volume that the file has must be found again: the index is overwritten with zeros.
  result<void> erase_index(const volume_layout& layout);

  file_device& device() { return device_; }
  int fd() const { return fd_.get(); }
  bool made() const { return made_; }
  bool had_bytes() const { return size_ != 0; }

  /// Nothing was changed, so nothing has to be put back but the absence of a file.
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

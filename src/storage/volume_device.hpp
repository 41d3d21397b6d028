// A volume's file for those who work on it while no daemon does (`terrace disk`); the seam at which tests let it crash.
#pragma once

#include "storage/volume_reader.hpp"

#include <string>

namespace terrace {

class volume_device : public volume_reader {
 public:
  /// Whole blocks of 4 KiB from aligned memory. Seen by reads at once, durable after `sync`. Errors: `internal`, the
  /// device's.
  virtual result<void> write(uint64_t file_offset, std::span<const std::byte> bytes) = 0;
  /// What was written and resized until now survives a power cut.
  virtual result<void> sync() = 0;
  virtual result<uint64_t> size() = 0;
  /// Every byte of the new size is allocated; what is new reads as zeros. Errors: `no_space`, naming wanted and available
  /// bytes; the device's. After an error the size is as it was.
  virtual result<void> resize(uint64_t bytes) = 0;
};

/// With pread(2), pwrite(2), fsync(2) and fallocate(2): blocks, so it is for a thread of its own. Reads may come from
/// several threads.
class file_device : public volume_device {
 public:
  /// The descriptor stays the caller's; the path is for texts.
  file_device(std::string path, int fd) : path_(std::move(path)), fd_(fd), reader_(fd) {}

  result<void> read(uint64_t file_offset, std::span<std::byte> into) override;
  result<void> write(uint64_t file_offset, std::span<const std::byte> bytes) override;
  result<void> sync() override;
  result<uint64_t> size() override;
  result<void> resize(uint64_t bytes) override;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int fd_;
  file_reader reader_;
};

/// Lets reads and writes pass by the page cache. Empty when that works, otherwise why it does not: then the page cache is
/// used.
std::string try_direct(int fd);

/// "PATH: what: reason", with the code that the number of a failed system call stands for.
tl::unexpected<error> fail_system(const std::string& path, const char* what, int number);

} // namespace terrace

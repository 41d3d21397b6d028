// A volume's file for offline work (`terrace disk`); tests inject crashes behind this interface.
#pragma once

#include "base/error.hpp"
#include "base/unique_fd.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace terrace {

// Reads the metadata of a volume; tests implement this interface with a simulated device.

class volume_reader {
 public:
  virtual ~volume_reader() = default;

  /// Fills `into` from this file offset; offset, size and the address of the memory are multiples of 4 KiB.
  /// Errors: `internal`, from the device.
  virtual result<void> read(uint64_t file_offset, std::span<std::byte> into) = 0;
};

/// Uses pread(2), which blocks, so it needs its own thread.
class file_reader : public volume_reader {
 public:
  explicit file_reader(int fd) : fd_(fd) {}
  result<void> read(uint64_t file_offset, std::span<std::byte> into) override;

 private:
  int fd_;
};

class volume_device : public volume_reader {
 public:
  /// Writes whole blocks of 4 KiB from aligned memory. Reads see them immediately; they are durable after
  /// `sync`. Errors: `internal`, from the device.
  virtual result<void> write(uint64_t file_offset, std::span<const std::byte> bytes) = 0;
  /// Makes everything written and resized before survive a power failure.
  virtual result<void> sync() = 0;
  virtual result<uint64_t> size() = 0;
  /// Changes the size. Every byte of the new size is allocated; new bytes read as zeros. Errors: `no_space`
  /// with requested and available bytes; the device's. On error the size is unchanged.
  virtual result<void> resize(uint64_t bytes) = 0;
};

/// Uses pread(2), pwrite(2), fsync(2) and fallocate(2), which block, so it needs its own thread. Several
/// threads may read.
class file_device : public volume_device {
 public:
  /// The caller keeps ownership of the descriptor; the path is for texts.
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

/// Makes reads and writes bypass the page cache. Empty on success, otherwise the reason why the page cache is
/// used.
std::string try_direct(int fd);

/// Opens the same file once more, for reading only, with O_DIRECT. Errors: those of the system, with the path.
result<std::shared_ptr<named_file>> open_for_readers(int fd, const std::string& path);

/// Makes the error "PATH: what: reason", with the error code for the errno of a failed system call.
tl::unexpected<error> fail_system(const std::string& path, const char* text, int number);

} // namespace terrace

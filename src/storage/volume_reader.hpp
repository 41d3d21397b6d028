// Reads the metadata of a volume; tests implement this interface with a simulated device.
#pragma once

#include "base/error.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace terrace {

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

} // namespace terrace

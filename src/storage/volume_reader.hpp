// Reads the metadata of a volume; the seam at which tests put a simulated device.
#pragma once

#include "base/error.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace terrace {

class volume_reader {
 public:
  virtual ~volume_reader() = default;

  /// Fills `into` from that offset of the file; both are whole blocks of 4 KiB, and so is the memory's address. Errors:
  /// `internal`, the device's.
  virtual result<void> read(uint64_t file_offset, std::span<std::byte> into) = 0;
};

/// With pread(2): blocks, so it is for a thread of its own.
class file_reader : public volume_reader {
 public:
  explicit file_reader(int fd) : fd_(fd) {}
  result<void> read(uint64_t file_offset, std::span<std::byte> into) override;

 private:
  int fd_;
};

} // namespace terrace

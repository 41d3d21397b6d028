// Reads objects from files straight into memory of a device, and verifies them there before anybody uses a byte.
#pragma once

#include "base/unique_fd.hpp"
#include "gpu/device.hpp"
#include "index/expected_object.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace terrace::gpu {

/// An object on disk, and its place in a slot: header block, payload, padding.
struct disk_extent {
  uint64_t file = 0; ///< number of the file
  uint64_t file_offset = 0;
  uint64_t bytes = 0; ///< a multiple of 4 KiB, like both offsets
  uint64_t at = 0;    ///< offset in the slot
  expected_object expected;
};

/// The result of a batch.
struct read_batch {
  error failure;       ///< `bad_request`; `gone` if the device is lost
  uint64_t good = 0;   ///< bit i: extent i is in its slot, with its header and checksum as expected
  uint64_t unread = 0; ///< bit i: the library could not read extent i
  std::string why;     ///< reason for the first extent that is not good
};

/// Safe on all threads, and never blocks: its own threads do the work and also call `done`, once. Its
/// destructor waits for them.
class disk_reader {
 public:
  static constexpr uint64_t slots = 4;
  static constexpr size_t extents_max = 64; ///< in a batch
  /// Smaller payloads are not verified on a device.
  static constexpr uint64_t payload_bytes_min = 241;

  virtual ~disk_reader() = default;
  /// The slots, one after the other and of one size.
  virtual const std::shared_ptr<memory>& staging() const = 0;
  uint64_t slot_bytes() const { return staging()->bytes() / slots; }

  /// Opens the file for reads under this number. The descriptor is open for O_DIRECT. Files are opened one after the
  /// other, and reads do not wait for that. Errors: `unsupported` if the file cannot be read directly.
  virtual void add_file(uint64_t number, unique_fd descriptor, std::function<void(result<void>)> done) = 0;
  /// Precondition: nothing else uses the slot.
  virtual void read(uint64_t slot, std::vector<disk_extent> extents,
                    std::function<void(read_batch)> done) = 0;
};

} // namespace terrace::gpu

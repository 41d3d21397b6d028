// The first 4 KiB of a checkpoint area (docs/disk-format.md). It is written last: without it the area holds nothing.
#pragma once

#include "base/error.hpp"
#include "storage/volume_id.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace terrace {

constexpr uint64_t checkpoint_header_bytes = 4096;
constexpr uint32_t checkpoint_header_version = 1;

struct checkpoint_header {
  volume_id volume;
  uint64_t number = 0;           ///< of the checkpoint; the higher one of both areas counts
  uint64_t journal_sequence = 0; ///< of the first journal block that is to be read after it
  uint64_t image_blocks = 0;     ///< they follow the header
  uint64_t records = 0;          ///< in them: how much room a reader should make

  friend bool operator==(const checkpoint_header&, const checkpoint_header&) = default;
};

void encode(const checkpoint_header& header, std::span<std::byte, checkpoint_header_bytes> out);

/// Errors: `not_found` where no header was written, `unsupported` for another version, `internal` for a damaged one,
/// `gone` for that of another volume.
result<checkpoint_header> decode_checkpoint_header(const volume_id& volume,
                                                   std::span<const std::byte, checkpoint_header_bytes> bytes);

} // namespace terrace

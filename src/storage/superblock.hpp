// The first 4 KiB of a store's file: whose bytes these are (docs/disk-format.md).
#pragma once

#include "base/error.hpp"
#include "base/ids.hpp"
#include "storage/store_id.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace terrace {

constexpr uint64_t superblock_bytes = 4096;
constexpr uint32_t superblock_version = 1;

/// The begin of the file that no extent may touch: the superblock and room for its successors.
constexpr uint64_t superblock_area_bytes = 16 * superblock_bytes;

struct superblock {
  store_id store;
  boot_id boot;                ///< of the daemon that opened the store last
  uint64_t epoch = 0;          ///< every opening raises it; headers of earlier epochs are void
  uint64_t capacity_bytes = 0; ///< of the whole file

  friend bool operator==(const superblock&, const superblock&) = default;
};

void encode(const superblock& block, std::span<std::byte, superblock_bytes> out);

/// Errors: `not_found` for a block of zeros (a file that was made and never finished), `denied` when
/// something that is not ours stands there, `unsupported` for another version, `internal` for a damaged
/// block.
result<superblock> decode_superblock(std::span<const std::byte, superblock_bytes> bytes);

} // namespace terrace

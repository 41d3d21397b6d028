// 4 KiB of index records with a checksum: the unit of journal and checkpoint images (docs/disk-format.md).
#pragma once

#include "index/index_record.hpp"
#include "index/object_header.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace terrace {

constexpr uint64_t record_block_bytes = 4096;
constexpr uint16_t record_block_version = 1;
constexpr uint64_t record_block_heading_bytes = 48;
constexpr uint64_t records_per_block = (record_block_bytes - record_block_heading_bytes) / index_record_bytes;

enum class block_kind : uint8_t { journal, image };

/// The heading of a block. A block is valid only if all of it matches what the reader expects, so blocks of
/// another volume, an earlier round of the journal or an earlier checkpoint are not mistaken for current
/// ones.
struct block_heading {
  block_kind kind = block_kind::journal;
  volume_id volume;
  uint64_t sequence =
      0; ///< journal: number of the block since the volume was made; image: number of the checkpoint
  uint32_t index = 0; ///< image: index of the block in it; journal: 0

  friend bool operator==(const block_heading&, const block_heading&) = default;
};

/// Fills all of `out` with at most `records_per_block` records (asserted).
void encode_block(const block_heading& heading, std::span<const index_record> records,
                  std::span<std::byte, record_block_bytes> out);

enum class block_state : uint8_t {
  good,
  empty,   ///< never written
  foreign, ///< a complete block of another volume, version or kind
  damaged, ///< torn, corrupted, or not a Terrace block
};

/// A view of a valid block in place; it refers to the bytes that were read.
struct block_view {
  block_state state = block_state::damaged;
  block_heading heading;
  uint16_t records = 0;
  const std::byte* first = nullptr;

  std::span<const std::byte, index_record_bytes> record(size_t i) const {
    return std::span<const std::byte, index_record_bytes>(first + i * index_record_bytes, index_record_bytes);
  }
};

block_view read_block(block_kind kind, const volume_id& volume,
                      std::span<const std::byte, record_block_bytes> bytes);

} // namespace terrace

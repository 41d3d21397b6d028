// One change of a disk tier's index, as stored in journal and checkpoints (docs/disk-format.md).
#pragma once

#include "base/digest.hpp"
#include "index/object_header.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace terrace {

constexpr uint64_t index_record_bytes = 96;

/// Each write of an object has a generation that no other write to the volume ever had: the volume's epoch at
/// that time, followed by a number. So generations increase across restarts and clears.
constexpr unsigned generation_number_bits = 40;
constexpr uint64_t epoch_max = (1ULL << 24) - 1;
constexpr uint64_t epoch_of(uint64_t generation) { return generation >> generation_number_bits; }
constexpr uint64_t first_generation(uint64_t epoch) { return epoch << generation_number_bits | 1; }

enum class record_kind : uint8_t {
  publish = 1, ///< the object is complete on disk
  remove = 2,  ///< the object is no longer valid: evicted, or found damaged. Its extent may have been reused
  space = 3,   ///< the meaning of a space number used in other records
};

struct index_record {
  record_kind kind = record_kind::publish;
  uint8_t digest_width = digest::max_size;
  uint16_t pool = 0;
  uint16_t rank = 0;
  bool trailing = false;      ///< belongs to a pool in which only the last objects of a prefix are needed
  uint32_t space = 0;         ///< the space's number within this volume, not 0; `space` records define it
  uint32_t payload_bytes = 0; ///< at most 1 GiB
  digest chunk;               ///< `space` records: the fingerprint
  /// digest of the previous chunk whose object of this pool and rank is also present, or zeros
  digest parent;
  uint64_t generation = 0;
  uint64_t offset = 0;         ///< offset of the extent in the arena
  uint64_t physical_bytes = 0; ///< size of the extent

  friend bool operator==(const index_record&, const index_record&) = default;
};

index_record space_record(uint32_t number, const space_fingerprint& fingerprint);
/// The record that removes a published object.
index_record removal_of(const index_record& published);

/// The record must be valid (asserted).
void encode(const index_record& record, std::span<std::byte, index_record_bytes> out);

/// Nullopt if the fields are inconsistent: an unknown kind, a digest that is too short or too long, a payload
/// larger than its extent, a generation of 0.
std::optional<index_record> decode_record(std::span<const std::byte, index_record_bytes> bytes);

} // namespace terrace

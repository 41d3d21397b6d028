// One change of a disk tier's index, as it stands in journal and checkpoints (docs/disk-format.md).
#pragma once

#include "base/digest.hpp"
#include "storage/object_header.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace terrace {

constexpr uint64_t index_record_bytes = 96;

/// A write of an object has a generation that no other write to the volume ever had: the volume's epoch at that time, then
/// a number. So generations grow over restarts and clears.
constexpr unsigned generation_number_bits = 40;
constexpr uint64_t epoch_max = (1ULL << 24) - 1;
constexpr uint64_t epoch_of(uint64_t generation) { return generation >> generation_number_bits; }
constexpr uint64_t first_generation(uint64_t epoch) { return epoch << generation_number_bits | 1; }

enum class record_kind : uint8_t {
  publish = 1, ///< the object is complete on disk
  remove = 2,  ///< it is not: evicted, or found damaged. Its extent may have been reused since
  space = 3,   ///< what a space number of other records stands for
};

struct index_record {
  record_kind kind = record_kind::publish;
  uint8_t digest_width = digest::max_size;
  uint16_t pool = 0;
  uint16_t rank = 0;
  bool trailing = false;      ///< of a pool of which only the last objects of a prefix are needed
  uint32_t space = 0;         ///< a number of this volume, not 0; a `space` record says of which space
  uint32_t payload_bytes = 0; ///< at most 1 GiB
  digest chunk;               ///< `space` records: the fingerprint
  digest parent; ///< of the chunk before it whose object of this pool and rank is here too, or zeros
  uint64_t generation = 0;
  uint64_t offset = 0;         ///< of the extent in the arena
  uint64_t physical_bytes = 0; ///< of the extent

  friend bool operator==(const index_record&, const index_record&) = default;
};

index_record space_record(uint32_t number, const space_fingerprint& fingerprint);
/// What takes a published object out again.
index_record removal_of(const index_record& published);

/// The record must be sound (asserted).
void encode(const index_record& record, std::span<std::byte, index_record_bytes> out);

/// Nothing when the fields contradict each other: an unknown kind, a digest that is too short or too long, a payload
/// that its extent cannot hold, a generation of 0.
std::optional<index_record> decode_record(std::span<const std::byte, index_record_bytes> bytes);

} // namespace terrace

// Selects, among the objects found by recovery, those that a tier would serve, and sums their sizes.
#pragma once

#include "storage/recovery.hpp"

#include <cstdint>
#include <vector>

namespace terrace {

/// Keeps the newest of the objects with equal keys (space, pool, rank, chunk); removals of the others did not
/// reach the disk. Preserves the order by ascending generation. Returns the number of dropped objects.
uint64_t keep_newest_of_each_key(ordered_records& objects);

struct object_sum {
  uint64_t objects = 0;
  uint64_t payload_bytes = 0;
  uint64_t physical_bytes = 0; ///< sum of their extents, including headers and padding

  void add(const index_record& object) {
    ++objects;
    payload_bytes += object.payload_bytes;
    physical_bytes += object.physical_bytes;
  }
  object_sum& operator+=(const object_sum& other) {
    objects += other.objects;
    payload_bytes += other.payload_bytes;
    physical_bytes += other.physical_bytes;
    return *this;
  }
  friend bool operator==(const object_sum&, const object_sum&) = default;
};

struct space_sum {
  recovered_space space;
  object_sum sum;
};

struct size_sum {
  uint64_t payload_bytes_max = 0; ///< a power of two: the sizes above half of it, up to it
  object_sum sum;
};

/// Sums by space number; only spaces with objects.
std::vector<space_sum> sum_by_space(const recovered_volume& volume);
/// Sums by ascending size; only sizes with objects.
std::vector<size_sum> sum_by_size(const recovered_volume& volume);

} // namespace terrace

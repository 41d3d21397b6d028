// Of what recovery finds, the objects that a tier would serve; and how many bytes they are.
#pragma once

#include "storage/recovery.hpp"

#include <cstdint>
#include <vector>

namespace terrace {

/// Of objects with the same key (space, pool, rank, chunk) the newest stays: the removal of the others did not reach the
/// disk. Keeps the order, by ascending generation. Answers how many went.
uint64_t keep_newest_of_each_key(std::vector<index_record>& objects);

struct object_sum {
  uint64_t objects = 0;
  uint64_t payload_bytes = 0;
  uint64_t physical_bytes = 0; ///< of their extents: with headers and padding

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
  uint64_t payload_bytes_max = 0; ///< a power of two; those above half of it, up to it
  object_sum sum;
};

/// By the number of the space; only spaces with objects.
std::vector<space_sum> sum_by_space(const recovered_volume& volume);
/// By rising size; only sizes with objects.
std::vector<size_sum> sum_by_size(const recovered_volume& volume);

} // namespace terrace

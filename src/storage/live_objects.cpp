#include "storage/live_objects.hpp"

#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <map>

namespace terrace {

namespace {

bool same_key(const index_record& a, const index_record& b) {
  return a.space == b.space && a.pool == b.pool && a.rank == b.rank && a.chunk == b.chunk;
}

uint64_t hash_of(const index_record& object) {
  uint64_t name = uint64_t{object.space} << 32 | uint64_t{object.pool} << 16 | object.rank;
  return XXH3_64bits_withSeed(object.chunk.bytes.data(), object.chunk.bytes.size(), name);
}

} // namespace

uint64_t keep_newest_of_each_key(ordered_records& objects) {
  struct place {
    uint64_t hash;
    size_t index;
    auto operator<=>(const place&) const = default;
  };
  std::vector<place> places;
  places.reserve(objects.size());
  for (size_t i = 0; i < objects.size(); ++i)
    places.push_back({hash_of(objects[i]), i});
  std::sort(places.begin(), places.end());
  std::vector<bool> goes(objects.size());
  // Within one hash the newest is last; keys with equal hashes by chance are too rare to matter for time.
  for (size_t begin = 0, end; begin < places.size(); begin = end) {
    for (end = begin + 1; end < places.size() && places[end].hash == places[begin].hash;)
      ++end;
    for (size_t i = begin; i < end; ++i)
      for (size_t newer = i + 1; newer < end && !goes[places[i].index]; ++newer)
        goes[places[i].index] = same_key(objects[places[i].index], objects[places[newer].index]);
  }
  size_t i = 0;
  return objects.erase_if([&](const index_record&) { return goes[i++]; });
}

std::vector<space_sum> sum_by_space(const recovered_volume& volume) {
  std::map<uint32_t, object_sum> sums;
  for (const index_record& object : volume.objects)
    sums[object.space].add(object);
  std::vector<space_sum> list;
  for (const recovered_space& space : volume.spaces)
    if (auto sum = sums.find(space.number); sum != sums.end())
      list.push_back({space, sum->second});
  return list;
}

std::vector<size_sum> sum_by_size(const recovered_volume& volume) {
  std::map<uint64_t, object_sum> sums;
  for (const index_record& object : volume.objects)
    sums[std::bit_ceil(uint64_t{object.payload_bytes})].add(object);
  std::vector<size_sum> list;
  for (const auto& [bytes, sum] : sums)
    list.push_back({bytes, sum});
  return list;
}

} // namespace terrace

#include "index/unusable_objects.hpp"

namespace terrace {

std::vector<size_t> unusable_objects(const space_spec& spec, const rank_presence& ranks,
                                     const object_bitmap& present, uint32_t first_chunk) {
  std::vector<size_t> unusable;
  chunk_layout layout(spec);
  size_t per_chunk = layout.objects_per_chunk();
  for (size_t chunk = size_t{first_chunk} * per_chunk; chunk + per_chunk <= present.size();
       chunk += per_chunk)
    for (size_t pool = 0; pool < layout.pools(); ++pool) {
      bool given_up = false;
      std::vector<size_t> there;
      for (uint32_t rank = 0; rank < layout.ranks(pool); ++rank) {
        size_t object = chunk + layout.object_of(pool, rank);
        if (present.test(object))
          there.push_back(object);
        else
          given_up = given_up || (layout.ranks(pool) > 1 && ranks.has_left(rank));
      }
      if (given_up)
        unusable.insert(unusable.end(), there.begin(), there.end());
    }
  return unusable;
}

} // namespace terrace

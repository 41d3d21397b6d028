#include "tier/objects/scope_objects.hpp"

#include <algorithm>

namespace terrace {

scope_objects::scope_objects(scope_subject subject) : of_(std::move(subject)), next_(of_.scope.range.first) {
  size_t objects = of_.scope.objects();
  batch_->keys.reserve(objects);
  batch_->parents.reserve(objects);
  batch_->payload_bytes.reserve(objects);
  for (size_t pool : of_.scope.pools)
    batch_->trailing.set(pool, of_.space->spec.pools[pool].rule == hit_rule::trailing_chunks);
}

object_key scope_objects::key(size_t pool, uint16_t rank, const digest& chunk) const {
  return {of_.space->id, static_cast<uint16_t>(pool),
          of_.space->spec.pools[pool].replicated ? uint16_t{0} : rank, chunk};
}

/// An object of a pool that needs every chunk follows the previous one. States of trailing
/// pools follow the chunk they belong to, in the first pool that needs every chunk: without that chunk no
/// prefix ends there, so a state is evicted before it, and an old state may be evicted before a newer one.
entry_key parent_of(const space_spec& spec, const std::vector<digest>& chunks,
                    const std::optional<digest>& before, size_t chunk, const object_key& key) {
  object_key followed = key;
  if (spec.pools[key.pool].rule == hit_rule::all_chunks) {
    if (chunk == 0 && !before)
      return {};
    followed.chunk = chunk == 0 ? *before : chunks[chunk - 1];
    return to_entry_key(followed);
  }
  for (size_t other = 0; other < spec.pools.size(); ++other)
    if (spec.pools[other].rule == hit_rule::all_chunks) {
      followed.pool = static_cast<uint16_t>(other);
      followed.rank = spec.pools[other].replicated ? uint16_t{0} : key.rank;
      return to_entry_key(followed);
    }
  return {};
}

bool scope_objects::step() {
  const auto& [range, pools] = of_.scope;
  size_t end = std::min(next_ + slice_objects / pools.size() + 1, range.first + range.count);
  for (; next_ < end; ++next_)
    for (size_t pool : pools) {
      batch_->keys.push_back(key(pool, of_.rank, (*of_.chunks)[next_]));
      batch_->parents.push_back(
          parent_of(of_.space->spec, *of_.chunks, of_.before, next_, batch_->keys.back()));
      batch_->payload_bytes.push_back(of_.space->spec.pools[pool].object_bytes);
    }
  return next_ == range.first + range.count;
}

batch_ptr slice(const batch_ptr& all, size_t begin, size_t end) {
  if (begin == 0 && end == all->size())
    return all;
  auto part = std::make_shared<object_batch>();
  auto cut = [&](const auto& from, auto& to) {
    to.assign(from.begin() + static_cast<ptrdiff_t>(begin), from.begin() + static_cast<ptrdiff_t>(end));
  };
  cut(all->keys, part->keys);
  cut(all->parents, part->parents);
  cut(all->payload_bytes, part->payload_bytes);
  part->trailing = all->trailing;
  return part;
}

} // namespace terrace

#include "tier/objects/object_source.hpp"

#include "index/chunk_layout.hpp"
#include "index/space_registry.hpp"
#include "tier/objects/scope_objects.hpp"

#include <algorithm>

namespace terrace {

object_source::object_source(space_ptr space, std::shared_ptr<const std::vector<digest>> chunks)
    : in_(std::move(space)), chunks_(std::move(chunks)),
      size_(chunks_->size() * chunk_layout(in_->spec).objects_per_chunk()) {}

object_source::part object_source::cut(size_t first, size_t count) const {
  first = std::min(first, size());
  count = std::min(count, size() - first);
  if (whole_)
    return {whole_, {first, count}};
  auto batch = std::make_shared<object_batch>();
  if (!in_ || count == 0)
    return {std::move(batch), {0, 0}};
  chunk_layout layout(in_->spec);
  for (size_t pool = 0; pool < layout.pools(); ++pool)
    batch->trailing.set(pool, in_->spec.pools[pool].rule == hit_rule::trailing_chunks);
  batch->keys.resize(count);
  keys(first, count, batch->keys);
  return {std::move(batch), {0, count}};
}

batch_ptr object_source::whole(size_t first, size_t count) const {
  part some = cut(first, count);
  if (whole_)
    return slice(whole_, some.range.first, some.range.first + some.range.count);
  auto batch = std::make_shared<object_batch>(*some.objects);
  for (size_t i = 0; i < batch->size(); ++i) {
    const object_key& key = batch->keys[i];
    const size_t chunk = (first + i) / chunk_layout(in_->spec).objects_per_chunk();
    batch->parents.push_back(parent_of(in_->spec, *chunks_, std::nullopt, chunk, key));
    batch->payload_bytes.push_back(in_->spec.pools[key.pool].object_bytes);
  }
  return batch;
}

std::optional<object_source::chunk_part> object_source::chunks(size_t first, size_t count) const {
  if (!chunks_ || chunks_->size() != size_)
    return std::nullopt;
  first = std::min(first, size_);
  return chunk_part{{in_->id}, std::span(*chunks_).subspan(first, std::min(count, size_ - first))};
}

std::span<const object_key> object_source::keys(size_t first, size_t count,
                                                std::span<object_key> room) const {
  first = std::min(first, size());
  count = std::min(count, size() - first);
  if (whole_)
    return std::span(whole_->keys).subspan(first, count);
  room = room.first(count);
  if (room.empty())
    return room;
  chunk_layout layout(in_->spec);
  size_t chunk = first / layout.objects_per_chunk();
  auto object = static_cast<uint32_t>(first % layout.objects_per_chunk());
  size_t pool = layout.pool_of(object);
  uint32_t rank = object - layout.first_object(pool);
  // The key is written in place, because a temporary costs a stalled load per key.
  for (object_key& key : room) {
    key.space = in_->id;
    key.pool = static_cast<uint16_t>(pool);
    key.rank = static_cast<uint16_t>(rank);
    key.chunk = (*chunks_)[chunk];
    if (++rank < layout.ranks(pool))
      continue;
    rank = 0;
    if (++pool < layout.pools())
      continue;
    pool = 0;
    ++chunk;
  }
  return room;
}

} // namespace terrace

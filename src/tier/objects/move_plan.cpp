#include "tier/objects/move_plan.hpp"

#include "index/chunk_layout.hpp"
#include "tier/objects/scope_objects.hpp"

#include <algorithm>

namespace terrace {

move_plan::move_plan(space_ptr space, std::shared_ptr<const std::vector<digest>> chunks,
                     std::optional<digest> before, uint64_t bytes_max)
    : in_(std::move(space)), chunks_(std::move(chunks)), before_(before), bytes_max_(bytes_max),
      objects_per_chunk_(chunk_layout(in_->spec).objects_per_chunk()) {
  sum_.requested = static_cast<uint32_t>(chunks_->size());
}

batch_ptr move_plan::next() {
  if (next_ == chunks_->size())
    return nullptr;
  chunk_layout layout(in_->spec);
  auto batch = std::make_shared<object_batch>();
  for (size_t pool = 0; pool < in_->spec.pools.size(); ++pool)
    batch->trailing.set(pool, in_->spec.pools[pool].rule == hit_rule::trailing_chunks);
  uint64_t bytes = 0;
  do {
    for (uint32_t object = 0; object < objects_per_chunk_; ++object) {
      auto key = layout.key(in_->id, (*chunks_)[next_], object);
      batch->keys.push_back(key);
      batch->parents.push_back(parent_of(in_->spec, *chunks_, before_, next_, key));
      batch->payload_bytes.push_back(in_->spec.pools[key.pool].object_bytes);
      bytes += batch->payload_bytes.back();
    }
    ++next_;
  } while (next_ < chunks_->size() && batch->size() + objects_per_chunk_ <= part_objects &&
           bytes + bytes / (batch->size() / objects_per_chunk_) <= bytes_max_);
  part_ = batch;
  return part_;
}

void move_plan::found(const object_bitmap& above, const object_bitmap& below) {
  above_ = above;
  below_ = below;
}

bool move_plan::writes() const {
  for (size_t i = 0; i < part_->size(); ++i)
    if (above_.test(i) && !below_.test(i))
      return true;
  return false;
}

std::vector<object_id> move_plan::written(const object_bitmap& below, const object_hold* held) {
  below_after_ = below;
  std::vector<object_id> leave;
  for (size_t i = 0; held != nullptr && i < part_->size(); ++i)
    if (below.test(i) && held->places()[i].present())
      leave.push_back(held->places()[i].id);
  return leave;
}

/// Returns the share of the chunk whose first object is number `first` of the part.
moved_share& move_plan::fate_of(size_t first) {
  bool was_above = false, stays_above = false, all_below = true, all_found = true;
  for (size_t i = first; i < first + objects_per_chunk_; ++i) {
    was_above = was_above || above_.test(i);
    stays_above = stays_above || above_after_.test(i);
    all_below = all_below && below_after_.test(i);
    all_found = all_found && (above_.test(i) || below_.test(i));
  }
  if (!all_found)
    return sum_.missing;
  if (!all_below)
    return sum_.failed;
  if (stays_above)
    return sum_.held;
  return was_above ? sum_.moved : sum_.present;
}

void move_plan::left(const object_bitmap& above) {
  above_after_ = above;
  for (size_t first = 0; first < part_->size(); first += objects_per_chunk_) {
    moved_share& share = fate_of(first);
    ++share.chunks;
    for (size_t i = first; i < first + objects_per_chunk_; ++i)
      share.bytes += part_->payload_bytes[i];
  }
}

} // namespace terrace

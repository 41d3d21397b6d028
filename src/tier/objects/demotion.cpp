#include "tier/objects/demotion.hpp"

#include <cassert>
#include <memory>
#include <utility>

namespace terrace {

std::vector<demotion_batch> batches_of(const std::vector<demoted_object>& objects, bool by_chain,
                                       uint64_t bytes_max) {
  std::vector<demotion_batch> made;
  std::shared_ptr<object_batch> batch;
  entry_key last;
  uint64_t bytes = 0;
  for (const demoted_object& object : objects) {
    entry_key name = to_entry_key(object.key);
    bool continues = batch && made.back().space == object.key.space &&
                     batch->size() < demotion_batch::objects_max &&
                     bytes + object.place.physical_bytes <= bytes_max &&
                     (!by_chain || (!object.parent.empty() && object.parent == last));
    if (!continues) {
      batch = std::make_shared<object_batch>();
      made.push_back({object.key.space, batch, {}});
      bytes = 0;
    }
    bytes += object.place.physical_bytes;
    assert(batch->size() < demotion_batch::objects_max);
    batch->keys.push_back(object.key);
    batch->parents.push_back(object.parent);
    batch->payload_bytes.push_back(object.place.payload_bytes);
    if (object.trailing)
      batch->trailing.set(object.key.pool);
    made.back().places.push_back(object.place);
    last = name;
  }
  return made;
}

demotion::demotion(const std::vector<demotion_batch>& batches, size_t tiers) {
  for (const demotion_batch& batch : batches) {
    part& made = parts_.emplace_back();
    made.unanswered = tiers;
    for (const object_place& place : batch.places)
      made.ids.push_back(place.id);
  }
  waiting_ = parts_.size();
}

template <class Change>
void demotion::change(size_t batch, Change&& apply) {
  part& one = parts_.at(batch);
  bool waited = one.waits();
  apply(one);
  if (waited && !one.waits())
    --waiting_;
}

void demotion::answered(size_t batch, const demote_answer& answer) {
  demotion_counts done = answer.done;
  if (answer.arrived)
    arrived_.push_back(answer.arrived);
  change(batch, [&](part& one) {
    assert(one.unanswered != 0);
    --one.unanswered;
    one.stalled = one.stalled || answer.stalled;
    if (answer.failure.code != errc::ok)
      done.lose(refusal_reason::failed, one.ids.size());
    if (done.lost_in_all() != 0)
      not_written_.insert(not_written_.end(), one.ids.begin(), one.ids.end());
  });
  tally_.add(done);
}

void demotion::released(size_t batch) {
  change(batch, [](part& one) {
    assert(one.held);
    one.held = false;
  });
}

std::vector<object_id> demotion::in_use() const {
  std::vector<object_id> ids;
  for (const part& one : parts_)
    if (one.held)
      ids.insert(ids.end(), one.ids.begin(), one.ids.end());
  return ids;
}

} // namespace terrace

#include "transfer/below_reading.hpp"

#include <algorithm>

namespace terrace {

size_t below_reading::source_of(size_t object) const {
  auto found = std::find_if(below_.begin(), below_.end(),
                            [object](const tier_hold& one) { return one.held->places()[object].present(); });
  return static_cast<size_t>(found - below_.begin());
}

void below_reading::take_space(acquire_answer acquired) {
  acquired_ = std::move(acquired);
  for (const tier_hold& one : below_)
    parts_.push_back({one.tier, one.held, {}});
  for (size_t i = 0; i < acquired_.states.size(); ++i) {
    if (acquired_.states[i] == acquired_state::reserved)
      parts_[source_of(i)].objects.push_back(i);
    else if (acquired_.states[i] == acquired_state::absent && has(i))
      first_left_ = std::min(first_left_, i);
  }
  std::erase_if(parts_, [](const part& one) { return one.objects.empty(); });
}

bool below_reading::empty() const {
  return std::all_of(parts_.begin(), parts_.end(), [](const part& one) { return one.objects.empty(); });
}

std::vector<size_t> below_reading::objects() const {
  std::vector<size_t> all;
  for (const part& one : parts_)
    all.insert(all.end(), one.objects.begin(), one.objects.end());
  return all;
}

read_request below_reading::read(const part& from, const space_ptr& in, const context_ptr& context,
                                 const segmented_arena& memory) const {
  read_request request;
  request.in = in;
  request.context = context;
  request.owners = {acquired_.reserved, from.held};
  for (size_t i : from.objects)
    request.objects.push_back(
        {objects_->keys[i], from.held->places()[i], memory.at(acquired_.places[i].offset)});
  return request;
}

below_reading::unread below_reading::take_outcomes(size_t which, const std::vector<move_outcome>& outcomes) {
  part& of = parts_[which];
  unread lost;
  std::vector<size_t> good;
  for (size_t n = 0; n < of.objects.size(); ++n) {
    size_t i = of.objects[n];
    if (outcomes[n] == move_outcome::done) {
      good.push_back(i);
      continue;
    }
    lost.objects.push_back(i);
    if (outcomes[n] == move_outcome::failed)
      lost.damaged.ids.push_back(of.held->places()[i].id);
    if (outcomes[n] == move_outcome::stalled)
      lost.stalled.ids.push_back(acquired_.places[i].id);
  }
  of.objects = std::move(good);
  return lost;
}

confirm_request below_reading::confirmation(const part& of) const {
  confirm_request request;
  for (size_t i : of.objects)
    request.ids.push_back(of.held->places()[i].id);
  return request;
}

void below_reading::take_confirmed(size_t which, const std::vector<bool>& present) {
  std::vector<size_t> still;
  for (size_t n = 0; n < parts_[which].objects.size(); ++n)
    if (present[n])
      still.push_back(parts_[which].objects[n]);
  parts_[which].objects = std::move(still);
}

publish_request below_reading::publication() const {
  publish_request request;
  for (size_t i : objects())
    request.places.push_back(acquired_.places[i]);
  return request;
}

} // namespace terrace

#include "tier/objects/reference_count.hpp"

namespace terrace {

void reference_count::add(reference_kind kind, std::span<const object_place> places) {
  for (const object_place& place : places) {
    if (!place.present())
      continue;
    references& known = known_[place.id];
    bool charged = known.sum() != 0, of_session = known.in(reference_kind::session) != 0;
    ++known.of[static_cast<size_t>(kind)];
    ++sums_[static_cast<size_t>(kind)];
    leased_bytes_ += charged ? 0 : place.physical_bytes;
    session_bytes_ += !of_session && known.in(reference_kind::session) != 0 ? place.physical_bytes : 0;
  }
}

std::string reference_count::text_of(const held_object& object, const references& known) const {
  std::string text = object.holds == 0 && object.key == object_key{}
                         ? "an object that is no longer there"
                         : "the object of " + terrace::text_of(object.key);
  text += " has " + std::to_string(object.holds) + " holds in the " + to_string(tier_) + " tier, of which ";
  for (size_t kind = 0; kind < reference_kinds; ++kind)
    text += (kind == 0 ? "" : ", ") + std::string(reference_names[kind]) + " have " +
            std::to_string(known.of[kind]);
  return text;
}

void reference_count::compare(const held_object& object, std::vector<std::string>& differences) {
  references known;
  if (auto found = known_.find(object.id); found != known_.end()) {
    known = found->second;
    known_.erase(found);
  }
  uint64_t sum = known.sum();
  if (object.holds > sum)
    of_requests_ += object.holds - sum;
  if (object.touched || object.holds == sum)
    return;
  if (object.holds < sum)
    differences.push_back(text_of(object, known));
  else
    unexplained_.push_back(text_of(object, known) + ", and no request is in progress");
}

std::vector<object_id> reference_count::not_compared(size_t count_max) const {
  std::vector<object_id> ids;
  for (auto at = known_.begin(); at != known_.end() && ids.size() < count_max; ++at)
    ids.push_back(at->first);
  return ids;
}

} // namespace terrace

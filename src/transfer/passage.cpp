#include "transfer/passage.hpp"

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

namespace terrace {

size_t passage::source_of(size_t object) const {
  auto found = std::find_if(of_.from.begin(), of_.from.end(),
                            [object](const tier_hold& one) { return one.held->places()[object].present(); });
  return static_cast<size_t>(found - of_.from.begin());
}

bool passage::add_space(acquire_answer acquired) {
  acquired_ = std::move(acquired);
  if (acquired_.failure.code != errc::ok)
    return false;
  for (const tier_hold& one : of_.from)
    parts_.push_back({one.tier, one.held, {}});
  for (size_t i = 0; i < acquired_.states.size(); ++i) {
    const size_t source = source_of(i);
    if (source == of_.from.size())
      continue;
    if (acquired_.states[i] == acquired_state::reserved)
      parts_[source].objects.push_back(i);
    else if (acquired_.states[i] == acquired_state::absent)
      first_left_ = std::min(first_left_, i);
  }
  std::erase_if(parts_, [](const part& one) { return one.objects.empty(); });
  return true;
}

size_t passage::size() const {
  return std::accumulate(parts_.begin(), parts_.end(), size_t{0},
                         [](size_t sum, const part& one) { return sum + one.objects.size(); });
}

std::vector<size_t> passage::objects() const {
  std::vector<size_t> all;
  for (const part& one : parts_)
    all.insert(all.end(), one.objects.begin(), one.objects.end());
  return all;
}

namespace {

/// A mover or a copier may let go of this after it has answered, on another thread. Until then a check sees work in progress.
struct moved_bytes {
  work_mark work; // first, to end last
  hold_ptr held;
  reservation_ptr reserved;
};

} // namespace

moved_objects passage::moved(const part& piece) const {
  bool out = of_.way == direction::out_of_host;
  moved_objects request;
  request.space = of_.space;
  request.context = of_.context;
  request.read_by = of_.read_by;
  request.objects.reserve(piece.objects.size());
  for (size_t i : piece.objects) {
    const object_place &from = piece.held->places()[i], &to = acquired_.places[i];
    moved_object object;
    object.key = of_.objects->keys[i];
    object.place = out ? to : from;
    object.memory = of_.memory->at(out ? from.offset : to.offset);
    if (!of_.checksums.empty())
      object.checksum = of_.checksums[i];
    request.objects.push_back(object);
  }
  auto bytes = std::make_shared<moved_bytes>();
  bytes->work.begin();
  bytes->held = piece.held;
  bytes->reserved = acquired_.reserved;
  request.owners = {std::move(bytes)};
  return request;
}

passage::reports passage::add_outcomes(size_t which, const std::vector<move_outcome>& outcomes) {
  part& piece = parts_[which];
  bool into = of_.way == direction::into_host;
  reports told;
  std::vector<size_t> good;
  for (size_t n = 0; n < piece.objects.size(); ++n) {
    size_t i = piece.objects[n];
    if (outcomes[n] == move_outcome::done || outcomes[n] == move_outcome::present) {
      good.push_back(i);
      if (outcomes[n] == move_outcome::present)
        ended_.present_bytes += acquired_.places[i].payload_bytes;
      continue;
    }
    const bool late = outcomes[n] == move_outcome::late;
    ended_.late = ended_.late || late;
    if (into && (late || outcomes[n] == move_outcome::stalled))
      told.stalled.ids.push_back(acquired_.places[i].id);
    if (late)
      continue;
    ended_.lost.push_back(i);
    ended_.away += outcomes[n] == move_outcome::away ? 1 : 0;
    ended_.stalled = ended_.stalled || outcomes[n] == move_outcome::stalled;
    if (into && outcomes[n] == move_outcome::failed)
      told.damaged.ids.push_back(piece.held->places()[i].id);
  }
  piece.objects = std::move(good);
  return told;
}

uint64_t passage::payload_bytes(const part& piece) const {
  return std::accumulate(piece.objects.begin(), piece.objects.end(), uint64_t{0},
                         [this](uint64_t sum, size_t i) { return sum + acquired_.places[i].payload_bytes; });
}

confirm_request passage::confirmation(const part& piece) const {
  confirm_request request;
  for (size_t i : piece.objects)
    request.ids.push_back(piece.held->places()[i].id);
  return request;
}

void passage::add_confirmed(size_t which, const std::vector<bool>& present) {
  std::vector<size_t> still;
  for (size_t n = 0; n < parts_[which].objects.size(); ++n)
    if (present[n])
      still.push_back(parts_[which].objects[n]);
  parts_[which].objects = std::move(still);
}

publish_request passage::publication() const {
  publish_request request;
  for (size_t i : objects())
    request.places.push_back(acquired_.places[i]);
  request.space = of_.space;
  request.inference = of_.inference;
  request.hold = of_.hold;
  return request;
}

void passage::add_published(const publish_answer& answer) {
  published_ = answer.held;
  if (acquired_.reserved)
    acquired_.reserved->note_published(answer.published);
}

} // namespace terrace

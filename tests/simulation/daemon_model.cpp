#include "daemon_model.hpp"

#include <algorithm>
#include <cstring>

namespace terrace::simulation {

namespace {

uint64_t word_of(uint64_t version, uint64_t index) {
  if (index == 0)
    return version;
  uint64_t word = version * 0x9e3779b97f4a7c15 + index;
  word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9;
  word = (word ^ word >> 27) * 0x94d049bb133111eb;
  return word ^ word >> 31;
}

} // namespace

std::string named_object::text() const {
  return "group " + std::to_string(group) + " space " + std::to_string(space) + " chain " +
         std::to_string(chain) + " pool " + std::to_string(pool);
}

daemon_model::version daemon_model::writes(const named_object& object) {
  written_.push_back({object, 0, 0});
  return written_.size();
}

void daemon_model::fill(std::span<std::byte> bytes, version which) {
  for (size_t at = 0; at < bytes.size(); at += sizeof(uint64_t)) {
    uint64_t word = word_of(which, at / sizeof word);
    std::memcpy(bytes.data() + at, &word, std::min(sizeof word, bytes.size() - at));
  }
}

void daemon_model::stored(std::span<const version> versions, uint64_t asked, bool there) {
  bool alone = removing_ == 0 && asked > last_removed_;
  for (version each : versions) {
    written& one = written_[each - 1];
    one.ended = now();
    if (there && alone && nothing_is_evicted_)
      there_.insert(one.object);
  }
}

daemon_model::removal daemon_model::clears(uint32_t group, std::optional<uint32_t> space) {
  std::erase_if(there_, [&](const named_object& each) {
    return each.group == group && (!space || each.space == *space);
  });
  ++removing_;
  return {group, space, now()};
}

void daemon_model::cleared(const removal& which, bool done) {
  removed();
  if (!done)
    return;
  ++clears_answered_;
  for (written& one : written_)
    if (one.object.group == which.group && (!which.space || one.object.space == *which.space) &&
        one.ended != 0 && one.ended < which.asked && one.dead_at == 0)
      one.dead_at = now_;
}

void daemon_model::removes(std::span<const named_object> objects) {
  for (const named_object& each : objects)
    there_.erase(each);
  ++removing_;
}

void daemon_model::removed() {
  --removing_;
  last_removed_ = now();
}

void daemon_model::all_quiet() {
  removing_ = 0;
  last_removed_ = now();
  for (written& one : written_)
    if (one.ended == 0)
      one.ended = now_;
}

void daemon_model::crashed() {
  all_quiet();
  there_.clear();
}

daemon_model::version daemon_model::check(const named_object& object, std::span<const std::byte> bytes,
                                          uint64_t asked) {
  ++checked_;
  version which = 0;
  std::memcpy(&which, bytes.data(), std::min(sizeof which, bytes.size()));
  if (which == 0 || which > written_.size()) {
    broke(object.text() + ": bytes that nobody stored");
    return 0;
  }
  const written& one = written_[which - 1];
  std::vector<std::byte> expected(bytes.size());
  fill(expected, which);
  if (!std::equal(bytes.begin(), bytes.end(), expected.begin()))
    broke(object.text() + ": bytes of version " + std::to_string(which) + " that are mixed with others");
  else if (one.object != object)
    broke(object.text() + ": the bytes of " + one.object.text());
  else if (one.dead_at != 0 && one.dead_at < asked)
    broke(object.text() + ": version " + std::to_string(which) + " is back, although it was cleared");
  return which;
}

size_t daemon_model::findable(std::span<const named_object> objects) const {
  if (removing_ != 0 || !nothing_is_evicted_)
    return 0;
  size_t count = 0;
  while (count < objects.size() && there_.contains(objects[count]))
    ++count;
  return count;
}

void daemon_model::found(size_t count, size_t expected, uint64_t asked) {
  if (count < expected && removing_ == 0 && last_removed_ < asked)
    broke("a lookup found " + std::to_string(count) + " objects where " + std::to_string(expected) +
          " were stored and nothing has been evicted");
}

} // namespace terrace::simulation

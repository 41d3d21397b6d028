#include "daemon_model.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace terrace::simulation {

namespace {

uint64_t word_of(uint64_t version, uint64_t index) {
  if (index == 0)
    return version;
  uint64_t word = version * 0x9e3779b97f4a7c15 + index;
  word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9;
  word = (word ^ word >> 27) * 0x94d049bb133111eb;
  // The high bytes of floats, so that a remote store may compress them.
  return ((word ^ word >> 31) & 0x83ff83ff83ff83ff) | 0x3c003c003c003c00;
}

} // namespace

std::string named_object::text() const {
  return "group " + std::to_string(group) + " space " + std::to_string(space) + " chain " +
         std::to_string(chain) + (tail ? " tail" : "") + " pool " + std::to_string(pool);
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
    if (!alone)
      moved_.insert(one.object);
    bool lasts = !promised_.disk_has_all || !moved_.contains(one.object);
    if (there && alone && promised_.all_found && lasts && !one.object.tail)
      there_.insert(one.object);
  }
}

daemon_model::removal daemon_model::clears(uint32_t group, std::optional<uint32_t> space) {
  auto is_cleared = [&](const named_object& each) {
    return each.group == group && (!space || each.space == *space);
  };
  std::erase_if(there_, is_cleared);
  std::erase_if(moved_, is_cleared);
  for (auto& [number, objects] : kept_)
    std::erase_if(objects, is_cleared);
  ++removing_;
  if (!space)
    ++clearing_[group].in_progress;
  return {group, space, now()};
}

void daemon_model::cleared(const removal& which, bool done) {
  removed();
  if (!which.space)
    clearing_[which.group] = {clearing_[which.group].in_progress - 1, now_};
  if (!done)
    return;
  ++clears_answered_;
  for (written& one : written_)
    if (one.object.group == which.group && (!which.space || one.object.space == *which.space) &&
        one.ended != 0 && one.ended < which.asked && !one.cleared) {
      one.dead_at = one.dead_at != 0 ? one.dead_at : now_;
      one.cleared = true;
    }
}

uint64_t daemon_model::removes(std::span<const named_object> objects) {
  for (const named_object& each : objects) {
    there_.erase(each);
    moved_.insert(each);
    for (auto& [number, kept] : kept_)
      kept.erase(each);
  }
  ++removing_;
  return now();
}

void daemon_model::evicted(std::span<const named_object> objects, uint64_t asked) {
  std::set<named_object> all(objects.begin(), objects.end());
  for (written& one : written_)
    if (all.contains(one.object) && one.ended != 0 && one.ended < asked && one.dead_at == 0)
      one.dead_at = now_;
}

void daemon_model::removed() {
  --removing_;
  last_removed_ = now();
}

void daemon_model::all_quiet() {
  removing_ = 0;
  last_removed_ = now();
  for (auto& [group, each] : clearing_)
    if (std::exchange(each.in_progress, 0) != 0)
      each.ended = now_;
  for (written& one : written_)
    if (one.ended == 0)
      one.ended = now_;
}

bool daemon_model::cleared_since(uint32_t group, uint64_t time) const {
  auto of = clearing_.find(group);
  return of != clearing_.end() && (of->second.in_progress != 0 || of->second.ended >= time);
}

void daemon_model::crashed() {
  all_quiet();
  has_crashed_ = true;
  kept_.clear();
  there_.clear();
  for (written& one : written_)
    if (!one.cleared)
      one.dead_at = 0;
}

void daemon_model::restarted() {
  all_quiet();
  kept_.clear();
  if (!promised_.restart_keeps)
    there_.clear();
  std::erase_if(there_, [this](const named_object& each) {
    return moved_.contains(each) || (has_crashed_ && sharing_group_ == each.group);
  });
}

uint64_t daemon_model::keeps(std::span<const named_object> objects, uint64_t asked) {
  if (!promised_.kept_found || objects.empty() || removing_ != 0 || asked <= last_removed_)
    return 0;
  uint64_t number = now();
  kept_[number].insert(objects.begin(), objects.end());
  return number;
}

void daemon_model::is_damaged(const named_object& object) {
  there_.erase(object);
  for (auto& [number, objects] : kept_)
    objects.erase(object);
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
    broke(object.text() + ": version " + std::to_string(which) + " is back, although it was " +
          (one.cleared ? "cleared" : "evicted"));
  return which;
}

daemon_model::expectation daemon_model::expects(std::span<const named_object> objects) {
  expectation expected{now(), {objects.begin(), objects.end()}, {}};
  if (removing_ != 0)
    return expected;
  for (const named_object& each : objects) {
    auto keeper =
        std::find_if(kept_.begin(), kept_.end(), [&](const auto& one) { return one.second.contains(each); });
    if (keeper == kept_.end() && !there_.contains(each))
      break;
    expected.because.push_back(there_.contains(each) ? 0 : keeper->first);
  }
  return expected;
}

void daemon_model::found(size_t count, const expectation& expected) {
  if (removing_ != 0 || last_removed_ >= expected.asked)
    return;
  size_t must = 0; // who kept it when it was asked for has kept it since
  while (must < expected.because.size() &&
         (expected.because[must] == 0 || is_kept(expected.because[must], expected.objects[must])))
    ++must;
  if (count < must)
    broke("a lookup found " + std::to_string(count) + " objects where " + std::to_string(must) +
          (expected.because[count] == 0 ? " were stored and nothing has been evicted" : " are held") +
          ", without " + expected.objects[count].text());
}

} // namespace terrace::simulation

#include "value_model.hpp"

#include <algorithm>
#include <cstring>
#include <string>

namespace terrace::simulation {

namespace {

named_object object_of(const value_model::key& of) {
  return {.group = of.group, .space = value_model::space, .chain = of.number, .pool = 0};
}

} // namespace

void value_model::broke(const key& of, const std::string& what) {
  bytes_.broke("group " + std::to_string(of.group) + " Redis key " + std::to_string(of.number) + ": " + what);
}

// ---- what clients ask for and are told ----

daemon_model::version value_model::sets(const key& of, connection by, size_t bytes) {
  auto which = bytes_.writes(object_of(of));
  history& all = keys_[of];
  all.there = 0;
  all.writes.push_back({.by = by, .asked = bytes_.now(), .value = which, .bytes = bytes});
  written_[which] = of;
  return which;
}

value_model::write* value_model::find(daemon_model::version which) {
  auto of = written_.find(which);
  if (of == written_.end())
    return nullptr;
  auto& writes = keys_[of->second].writes;
  auto found =
      std::find_if(writes.begin(), writes.end(), [&](const write& one) { return one.value == which; });
  return found == writes.end() ? nullptr : &*found;
}

void value_model::sent(daemon_model::version which) { find(which)->sent = true; }

void value_model::answered(daemon_model::version which, bool done) {
  write& one = *find(which);
  bytes_.stored({&which, 1}, one.asked, false);
  one.ended = bytes_.now();
  if (!done)
    return;
  if (one.done == 0)
    one.done = one.ended;
  history& all = keys_[written_[which]];
  bool alone = std::all_of(all.writes.begin(), all.writes.end(),
                           [&](const write& other) { return other.value == which || precedes(other, one); });
  if (promised_.all_found && alone)
    all.there = which;
}

value_model::removal value_model::removes(const key& of, connection by) {
  history& all = keys_[of];
  all.there = 0;
  all.writes.push_back({.by = by, .asked = bytes_.now()});
  return {of, all.writes.back().asked};
}

void value_model::removed(const removal& which, bool done) {
  for (write& one : keys_[which.of].writes)
    if (one.asked == which.asked) {
      one.ended = bytes_.now();
      one.done = done ? one.ended : 0;
    }
}

void value_model::all_quiet() {
  for (auto& [of, all] : keys_)
    for (write& one : all.writes)
      if (one.ended == 0)
        one.ended = bytes_.now();
}

void value_model::crashed() {
  all_quiet();
  for (auto& [of, all] : keys_) {
    all.there = 0;
    for (write& one : all.writes)
      one.done = 0;
  }
}

void value_model::restarted() {
  all_quiet();
  if (!promised_.restart_keeps)
    for (auto& [of, all] : keys_)
      all.there = 0;
}

// ---- what must hold ----

/// It has surely taken effect before the second, or not at all.
bool value_model::precedes(const write& first, const write& second) {
  return first.by == second.by ? first.asked < second.asked : first.ended != 0 && first.ended < second.asked;
}

bool value_model::may_be_seen(const history& of, const write& one, const reading& by) const {
  if (one.value == 0 || (one.by == by.by && one.asked > by.asked) || !one.sent)
    return false;
  return !promised_.replaced_stay_away ||
         std::none_of(of.writes.begin(), of.writes.end(), [&](const write& later) {
           bool before = later.by == by.by ? later.asked < by.asked : later.done < by.asked;
           return later.done != 0 && before && precedes(one, later);
         });
}

value_model::reading value_model::reads(const key& of, connection by) {
  return {of, by, bytes_.now(), keys_[of].there};
}

bool value_model::must_be_there(const reading& which) {
  return which.expected != 0 && keys_[which.of].there == which.expected &&
         !bytes_.cleared_since(which.of.group, find(which.expected)->asked);
}

void value_model::saw(const reading& which, std::optional<std::string_view> value) {
  history& all = keys_[which.of];
  if (!value) {
    if (must_be_there(which))
      broke(which.of, "version " + std::to_string(which.expected) + " was stored, and it is not found");
    return;
  }
  std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(value->data()), value->size());
  if (bytes.empty()) { // nobody can tell which one it is
    if (std::none_of(all.writes.begin(), all.writes.end(),
                     [&](const write& one) { return one.bytes == 0 && may_be_seen(all, one, which); }))
      broke(which.of, "an empty value that nobody stored, or that was replaced");
    return;
  }
  auto version = bytes_.check(object_of(which.of), bytes, which.asked);
  auto seen = std::find_if(all.writes.begin(), all.writes.end(),
                           [&](const write& one) { return one.value == version && version != 0; });
  if (seen == all.writes.end())
    return; // which was told
  std::string name = "version " + std::to_string(version);
  if (seen->bytes != bytes.size())
    broke(which.of,
          name + " has " + std::to_string(bytes.size()) + " bytes instead of " + std::to_string(seen->bytes));
  else if (!seen->sent)
    broke(which.of, name + " is seen although its client has not sent all of it");
  else if (!may_be_seen(all, *seen, which))
    broke(which.of, name + " is back, although it was replaced or removed");
  if (seen->done == 0)
    seen->done = bytes_.now(); // earlier ones may not come back
}

void value_model::counted(const std::vector<reading>& keys, uint64_t existed) {
  uint64_t least = 0, most = 0;
  for (const reading& each : keys) {
    const history& all = keys_[each.of];
    least += must_be_there(each) ? 1 : 0;
    most += std::any_of(all.writes.begin(), all.writes.end(),
                        [&](const write& one) { return may_be_seen(all, one, each); })
                ? 1
                : 0;
  }
  if (existed < least || existed > most)
    broke(keys.front().of, std::to_string(existed) + " of " + std::to_string(keys.size()) +
                               " keys are said to exist: expected " + std::to_string(least) + " to " +
                               std::to_string(most));
}

} // namespace terrace::simulation

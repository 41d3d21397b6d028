#include "tests/policy/policy_contract.hpp"

#include <algorithm>
#include <random>

namespace terrace::testing {

bool naive_forest::above(entry_key upper, entry_key lower) const {
  for (auto at = places.find(lower); at != places.end(); at = places.find(at->second.parent))
    if (at->first == upper)
      return true;
  return false;
}

bool naive_forest::insert(const entry_info& entry) {
  place& p = places[entry.key];
  if (p.resident)
    return false;
  p.resident = true;
  p.bytes = entry.bytes;
  if (p.parent.empty() && !entry.parent.empty() && !above(entry.key, entry.parent)) {
    p.parent = entry.parent;
    places.try_emplace(entry.parent);
  }
  return true;
}

void naive_forest::erase(entry_key key) {
  if (!resident(key))
    return;
  places[key].resident = false;
  auto idle = [&](const auto& item) { // neither resident nor anybody's parent
    return !item.second.resident && std::none_of(places.begin(), places.end(), [&](const auto& other) {
      return other.second.parent == item.first;
    });
  };
  for (auto it = places.begin(); (it = std::find_if(places.begin(), places.end(), idle)) != places.end();)
    places.erase(it);
}

size_t naive_forest::size() const {
  return static_cast<size_t>(
      std::count_if(places.begin(), places.end(), [](auto& p) { return p.second.resident; }));
}

std::set<entry_key> naive_forest::leaves(const std::set<entry_key>& gone) const {
  std::set<entry_key> bare;
  for (auto& [key, p] : places)
    if (p.resident && !gone.contains(key))
      bare.insert(key);
  for (auto& [key, p] : places)
    if (p.resident && !gone.contains(key))
      for (auto at = places.find(p.parent); at != places.end(); at = places.find(at->second.parent))
        bare.erase(at->first);
  return bare;
}

namespace {

/// Victims are leaves at their turn, may leave, come once, and stop as soon as they suffice, or when nobody is left.
std::optional<std::string> check_victims(const std::vector<victim>& named, const naive_forest& forest,
                                         uint64_t bytes, const std::set<entry_key>& held) {
  std::set<entry_key> gone;
  uint64_t total = 0;
  for (auto& v : named) {
    if (!forest.resident(v.key) || v.bytes != forest.places.at(v.key).bytes)
      return "a victim is not resident, or has the wrong size";
    if (held.contains(v.key))
      return "a victim may not leave";
    if (!forest.leaves(gone).contains(v.key))
      return "a victim has a resident descendant, or was named twice";
    if (total >= bytes)
      return "more victims than needed";
    total += v.bytes;
    gone.insert(v.key);
  }
  if (total < bytes)
    for (auto& key : forest.leaves(gone))
      if (!held.contains(key))
        return "an entry that may leave was not named";
  return std::nullopt;
}

} // namespace

std::optional<std::string> broken_promise(eviction_policy& policy, uint64_t seed, int steps, uint64_t keys) {
  std::mt19937_64 random(seed);
  naive_forest forest;
  auto key_of = [](uint64_t n) { return entry_key{detail::mix64(n + 1), n + 1}; };
  auto some_key = [&] { return key_of(random() % keys); };
  for (int step = 0; step < steps; ++step) {
    policy_time now = static_cast<policy_time>(step);
    uint64_t n = random() % keys;
    switch (random() % 5) {
      case 0:
      case 1: { // mostly a tree by number; now and then a root, or any parent at all: circles too
        entry_key parent = n == 0 || random() % 16 == 0 ? entry_key{} : key_of((n - 1) / 2);
        if (random() % 16 == 0)
          parent = some_key();
        entry_info entry{key_of(n), parent, 1 + random() % 9};
        forest.insert(entry);
        policy.insert(entry, now);
        break;
      }
      case 2: policy.hit(some_key(), now); break;
      case 3:
        forest.erase(key_of(n));
        policy.erase(key_of(n));
        break;
      case 4: {
        std::set<entry_key> held;
        for (uint64_t i = random() % 4; i > 0; --i)
          held.insert(some_key());
        uint64_t bytes = random() % 3 == 0 ? ~uint64_t{0} : random() % 30;
        auto may_leave = [&](entry_key key) { return !held.contains(key); };
        auto named = policy.victims(bytes, may_leave, now);
        if (auto broken = check_victims(named, forest, bytes, held))
          return broken;
        auto again = policy.victims(bytes, may_leave, now);
        auto same = [](const victim& a, const victim& b) { return a.key == b.key; };
        if (!std::equal(named.begin(), named.end(), again.begin(), again.end(), same))
          return "naming victims changed something";
        if (random() % 2 == 0)
          for (auto& v : named)
            forest.erase(v.key), policy.erase(v.key);
      }
    }
    if (policy.size() != forest.size())
      return "size() is wrong";
  }
  for (uint64_t n = 0; n < keys; ++n)
    policy.erase(key_of(n));
  if (policy.size() != 0 || !policy
                                 .victims(
                                     1, [](entry_key) { return true; }, 0)
                                 .empty())
    return "an empty policy is not empty";
  return std::nullopt;
}

} // namespace terrace::testing

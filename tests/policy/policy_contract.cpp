#include "tests/policy/policy_contract.hpp"

#include <algorithm>
#include <random>

namespace terrace::test {

bool naive_forest::above(entry_key upper, entry_key lower) const {
  for (auto at = places.find(lower); at != places.end(); at = places.find(at->second.parent))
    if (at->first == upper)
      return true;
  return false;
}

void naive_forest::insert(int tier, const entry_info& entry) {
  place& p = places[entry.key];
  if (p.resident[tier])
    return;
  p.resident[tier] = true;
  p.bytes[tier] = entry.bytes;
  if (p.parent.empty() && !entry.parent.empty() && !above(entry.key, entry.parent)) {
    p.parent = entry.parent;
    places.try_emplace(entry.parent);
  }
}

void naive_forest::erase(int tier, entry_key key) {
  if (!resident(tier, key))
    return;
  places[key].resident[tier] = false;
  auto idle = [&](const auto& item) { // neither resident nor anybody's parent
    return !item.second.resident[0] && !item.second.resident[1] &&
           std::none_of(places.begin(), places.end(),
                        [&](const auto& other) { return other.second.parent == item.first; });
  };
  for (auto it = places.begin(); (it = std::find_if(places.begin(), places.end(), idle)) != places.end();)
    places.erase(it);
}

size_t naive_forest::size(int tier) const {
  return static_cast<size_t>(
      std::count_if(places.begin(), places.end(), [&](auto& p) { return p.second.resident[tier]; }));
}

std::set<entry_key> naive_forest::leaves(int tier, const std::set<entry_key>& gone) const {
  std::set<entry_key> bare;
  for (auto& [key, p] : places)
    if (p.resident[tier] && !gone.contains(key))
      bare.insert(key);
  for (auto& [key, p] : places)
    if (p.resident[tier] && !gone.contains(key))
      for (auto at = places.find(p.parent); at != places.end(); at = places.find(at->second.parent))
        bare.erase(at->first);
  return bare;
}

namespace {

/// Victims are leaves at their turn, may leave, and come once. They end as soon as they suffice, or when
/// nobody is left.
std::optional<std::string> check_victims(const std::vector<victim>& named, const naive_forest& forest,
                                         int tier, uint64_t bytes, const std::set<entry_key>& held) {
  std::set<entry_key> gone;
  uint64_t total = 0;
  for (auto& v : named) {
    if (!forest.resident(tier, v.key) || v.bytes != forest.places.at(v.key).bytes[tier])
      return "a victim is not resident, or has the wrong size";
    if (held.contains(v.key))
      return "a victim is pinned";
    if (!forest.leaves(tier, gone).contains(v.key))
      return "a victim has a resident descendant, or was named twice";
    if (total >= bytes)
      return "more victims than needed";
    total += v.bytes;
    gone.insert(v.key);
  }
  if (total < bytes)
    for (auto& key : forest.leaves(tier, gone))
      if (!held.contains(key))
        return "an entry that may leave was not named";
  return std::nullopt;
}

struct traffic {
  std::mt19937_64 random;
  uint64_t keys;

  static entry_key key_of(uint64_t n) { return {detail::mix64(n + 1), n + 1}; }
  entry_key some_key() { return key_of(random() % keys); }

  /// Mostly a tree by number; now and then a root, or any parent at all, even in a circle.
  entry_info some_entry() {
    uint64_t n = random() % keys;
    entry_key parent = n == 0 || random() % 16 == 0 ? entry_key{} : key_of((n - 1) / 2);
    if (random() % 16 == 0)
      parent = some_key();
    return {key_of(n), parent, 1 + random() % 9};
  }

  /// Returns the chain from some entry up to its root by number, root first.
  std::vector<entry_key> some_chain() {
    std::vector<entry_key> chain;
    for (uint64_t n = random() % keys;; n = (n - 1) / 2) {
      chain.insert(chain.begin(), key_of(n));
      if (n == 0)
        return chain;
    }
  }
};

} // namespace

std::optional<std::string> broken_promise(policy_subject& subject, uint64_t seed, int steps, uint64_t keys) {
  traffic traffic{std::mt19937_64(seed), keys};
  auto& random = traffic.random;
  naive_forest forest;
  std::set<entry_key> held[2];
  request_number open = 0;
  for (int step = 0; step < steps; ++step) {
    policy_time now = static_cast<policy_time>(step) * (random() % 2 == 0 ? 1'000 : 10'000'000);
    auto tier = static_cast<tier_number>(random() % 2);
    switch (random() % 7) {
      case 0:
      case 1: {
        entry_info entry = traffic.some_entry();
        forest.insert(tier, entry);
        subject.insert(tier, entry, now);
        break;
      }
      case 2: subject.tracker.hit(tier, traffic.some_key(), now); break;
      case 3: {
        entry_key key = traffic.some_key();
        forest.erase(tier, key);
        held[tier].erase(key);
        subject.erase(tier, key);
        break;
      }
      case 4: {
        if (open != 0)
          subject.tracker.end_request(open, {.output_tokens = static_cast<uint32_t>(random() % 500)}, now);
        open = subject.tracker.begin_request(traffic.some_chain(), {}, now);
        break;
      }
      case 5: {
        entry_key key = traffic.some_key();
        if (forest.resident(tier, key) && held[tier].insert(key).second)
          subject.pin(tier, key);
        if (held[tier].size() > 4) {
          key = *held[tier].begin();
          held[tier].erase(key);
          subject.tracker.unpin(tier, key);
        }
        break;
      }
      case 6: {
        uint64_t bytes = random() % 3 == 0 ? ~uint64_t{0} : random() % 30;
        auto named = subject.victims(tier, bytes, now);
        if (auto broken = check_victims(named, forest, tier, bytes, held[tier]))
          return broken;
        if (random() % 4 != 0)
          for (auto& v : named)
            forest.erase(tier, v.key), subject.erase(tier, v.key);
      }
    }
    for (tier_number t : {0, 1})
      if (subject.tracker.residents(t) != forest.size(t))
        return "residents() is wrong";
    if (subject.tracker.ghosts() > std::max(eviction_tracker::ghosts_min, 4 * subject.tracker.tracked() / 5))
      return "too many ghosts";
  }
  for (tier_number tier : {0, 1}) {
    for (uint64_t n = 0; n < keys; ++n)
      subject.erase(tier, traffic.key_of(n));
    if (subject.tracker.residents(tier) != 0 || !subject.victims(tier, 1, 0).empty())
      return "an empty tier is not empty";
  }
  if (subject.tracker.tracked() != subject.tracker.ghosts())
    return "what is nowhere resident is not a ghost";
  return std::nullopt;
}

} // namespace terrace::test

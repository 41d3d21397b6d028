// The objects that a journal has recorded, in a few words: for checks.
#pragma once

#include "base/ids.hpp"
#include "index/index_record.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace terrace {

/// How many objects there are, and a sum that depends on which: by space, and by the epoch of their generations, because
/// what is forgotten is forgotten up to an epoch. Pure; used by one thread at a time.
class journal_tally {
 public:
  /// The object was published with this generation, which no other one has.
  void add(space_id in, uint64_t generation) {
    if (forgotten({in, epoch_of(generation)}))
      return; // it was published while a clear went on
    sum& of = sums_[{in, epoch_of(generation)}];
    ++of.objects;
    of.mark += mixed(generation);
  }
  /// It was, and is removed.
  void subtract(space_id in, uint64_t generation) {
    if (forgotten({in, epoch_of(generation)}))
      return;
    auto of = sums_.try_emplace({in, epoch_of(generation)}).first;
    --of->second.objects;
    of->second.mark -= mixed(generation);
    if (of->second == sum{})
      sums_.erase(of);
  }
  /// Objects of epochs below `floor` are not found again; nullopt: of all spaces.
  void forget(std::optional<space_id> in, uint64_t floor) {
    uint64_t& below = in ? floors_[*in] : floor_;
    below = below < floor ? floor : below;
    std::erase_if(sums_, [&](const auto& each) { return forgotten(each.first); });
  }

  /// What the index has beside this: a sentence for each space in which they differ. What was forgotten here may still be
  /// served, and of what is forgotten there, this was not told yet.
  std::vector<std::string> differences(const journal_tally& index) const {
    std::vector<std::string> all;
    std::map<key, std::pair<sum, sum>> both;
    auto compared = [&](const key& of) { return !forgotten(of) && !index.forgotten(of); };
    for (const auto& [of, one] : sums_)
      if (compared(of))
        both[of].first = one;
    for (const auto& [of, one] : index.sums_)
      if (compared(of))
        both[of].second = one;
    for (const auto& [of, sums] : both)
      if (sums.first != sums.second)
        all.push_back("it was told of " + std::to_string(sums.first.objects) + " objects of space " +
                      std::to_string(static_cast<uint32_t>(of.first)) + ", epoch " +
                      std::to_string(of.second) + ", and the index has " +
                      std::to_string(sums.second.objects) +
                      (sums.first.objects == sums.second.objects ? " other ones" : ""));
    return all;
  }

 private:
  using key = std::pair<space_id, uint64_t>;
  struct sum {
    uint64_t objects = 0;
    uint64_t mark = 0;
    friend bool operator==(const sum&, const sum&) = default;
  };
  bool forgotten(const key& of) const {
    auto floor = floors_.find(of.first);
    return of.second < floor_ || (floor != floors_.end() && of.second < floor->second);
  }
  /// splitmix64 (Steele, Lea and Flood, 2014).
  static uint64_t mixed(uint64_t x) {
    x += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
  }

  std::map<key, sum> sums_; ///< those with objects
  std::map<space_id, uint64_t> floors_;
  uint64_t floor_ = 0; ///< of all spaces
};

/// From a durable tier to the keeper of its index, after all changes: what the index has, by path.
struct check_journal_request {
  std::vector<journal_tally> paths;
};

} // namespace terrace

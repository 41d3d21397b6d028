// A summary, for checks, of the objects that a journal has recorded.
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

/// Counts objects, and sums their generations so that the sum depends on which objects they are. Both are
/// kept by space and by the epoch of the generations, because objects are forgotten up to an epoch. Pure;
/// used by one thread at a time.
class journal_sums {
 public:
  /// The object was published with this generation, which no other object has.
  void add(space_id space, uint64_t generation) {
    if (forgotten({space, epoch_of(generation)}))
      return; // it was published during a clear
    sum& sums = sums_[{space, epoch_of(generation)}];
    ++sums.objects;
    sums.mark += mixed(generation);
  }
  /// The object was published, and is now removed.
  void subtract(space_id space, uint64_t generation) {
    if (forgotten({space, epoch_of(generation)}))
      return;
    auto of = sums_.try_emplace({space, epoch_of(generation)}).first;
    --of->second.objects;
    of->second.mark -= mixed(generation);
    if (of->second == sum{})
      sums_.erase(of);
  }
  /// Objects of epochs below `floor` are not found again; nullopt: in all spaces.
  void forget(std::optional<space_id> space, uint64_t floor) {
    uint64_t& below = space ? floors_[*space] : floor_;
    below = below < floor ? floor : below;
    std::erase_if(sums_, [&](const auto& each) { return forgotten(each.first); });
  }

  /// Compares the index with this summary; returns a sentence for each space in which they differ. Objects that are
  /// forgotten here may still be served, and this summary may not have been told of all that the index has forgotten.
  std::vector<std::string> differences(const journal_sums& index) const {
    std::vector<std::string> all;
    std::map<key, std::pair<sum, sum>> both;
    auto compared = [&](const key& change) { return !forgotten(change) && !index.forgotten(change); };
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
  bool forgotten(const key& change) const {
    auto floor = floors_.find(change.first);
    return change.second < floor_ || (floor != floors_.end() && change.second < floor->second);
  }
  /// splitmix64 (Steele, Lea and Flood, 2014).
  static uint64_t mixed(uint64_t x) {
    x += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
  }

  std::map<key, sum> sums_; ///< the spaces and epochs with objects
  std::map<space_id, uint64_t> floors_;
  uint64_t floor_ = 0; ///< floor of all spaces
};

/// A durable tier sends it to the keeper of its index, after all changes: the summary of the index, by path.
struct check_journal_request {
  std::vector<journal_sums> paths;
};

} // namespace terrace

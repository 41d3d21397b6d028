// Messages between a durable tier and the keeper of its index: changes, the whole index, and objects that
// must not come back.
#pragma once

#include "base/error.hpp"
#include "base/ids.hpp"
#include "index/index_record.hpp"
#include "index/object_header.hpp"
#include "index/space_registry.hpp"
#include "memory/allocator.hpp"
#include "tier/objects/durable_index.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace terrace {

/// A durable tier sends it to the keeper of its index, in the order of the events; a disk set sends each
/// journal the changes of its path. Offsets are those of the tier's arena.
struct index_changes {
  std::vector<index_change> changes;
  space_ptr space;            ///< the space of published objects; null if there are none
  std::vector<space_id> gone; ///< spaces without objects, whose numbers are never used again
};

/// A journal sends it to its tier while it takes a checkpoint. It asks for the objects in `count` slots
/// starting at `first` that are in that part of the arena.
struct image_request {
  extent within;
  uint32_t first = 0;
  uint32_t count = 0;
};
struct image_answer {
  error failure;
  std::vector<index_change> objects;
  uint32_t next = 0;
  bool last = false;
};

/// A tier that was cleared sends it to its disk set, which sends it to all journals: objects written until
/// now must not come back. (delayed: until that is durable)
struct forget_request {
  std::optional<space_id> space; ///< absent: the whole volume
  uint64_t epoch = 0; ///< epoch of present writes: a journal that is behind forgets up to here as well
  std::optional<space_fingerprint> fingerprint{}; ///< fingerprint of the space
  bool by_other = false;                          ///< as in `clear_request`
};
struct forget_answer {
  error failure;
  uint64_t epoch = 0; ///< epoch of writes from now on
  /// From the disk set: a bit for each path of the volume where it is not durable; 0: durable on all.
  volume_id missed{};
};

// A summary, for checks, of the objects that a journal has recorded.

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

// The last lookups under a lease of a trust group, for whoever asks what became of one, and for traces.
#pragma once

#include "base/change_count.hpp"
#include "base/ids.hpp"
#include "index/prefix_resolver.hpp"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace terrace {

struct recent_lookup {
  uint64_t number = 0; ///< from 1 on, without gaps
  std::chrono::steady_clock::time_point at;
  connection_id connection{};
  std::string client; ///< its name
  std::string trace;  ///< of the request's options
  lookup_id id;       ///< zero: it has none
  space_id space{};
  uint32_t chunk_tokens = 0;
  std::shared_ptr<const chunk_prefix> prefix; ///< shared with the request; the digests are not copied
  uint32_t found_chunks = 0;
  uint32_t recompute_chunks = 0;     ///< further ones that were present, and left to the client
  uint32_t prefill_tokens_per_s = 0; ///< the speed by which they were; 0: the client has declared none
};

/// Safe on any thread. Neither side waits for the other: a reader that is too slow is told how many it has missed.
class recent_lookups {
 public:
  static constexpr size_t lookups_max = 1'024;
  /// All kept lookups together have no more digests (2 MiB), but the last lookup is kept in any case.
  static constexpr size_t digests_max = 65'536;

  explicit recent_lookups(size_t kept_max = lookups_max, size_t kept_digests_max = digests_max)
      : lookups_max_(kept_max), digests_max_(kept_digests_max) {}

  void add(recent_lookup one) {
    uint64_t last = 0;
    std::vector<recent_lookup> left; // their memory is released without the mutex
    {
      std::lock_guard lock(mutex_);
      one.number = last = ++last_;
      digests_ += one.prefix->chunks.size();
      kept_.push_back(std::move(one));
      while (kept_.size() > lookups_max_ || (digests_ > digests_max_ && kept_.size() > 1)) {
        digests_ -= kept_.front().prefix->chunks.size();
        left.push_back(std::move(kept_.front()));
        kept_.pop_front();
      }
      assert(kept_.size() <= lookups_max_ && (digests_ <= digests_max_ || kept_.size() == 1));
    }
    changes_.reach(last);
  }

  struct part {
    std::vector<recent_lookup> lookups;
    uint64_t lost = 0; ///< lookups behind `after` that are kept no longer
    uint64_t last = 0; ///< number of the last lookup of all
  };
  /// Returns the lookups behind number `after`, with at most `digests` digests, but at least one lookup if there is one.
  part read(uint64_t after, size_t digests) const {
    std::lock_guard lock(mutex_);
    part found;
    found.last = last_;
    uint64_t first = last_ - kept_.size() + 1;
    after = std::min(after, last_);
    found.lost = after + 1 < first ? first - after - 1 : 0;
    for (size_t i = after + found.lost + 1 - first; i < kept_.size(); ++i) {
      size_t more = kept_[i].prefix->chunks.size();
      if (more > digests && !found.lookups.empty())
        break;
      digests -= std::min(digests, more);
      found.lookups.push_back(kept_[i]);
    }
    return found;
  }

  /// Returns the speed that the last lookup in the space was told; 0: none was.
  uint32_t prefill_speed_in(space_id space) const {
    std::lock_guard lock(mutex_);
    auto last = std::find_if(kept_.rbegin(), kept_.rend(), [&](const recent_lookup& one) {
      return one.space == space && one.prefill_tokens_per_s != 0;
    });
    return last == kept_.rend() ? 0 : last->prefill_tokens_per_s;
  }

  change_count& changes() { return changes_; } ///< its number is that of the last lookup

 private:
  const size_t lookups_max_, digests_max_;
  mutable std::mutex mutex_;
  std::deque<recent_lookup> kept_;
  size_t digests_ = 0;
  uint64_t last_ = 0;
  change_count changes_;
};

} // namespace terrace

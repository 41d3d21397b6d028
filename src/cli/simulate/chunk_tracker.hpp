// The daemon's tracker of accesses and evictions, addressed by chunk numbers.
#pragma once

#include "base/ids.hpp"
#include "base/tier_properties.hpp"
#include "cli/simulate/workload.hpp"
#include "policy/eviction_tracker.hpp"

#include <queue>
#include <string>
#include <vector>

namespace terrace::simulate {

// The daemon's number of its first tier, which seeds randomized policies.
constexpr auto host_tier = static_cast<tier_number>(memory_tier);

/// The number of the tier at this position, counted from 0.
constexpr tier_number tier_at(size_t place) { return static_cast<tier_number>(host_tier + place); }

struct tracker_options {
  std::vector<std::string> policies; ///< one per tier, fastest first
  uint64_t seed = 0;                 ///< seed of randomized policies
  uint64_t object_bytes = 0;         ///< bytes that a chunk's object occupies
  uint64_t token_ns = 0;             ///< duration of a request per token of its answer
  bool remember = false;             ///< keep ghosts for admission, whatever the policies need
};

/// Requests are sequential; a chunk is one object. The length of the answer becomes known when a request
/// ends, which may be after later requests have begun.
class chunk_tracker {
 public:
  /// `of` must outlive it. The policies must be known (asserted).
  chunk_tracker(const workload& trace, const tracker_options& options);

  /// Notes the accesses of the request's chain, last chunk first, and ends earlier requests that are over by
  /// now.
  void begin(const request& next);
  /// Called when nothing more is stored for the request.
  void finish();

  void insert(tier_number tier, chunk which);
  void erase(tier_number tier, chunk which) { tracker_.erase(tier, key_of(which)); }
  void pin(tier_number tier, chunk which) { tracker_.pin(tier, key_of(which)); }
  void unpin(tier_number tier, chunk which) { tracker_.unpin(tier, key_of(which)); }

  /// Returns victims to make room for `chunks` chunks, best first; fewer if no more can be evicted. The
  /// current request's own chunks are proposed last.
  std::vector<chunk> victims(tier_number tier, uint64_t chunks);

  /// Returns how many of the offered chunks, from the first on, the tier should admit. Precondition: the tier
  /// has none of them.
  size_t admitted(tier_number tier, std::span<const chunk> offered, admission_rule rule);

 private:
  struct open_request {
    uint64_t end_ns;
    request_number number;
    request_outcome outcome;
    bool operator>(const open_request& other) const {
      return end_ns != other.end_ns ? end_ns > other.end_ns : number > other.number;
    }
  };

  static entry_key key_of(chunk which);
  static chunk chunk_of(entry_key key) { return static_cast<chunk>(key.high - 1); }
  void end_those_due();

  const workload& of_;
  tracker_options options_;
  eviction_tracker tracker_;
  policy_time now_ns_ = 0;
  open_request present_{};
  std::priority_queue<open_request, std::vector<open_request>, std::greater<>> answering_;
  std::vector<entry_key> chain_;
  std::vector<entry_info> offered_;
};

} // namespace terrace::simulate

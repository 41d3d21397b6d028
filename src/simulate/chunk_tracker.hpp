// The daemon's tracker of uses and evictions, spoken to in chunk numbers.
#pragma once

#include "base/ids.hpp"
#include "policy/eviction_tracker.hpp"
#include "simulate/workload.hpp"

#include <queue>
#include <string>
#include <vector>

namespace terrace::simulate {

// The daemon's number of its first tier: policies that draw lots draw by it.
constexpr auto host_tier = static_cast<tier_number>(tier_kind::host);

/// The number of the tier at this place, the first being 0.
constexpr tier_number tier_at(size_t place) { return static_cast<tier_number>(host_tier + place); }

struct tracker_options {
  std::vector<std::string> policies; ///< one per tier, fastest first
  uint64_t seed = 0;                 ///< of policies that draw lots
  uint64_t object_bytes = 0;         ///< what a chunk's object occupies
  uint64_t token_ns = 0;             ///< a request ends so long after its begin for each token of its answer
  bool remember = false;             ///< keep ghosts for admission, whatever the policies need
};

/// One request after the other; a chunk is one object. The answer's length becomes known when a request ends, which may
/// be after later ones have begun.
class chunk_tracker {
 public:
  /// `of` must outlive it. The policies must be known (asserted).
  chunk_tracker(const workload& of, const tracker_options& options);

  /// Notes the uses of the request's chain, last chunk first, and ends those whose answers are out by now.
  void begin(const request& next);
  /// Nothing more is stored for the request.
  void finish();

  void insert(tier_number tier, chunk which);
  void erase(tier_number tier, chunk which) { tracker_.erase(tier, key_of(which)); }
  void pin(tier_number tier, chunk which) { tracker_.pin(tier, key_of(which)); }
  void unpin(tier_number tier, chunk which) { tracker_.unpin(tier, key_of(which)); }

  /// Enough chunks to make `chunks` places free, best victims first; fewer when no more may leave. The present request's
  /// own go only when nothing else may.
  std::vector<chunk> victims(tier_number tier, uint64_t chunks);

  /// How many of these, from the first on, the tier should take. It has none of them.
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

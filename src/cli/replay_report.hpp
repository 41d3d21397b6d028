// The summary of a replay.
#pragma once

#include "base/error.hpp"
#include "base/tier_properties.hpp"
#include "cli/json.hpp"
#include "cli/replay_target.hpp"
#include "cli/trace_statistics.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <string>

namespace terrace::cli {

// The results of a replay.

constexpr size_t tier_count = tier_kinds;

struct replay_counts {
  uint64_t requests = 0;
  uint64_t input_tokens = 0;
  uint64_t chunk_tokens = 0; ///< input tokens in whole chunks
  /// Tokens sent, which the daemon hashed; 0: requests name their chunks by digests.
  uint64_t sent_tokens = 0;
  std::array<uint64_t, tier_count> hit_tokens{};
  std::array<uint64_t, tier_count> loaded_bytes{}; ///< by the tier returned by the lookup
  uint64_t stored_bytes = 0;
  uint64_t stored_chunks = 0;
  uint64_t present_chunks = 0; ///< stores of chunks that were already present
  /// Present chunks that are faster to compute; they are not among the hits.
  uint64_t recompute_chunks = 0;
  uint64_t hit_chunks = 0;
  uint64_t brought_chunks = 0; ///< of the hits, in host memory: they came from a remote store for the lookup
  uint64_t undelivered_chunks = 0; ///< found, but lost before they were loaded
  uint64_t wrong_bytes = 0;
  uint64_t wrong_objects = 0;
  std::string first_wrong; ///< position of the first wrong byte
  struct errors_of_code {
    uint64_t count = 0;
    std::string first_text;
  };
  std::map<errc, errors_of_code> errors;
  latency_recorder lookup, load, store, request;
  std::array<latency_recorder, tier_count>
      wait; ///< lookup and loads of requests with hits, by their slowest tier
  prefetched ahead;
  uint64_t load_ns = 0;
  uint64_t store_ns = 0;
  uint64_t late_ns_max = 0; ///< paced replays: maximum delay behind the trace
  bool lost = false;        ///< the connection to the cache was lost

  uint64_t all_hit_tokens() const;
  uint64_t all_loaded_bytes() const;
  double hit_ratio() const; ///< share of all input tokens
  void note_error(const error& e);
  void merge(const replay_counts& other);
  void merge(const prefetched& done);

  /// True if no byte was wrong and the only errors were those of a full or busy cache. `may_be_lost`: errors
  /// of a cache that was away are allowed, too.
  bool sound(bool may_be_lost = false) const;
};

struct replay_summary {
  replay_counts counts;
  double seconds = 0;
  size_t clients = 1;
  uint64_t object_bytes = 0;
  std::string mode; ///< "mapped" or "daemon"
};

std::string format_summary(const replay_summary& summary);
json to_json(const replay_summary& summary);

} // namespace terrace::cli

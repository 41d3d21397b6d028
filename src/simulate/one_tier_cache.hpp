// A daemon with host memory alone, without its bytes: which chunks are there, who leaves, what hits.
#pragma once

#include "simulate/cache_shape.hpp"
#include "simulate/chunk_order.hpp"

namespace terrace::simulate {

struct cache_counts {
  uint64_t requests = 0;
  uint64_t accesses = 0;    ///< chunks asked for
  uint64_t hits = 0;        ///< of these, in the longest run from the root that was there
  uint64_t behind_hole = 0; ///< there, but behind one that was not: they miss
  uint64_t inserted = 0;
  uint64_t evicted = 0;
  uint64_t refused = 0; ///< no room could be made
};

/// Serves requests as the daemon does when `terrace replay` drives it with one client: look up under a lease, load,
/// release, store what missed, and nothing of the next request before that is done. The same events reach the policy in
/// the same order.
class one_tier_cache {
 public:
  /// `of` must outlive it.
  one_tier_cache(const workload& of, std::unique_ptr<eviction_policy> policy, const cache_shape& shape);

  void serve(const request& next);

  const cache_counts& counts() const { return counts_; }
  uint64_t used_chunks() const { return used_; }
  bool holds(chunk which) const { return resident_[which]; }

 private:
  size_t look_up(std::span<const chunk> chain, uint64_t now_ns);
  bool store(std::span<const chunk> window, uint64_t now_ns);
  bool make_room(uint64_t wanted, uint64_t now_ns);

  const workload& of_;
  cache_shape shape_;
  chunk_order order_;
  std::vector<bool> resident_;
  uint64_t used_ = 0;
  cache_counts counts_;
};

} // namespace terrace::simulate

// A daemon with host memory alone, without its bytes: which chunks are there, who leaves, what hits.
#pragma once

#include "simulate/cache_counts.hpp"
#include "simulate/cache_shape.hpp"
#include "simulate/tier_contents.hpp"

namespace terrace::simulate {

/// Serves requests as the daemon does when `terrace replay` drives it with one client: look up under a lease, load,
/// release, store what missed, and nothing of the next request before that is done. The same events reach the tracker in
/// the same order.
class one_tier_cache {
 public:
  /// `of` must outlive it.
  one_tier_cache(const workload& of, const tracker_options& policy, const cache_shape& shape);

  void serve(const request& next);

  const cache_counts& counts() const { return counts_; }
  uint64_t used_chunks() const { return host_.used(); }
  bool holds(chunk which) const { return host_.holds(which); }

 private:
  size_t look_up(std::span<const chunk> chain);
  bool store(std::span<const chunk> window);
  void volume_rest(std::span<const chunk> rest);

  const workload& of_;
  cache_shape shape_;
  chunk_tracker tracker_;
  tier_contents host_;
  cache_counts counts_;
};

} // namespace terrace::simulate

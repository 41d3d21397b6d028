// A daemon with host memory and disk, without their bytes.
#pragma once

#include "simulate/cache_counts.hpp"
#include "simulate/cache_shape.hpp"
#include "simulate/tier_contents.hpp"

#include <optional>

namespace terrace::simulate {

/// When a chunk is offered to the disk, which asks its admission rule.
enum class disk_writes : uint8_t {
  on_use,      ///< when it is stored, and at each later request that uses it while host memory alone has it
  on_eviction, ///< when it leaves host memory
};

struct disk_shape {
  uint64_t capacity_chunks = 0;
  admission_rule admission = admission_rule::always;
  disk_writes writes = disk_writes::on_use;
};

/// A prefix may alternate between the tiers. What is on disk alone is brought to host memory and keeps its copy on
/// disk; a chain that is longer than host memory is read and written past it.
class two_tier_cache {
 public:
  /// `of` must outlive it.
  two_tier_cache(const workload& of, const tracker_options& policies, const cache_shape& host,
                 const disk_shape& disk);

  void serve(const request& next);

  const cache_counts& counts() const { return counts_; }
  bool host_holds(chunk which) const { return host_.holds(which); }
  bool disk_holds(chunk which) const { return disk_.holds(which); }
  uint64_t host_used() const { return host_.used(); }
  uint64_t disk_used() const { return disk_.used(); }

 private:
  size_t look_up(std::span<const chunk> chain);
  void load(std::span<const chunk> run);
  void store(std::span<const chunk> rest);
  /// How many that was; nothing when there is no room.
  std::optional<size_t> bring_to_host(std::span<const chunk> window);
  void offer(std::span<const chunk> run);

  const workload& of_;
  cache_shape shape_;
  disk_shape disk_shape_;
  chunk_tracker tracker_;
  tier_contents host_;
  tier_contents disk_;
  cache_counts counts_;
};

} // namespace terrace::simulate

// A policy of the daemon, spoken to in chunk numbers.
#pragma once

#include "policy/eviction_policy.hpp"
#include "simulate/workload.hpp"

#include <memory>
#include <vector>

namespace terrace::simulate {

/// Translates between the chunks of a workload, each of one object, and the entries of the policy, and keeps the pins as
/// the daemon's policy actor does. Chunks have one size.
class chunk_order {
 public:
  /// `of` must outlive it. `object_bytes`: what an object occupies.
  chunk_order(const workload& of, std::unique_ptr<eviction_policy> policy, uint64_t object_bytes);

  void insert(chunk which, uint64_t now_ns);
  void hit(chunk which, uint64_t now_ns);
  void erase(chunk which);
  void pin(chunk which) { pinned_[which] = true; }
  void unpin(chunk which) { pinned_[which] = false; }

  /// Enough chunks to make `bytes` free, best victims first; fewer when no more may leave.
  std::vector<chunk> victims(uint64_t bytes, uint64_t now_ns);

 private:
  static entry_key key_of(chunk which);
  static chunk chunk_of(entry_key key) { return static_cast<chunk>(key.high - 1); }

  const workload& of_;
  std::unique_ptr<eviction_policy> policy_;
  uint64_t object_bytes_;
  std::vector<bool> pinned_;
  evictable_filter may_leave_;
};

} // namespace terrace::simulate

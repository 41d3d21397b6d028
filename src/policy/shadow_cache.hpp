// What another policy, or another capacity, would have hit: a cache of metadata alone that hears the same requests.
#pragma once

#include "policy/eviction_tracker.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace terrace {

/// Since the beginning. A chunk object counts as hit when it is there with all before it, for nothing behind a hole is of
/// use. Bytes are physical.
struct shadow_counts {
  uint64_t requests = 0;
  uint64_t asked = 0;
  uint64_t hits = 0;
  uint64_t asked_bytes = 0;
  uint64_t hit_bytes = 0;
  uint64_t evicted = 0;
};

/// One tier of so many bytes under one policy, whose client stores whatever it missed. The policy is that of the daemon's
/// own tiers, an `eviction_tracker`: nothing is simulated twice. Takes what the tracker takes, about 48 bytes for each chunk
/// that fits, and with policies that learn two ghosts more for each.
///
/// Not thread-safe, no clock: it belongs to an actor, or to a test.
class shadow_cache {
 public:
  /// Errors: `bad_request` naming the known policies.
  static result<std::unique_ptr<shadow_cache>> make(std::string_view policy, uint64_t capacity_bytes,
                                                    uint64_t seed = 0);

  /// An inference request for these objects, root first, as many for each chunk: its one use of them. It is open until
  /// `end`.
  request_number begin(std::span<const entry_info> chain, const request_hints& hints, policy_time now);
  void end(request_number request, const request_outcome& outcome, policy_time now);

  /// A request of a client that does not tell which requests belong together.
  void use(std::span<const entry_info> chain, policy_time now);

  /// Those leave, which is no eviction. Looks at every resident.
  void clear(const std::function<bool(entry_key)>& which);

  std::string_view policy() const { return tracker_.policy(only_tier); }
  uint64_t capacity_bytes() const { return capacity_bytes_; }
  uint64_t used_bytes() const { return used_bytes_; }
  uint64_t residents() const { return tracker_.residents(only_tier); }
  const shadow_counts& counts() const { return counts_; }
  /// Of metadata.
  uint64_t bytes() const { return tracker_.bytes(); }

  /// A store goes in windows of this size at most, each of which gets all its room or none, as the daemon's do.
  static uint64_t window_bytes(uint64_t capacity_bytes);

 private:
  static constexpr tier_number only_tier = 0;

  shadow_cache(uint64_t capacity_bytes, uint64_t seed) : capacity_bytes_(capacity_bytes), tracker_(seed) {}
  void count(std::span<const entry_info> chain);
  void store_missing(std::span<const entry_info> chain, request_number request, policy_time now);
  bool make_room(uint64_t bytes, request_number request, policy_time now);

  uint64_t capacity_bytes_;
  uint64_t used_bytes_ = 0;
  shadow_counts counts_;
  eviction_tracker tracker_;
  std::vector<entry_key> keys_;     ///< of the request that begins
  std::vector<bool> reached_;       ///< of the chain that is counted: there, with all before it
  std::vector<entry_info> missing_; ///< of the window that is stored
};

} // namespace terrace

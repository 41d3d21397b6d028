// Measures what another policy or capacity would have hit: a metadata-only cache fed with the same requests.
#pragma once

#include "policy/eviction_tracker.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace terrace {

/// Counters since the start. A chunk object counts as a hit if it and all objects before it are present,
/// because nothing behind a gap is usable. Bytes are physical.
struct shadow_counts {
  uint64_t requests = 0;
  uint64_t asked = 0;
  uint64_t hits = 0;
  uint64_t asked_bytes = 0;
  uint64_t hit_bytes = 0;
  uint64_t evicted = 0;
};

/// One tier of a given capacity under one policy, whose client stores whatever it missed. The policy runs in
/// an `eviction_tracker`, as in the daemon's own tiers; there is no second implementation. Memory is that of
/// the tracker: about 48 bytes per chunk that fits, and with learning policies two more ghosts per chunk.
///
/// Not thread-safe, no clock: owned by an actor or a test.
class shadow_cache {
 public:
  /// Errors: `bad_request`, listing the known policies.
  static result<std::unique_ptr<shadow_cache>> make(std::string_view policy, uint64_t capacity_bytes,
                                                    uint64_t seed = 0);

  /// Begins an inference request for these objects, root first, with the same number of objects for each
  /// chunk: it counts as one access to each. Open until `end`.
  request_number begin(std::span<const entry_info> chain, const request_hints& hints, policy_time now);
  void end(request_number request, const request_outcome& outcome, policy_time now);

  /// Records the accesses of a client that does not identify requests.
  void use(std::span<const entry_info> chain, policy_time now);

  /// Removes the matching entries without counting evictions. Scans all residents.
  void clear(const std::function<bool(entry_key)>& which);

  std::string_view policy() const { return tracker_.policy(only_tier); }
  uint64_t capacity_bytes() const { return capacity_bytes_; }
  uint64_t used_bytes() const { return used_bytes_; }
  uint64_t residents() const { return tracker_.residents(only_tier); }
  const shadow_counts& counts() const { return counts_; }
  /// The memory of the metadata.
  uint64_t bytes() const { return tracker_.bytes(); }

  /// A store is processed in windows of at most this size, each of which gets all its space or none, as in
  /// the daemon.
  static uint64_t window_bytes(uint64_t capacity_bytes);

 private:
  static constexpr tier_number only_tier = 0;

  shadow_cache(uint64_t capacity_bytes, uint64_t seed) : capacity_bytes_(capacity_bytes), tracker_(seed) {}
  void count(std::span<const entry_info> chain);
  void store_missing(std::span<const entry_info> chain, request_number request, policy_time now);
  /// Stores all objects that the window lacks, or none and returns false. Gaps are filled again
  /// (base/window_refill.hpp).
  bool store_window(std::span<const entry_info> window, request_number request, policy_time now);
  bool make_room(uint64_t bytes, request_number request, policy_time now);

  uint64_t capacity_bytes_;
  uint64_t used_bytes_ = 0;
  shadow_counts counts_;
  eviction_tracker tracker_;
  std::vector<entry_key> keys_; ///< the keys of the request that is being registered
  std::vector<bool> reached_;   ///< for the chain being counted: the object is present, with all before it
  std::vector<entry_info> missing_; ///< the objects that the window being stored lacks
  std::vector<bool> there_;         ///< the objects of that window that are present
};

} // namespace terrace

// A daemon with any number of tiers, without bytes: it tracks the location of chunks, evictions and hits.
#pragma once

#include "base/ids.hpp"
#include "base/tier_properties.hpp"
#include "cli/simulate/workload.hpp"
#include "policy/eviction_tracker.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <string>
#include <vector>

namespace terrace::simulate {

// The daemon's tracker of accesses and evictions, addressed by chunk numbers.

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

// The capacities of a simulated daemon's tiers and the sizes of its transfers: the daemon's rules, in chunks.

/// The objects of a replay; each chunk is one object.
struct object_sizes {
  uint64_t payload_bytes = 0;
  uint64_t physical_bytes = 0;         ///< bytes of the arena per object, with header block and padding
  uint64_t region_bytes = 32ULL << 20; ///< region of the client, which limits a store or load
  uint64_t segment_bytes = 1ULL << 30; ///< no object of the host arena crosses a segment
};

struct cache_shape {
  uint64_t capacity_chunks = 0;
  uint64_t object_bytes = 0;  ///< physical bytes of an object
  uint64_t window_chunks = 1; ///< chunks for which a transfer allocates space at a time
  uint64_t batch_chunks = 1;  ///< chunks per request of the client
};

/// Returns the number of whole objects that fit in the segments. The rest of each segment is unusable for
/// objects of this size.
inline uint64_t chunks_in(uint64_t arena_bytes, const object_sizes& objects) {
  uint64_t segments = arena_bytes / objects.segment_bytes;
  return segments * (objects.segment_bytes / objects.physical_bytes) +
         arena_bytes % objects.segment_bytes / objects.physical_bytes;
}

/// Returns the smallest arena in which `chunks` fit.
inline uint64_t arena_for(uint64_t chunks, const object_sizes& objects) {
  uint64_t in_segment = objects.segment_bytes / objects.physical_bytes;
  return chunks / in_segment * objects.segment_bytes + chunks % in_segment * objects.physical_bytes;
}

/// Applies the daemon's rule: a window is at most 64 MiB and at most an eighth of the arena, but at least a
/// chunk.
inline cache_shape shape_of(uint64_t arena_bytes, const object_sizes& objects) {
  uint64_t window = std::min<uint64_t>(64ULL << 20, arena_bytes / 8);
  return {.capacity_chunks = chunks_in(arena_bytes, objects),
          .object_bytes = objects.physical_bytes,
          .window_chunks = std::max<uint64_t>(1, window / objects.physical_bytes),
          .batch_chunks = std::max<uint64_t>(1, objects.region_bytes / objects.payload_bytes)};
}

// The contents of one tier of a simulated daemon, and eviction.

class tier_contents {
 public:
  /// Makes room for `capacity` chunks of a workload with `distinct` ones. The tracker must outlive it.
  tier_contents(chunk_tracker& tracker, tier_number tier, uint64_t capacity, size_t distinct)
      : tracker_(tracker), tier_(tier), capacity_(capacity), resident_(distinct) {}

  bool holds(chunk which) const { return resident_[which]; }
  uint64_t used() const { return used_; }
  uint64_t evicted() const { return evicted_; }
  uint64_t room() const { return capacity_ - used_; }
  bool has_room(uint64_t chunks) const { return chunks <= room(); }

  /// Evicts until `chunks` more fit, and calls `leaving` before each eviction. False if they cannot be made
  /// to fit; chunks evicted until then stay evicted, as in a daemon.
  bool make_room(uint64_t chunks, const std::function<void(chunk)>& leaving = {});

  /// Precondition (asserted): there is room.
  void insert(chunk which);

  void pin(chunk which) { tracker_.pin(tier_, which); }
  void unpin(chunk which) { tracker_.unpin(tier_, which); }

 private:
  chunk_tracker& tracker_;
  tier_number tier_;
  uint64_t capacity_;
  std::vector<bool> resident_;
  uint64_t used_ = 0;
  uint64_t evicted_ = 0;
};

// Counts of a simulated daemon.

/// Counts are in chunks. `disk` means all tiers below the first, `host memory` the first.
struct cache_counts {
  uint64_t accesses = 0;    ///< chunks requested
  uint64_t hits = 0;        ///< accesses in the longest run from the root that was present in any tier
  uint64_t disk_hits = 0;   ///< hits that were only on disk
  uint64_t behind_hole = 0; ///< chunks that were present after a missing one; they count as misses
  uint64_t stored = 0;      ///< chunks that clients stored in host memory
  uint64_t promoted = 0;    ///< chunks copied from disk into host memory
  uint64_t evicted = 0;     ///< chunks evicted from host memory
  uint64_t disk_written = 0;
  uint64_t disk_evicted = 0;
  uint64_t disk_refused = 0; ///< chunks that the disk did not admit, counted at each offer
  uint64_t no_room = 0;      ///< chunks not stored because no room could be made in host memory

  friend bool operator==(const cache_counts&, const cache_counts&) = default;
};

/// When a chunk is offered to a tier below the first, which then applies its admission rule.
enum class tier_writes : uint8_t {
  on_use,      ///< when it is stored, and at each later use while the tier lacks it
  on_eviction, ///< when it is evicted from the tier above
};

/// A tier below the first.
struct lower_tier {
  uint64_t capacity_chunks = 0;
  admission_rule admission = admission_rule::always;
  tier_writes writes = tier_writes::on_use;
};

/// Serves requests like a daemon that `terrace replay` drives with one client: look up under a lease, load,
/// release, store the misses, then the next request. The tracker receives the same events in the same order.
///
/// A prefix may alternate between the tiers. A chunk that only lower tiers have is copied to the first tier.
/// A chain longer than the first tier bypasses it, or is truncated if there is no other tier.
class tier_cache {
 public:
  /// `of` must outlive it. `policies` has one policy per tier; `below` is ordered, fastest first.
  tier_cache(const workload& trace, const tracker_options& policies, const cache_shape& first,
             const std::vector<lower_tier>& below = {});

  void serve(const request& next);

  const cache_counts& counts() const { return counts_; }
  /// Position 0 is the first tier.
  bool holds(size_t place, chunk which) const { return tiers_[place].contents.holds(which); }
  uint64_t used(size_t place) const { return tiers_[place].contents.used(); }

 private:
  struct tier {
    tier_contents contents;
    lower_tier rules; ///< unused for the first tier
  };

  tier_contents& first() { return tiers_.front().contents; }
  bool holds_anywhere(chunk which) const;
  size_t look_up(std::span<const chunk> chain);
  void load(std::span<const chunk> run);
  void store(std::span<const chunk> rest);
  /// Returns the number of chunks of the window copied to the first tier; nothing if there is no room.
  std::optional<size_t> bring_to_first(std::span<const chunk> window);
  bool make_room(size_t place, uint64_t chunks);
  void offer(size_t place, std::span<const chunk> run);
  void insert(size_t place, std::span<const chunk> window);

  const workload& of_;
  cache_shape shape_;
  chunk_tracker tracker_;
  std::vector<tier> tiers_;
  cache_counts counts_;
};

} // namespace terrace::simulate

// Counts the events of one tier of one trust group.
#pragma once

#include "base/miss_reason.hpp"
#include "metrics/samples.hpp"

#include <array>
#include <deque>
#include <string>

namespace terrace::metrics {

// The hits that the shadow policies of a trust group would have had.

/// Add lines before the probe is served; afterwards it is safe on any thread.
class shadow_probe {
 public:
  /// Totals of one policy at one capacity since the start.
  struct totals {
    uint64_t asked = 0, hits = 0, evicted = 0;
    uint64_t used_bytes = 0, bookkeeping_bytes = 0;
  };

  void add_line(std::string policy, uint64_t capacity_bytes) {
    line& added = lines_.emplace_back();
    added.policy = std::move(policy);
    added.capacity = std::to_string(capacity_bytes);
  }
  void set(size_t line, const totals& now) noexcept;
  void skipped(uint64_t requests) noexcept { skipped_.set(requests); }

  void collect(const labels& series, sample_sink& sink) const;

 private:
  struct line {
    std::string policy, capacity;
    gauge asked, hits, evicted, used, bookkeeping;
  };
  std::deque<line> lines_;
  gauge skipped_;
};

/// Why an object left a tier.
enum class eviction_reason : uint8_t {
  space,    ///< its bytes were needed for a waiting request
  ahead,    ///< the low watermark requires free bytes
  damaged,  ///< its checksum or header did not match
  unusable, ///< ranks of its chunk are missing, and their last connection has ended
  cleared,  ///< cleared on request
  retired,  ///< its segment is being removed from the arena
  staging,  ///< the tier keeps only objects that are held
  quota,    ///< its tenant is at its bound
};
constexpr size_t eviction_reasons = 8;
std::string_view to_string(eviction_reason reason);

/// Safe on any thread.
class tier_probe {
 public:
  /// The state of an allocator, set whenever it changes (`allocator_usage` in memory/allocator.hpp).
  struct space {
    uint64_t capacity_bytes = 0;
    uint64_t used_bytes = 0;
    uint64_t requested_bytes = 0; ///< requested by callers, without rounding
    uint64_t largest_free_run = 0;
    uint64_t free_runs = 0;
    uint64_t whole_bytes = 0; ///< free bytes that objects of the smallest size can fill
  };

  void hit(uint64_t objects) noexcept { hits_.add(objects); }
  void missed(uint64_t objects) noexcept { misses_.add(objects); }
  void read(uint64_t bytes) noexcept { read_bytes_.add(bytes); }
  void written(uint64_t bytes) noexcept { written_bytes_.add(bytes); }
  /// Objects were read into host memory ahead of demand.
  void prefetched(uint64_t objects, uint64_t bytes) noexcept {
    prefetched_.add(objects);
    prefetched_bytes_.add(bytes);
  }
  void prefetch_refused(uint64_t objects) noexcept {
    prefetch_refused_.add(objects);
  } ///< there was no room for objects that were to be read ahead, or others wait for it
  void admitted(uint64_t objects) noexcept { admitted_.add(objects); }
  void evicted(eviction_reason reason, uint64_t objects, uint64_t bytes) noexcept;
  void found_no_victim() noexcept { no_victim_.add(); } ///< an eviction could not free enough bytes
  void evicted_too_much(uint64_t bytes) noexcept { over_evicted_bytes_.add(bytes); }
  void dropped(uint64_t objects) noexcept {
    dropped_.add(objects);
  } ///< no room was left that eviction could have made
  /// Times by the policy's clock since the last access, at the next access and at the eviction.
  void reused(std::chrono::milliseconds after, size_t objects = 1) noexcept {
    reuse_.observe(after, objects);
  }
  void unused_until_evicted(std::chrono::milliseconds age) noexcept { eviction_age_.observe(age); }
  void refused(refusal_reason reason, uint64_t objects) noexcept {
    refusals_[static_cast<size_t>(reason)].add(objects);
  }
  /// Objects were written to a tier below, because they were evicted, leave with their segment, or were used again.
  void demoted(uint64_t objects, uint64_t bytes) noexcept {
    demoted_.add(objects);
    demoted_bytes_.add(bytes);
  }
  /// Objects were not written to the tier below, so that an eviction loses them. The reasons are those for
  /// which the tier below does not admit objects.
  void not_demoted(refusal_reason reason, uint64_t objects) noexcept {
    demotions_failed_[static_cast<size_t>(reason)].add(objects);
  }
  /// A round of eviction waited for its victims to be written.
  void waited_for_demotion(std::chrono::nanoseconds time) noexcept { demotion_wait_.observe(time); }
  void holds(uint64_t objects) noexcept { objects_.set(objects); }
  void leased(uint64_t bytes) noexcept { leased_.set(bytes); }
  void waiting(uint64_t requests) noexcept { waiting_.set(requests); }
  void degraded(bool is) noexcept { degraded_.set(is ? 1 : 0); }
  void occupies(const space& now) noexcept;

  uint64_t hits() const noexcept { return hits_.value(); }
  uint64_t misses() const noexcept { return misses_.value(); }
  uint64_t read_bytes() const noexcept { return read_bytes_.value(); }
  uint64_t written_bytes() const noexcept { return written_bytes_.value(); }
  uint64_t dropped() const noexcept { return dropped_.value(); }
  uint64_t refused(refusal_reason reason) const noexcept {
    return refusals_[static_cast<size_t>(reason)].value();
  }

  void collect(const labels& series, sample_sink& sink) const;

 private:
  counter hits_, misses_, read_bytes_, written_bytes_, admitted_, no_victim_, over_evicted_bytes_, dropped_,
      prefetched_, prefetched_bytes_, prefetch_refused_, demoted_, demoted_bytes_;
  std::array<counter, eviction_reasons> evictions_, evicted_bytes_;
  std::array<counter, refusal_reasons> refusals_, demotions_failed_;
  latency_histogram demotion_wait_;
  age_histogram reuse_, eviction_age_;
  gauge objects_, leased_, waiting_, degraded_, capacity_, used_, requested_, largest_run_, free_runs_,
      whole_;
};

} // namespace terrace::metrics

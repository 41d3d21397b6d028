// The search for a prefix in the tiers of a trust group, slice by slice, until the chain ends.
//
// Pure: a lookup reads the tiers' indexes or asks the tiers, and passes the answers to this class. Used by
// one thread at a time. A tier is named by its position among the searched ones.
#pragma once

#include "base/ids.hpp"
#include "base/tier_properties.hpp"
#include "index/space_registry.hpp"
#include "tier/messages.hpp"
#include "tier/objects/object_source.hpp"
#include "tier/objects/tier_index.hpp"
#include "tier/search/found_prefix.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace terrace {

/// The tiers that a lookup searches, in the order of the group's list (tier_list.hpp): those that are neither empty nor
/// unreadable. `Tier` is an entry of a tier_list, with `kind`, `index`, `reads()` and `degraded()`. This refers to the
/// list, which must outlive it. Used by one thread at a time.
template <class Tier>
class searched_tiers {
 public:
  static constexpr size_t kinds_max = tier_kinds; ///< a group has at most one tier of each kind

  /// Bit n of `wanted`: tier_kind n may be searched; 0: all.
  searched_tiers(const std::vector<Tier>& all, uint32_t wanted) {
    for (const Tier& tier : all) {
      bool allowed = wanted == 0 || (wanted >> static_cast<unsigned>(tier.kind) & 1) != 0;
      if (allowed && tier.reads() && !tier.index->empty())
        add(tier);
    }
  }

  size_t size() const { return size_; }
  const Tier& operator[](size_t i) const { return *searched_[i]; }

  std::span<const tier_kind> kinds() const { return std::span(kinds_).first(size_); }

  /// Returns false if a tier of `all`, the tiers that exist now, may have objects that the search could not find.
  bool everything(const std::vector<Tier>& all) const {
    return std::all_of(all.begin(), all.end(), [this](const Tier& tier) {
      bool was = std::ranges::find(kinds(), tier.kind) != kinds().end();
      return (was || tier.index->empty()) && tier.degraded().empty();
    });
  }

 private:
  void add(const Tier& tier) {
    assert(size_ < kinds_max);
    searched_[size_] = &tier;
    kinds_[size_++] = tier.kind;
  }

  std::array<const Tier*, kinds_max> searched_{};
  std::array<tier_kind, kinds_max> kinds_{};
  size_t size_ = 0;
};

class prefix_search {
 public:
  /// The number of objects that a tier probes between checks for other messages, about 10 us: whole words of
  /// a bitmap. Many lookups are one slice.
  static constexpr size_t slice_objects = 128;
  static_assert(slice_objects % 64 == 0);

  /// `tiers` are searched, in the order of tier_list.hpp. `objects` are those of the prefix's chunks on all ranks.
  prefix_search(prefix_subject subject, object_source objects, std::span<const tier_kind> tiers);

  /// Call before `probe`, `read` and `add` of each slice. Returns false if everything is searched, or the
  /// chain has ended.
  bool next_slice();
  bool one_slice() const { return objects_.size() <= slice_objects; }

  /// The current slice, for a tier that must be asked. A tier below host memory is asked after the faster ones, and only
  /// from the first object on that these lack, or, for a lease, host memory: nullopt if there is none. `copies`: it is asked for all of the slice, so
  /// that it holds what host memory might not hold for long.
  std::optional<probe_request> probe(size_t tier, bool copies = false);
  void add(size_t tier, probe_answer found);
  /// The bytes that host memory holds of the slices so far.
  uint64_t bytes_in_memory() const { return bytes_in_memory_; }

  /// Reads a tier's index on this thread, so that a lookup does not wait for a tier that is busy, perhaps on
  /// a preempted worker. Returns nullopt if the tier must be asked, because the objects must be held, or the
  /// tier is modifying its index. A slower tier is searched only behind the leading objects that faster tiers
  /// have, because nothing more needs to be known of these.
  struct counted {
    size_t hits = 0;
    size_t misses = 0;
  };
  std::optional<counted> read(size_t tier, const tier_index& index);

  /// Call once, after the last slice.
  found_prefix take();

 private:
  bool chain_goes_on() const;
  void add_present(size_t tier, object_bitmap present, size_t from = 0);
  static size_t first_absent(const object_bitmap& slice);
  size_t first_wanted(size_t tier) const;
  std::optional<object_bitmap> present_in(const tier_index& index, size_t from) const;
  /// Probes record accesses only if they see the whole request.
  bool probes_note_access() const;

  prefix_subject of_;
  object_source objects_;
  std::vector<tier_share> shares_;
  std::vector<hold_ptr>
      holds_; ///< holds of long lookups, parallel to the shares, which take them with the first held object
  object_bitmap slice_;         ///< the objects of the slice that any tier has
  object_bitmap in_memory_now_; ///< those that host memory has
  bool memory_gap_ = false;     ///< host memory has not all of the slices before
  object_source::part now_;     ///< the slice, once a tier is asked
  std::array<size_t, tier_kinds>
      asked_from_{}; ///< parallel to the shares: the first object of the slice that was asked for
  uint64_t bytes_in_memory_ = 0;
  size_t first_ = 0;  ///< its first object
  size_t probed_ = 0; ///< objects in the slices so far
};

} // namespace terrace

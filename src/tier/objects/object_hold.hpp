// Keeps published objects in their tier.
#pragma once

#include "base/ids.hpp"
#include "base/keep_alive.hpp"
#include "base/tier_properties.hpp"
#include "index/resident.hpp"
#include "tier/objects/object_batch.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace terrace {

// The place where the handles of a tier release what they own.

/// The tier as seen by its handles (`object_hold`, `object_reservation`). The last copy of a handle may end
/// on any thread, so calls may come from any thread and concurrently. They neither block nor throw, and are
/// applied later; calls from one thread are applied in order. Handles keep the sink alive; after the end of
/// the tier the calls have no effect.
class release_sink {
 public:
  virtual ~release_sink() = default;

  /// Ends one hold of each of these objects.
  virtual void release(std::vector<object_id> held) = 0;

  /// Ends one hold of each present object among many places; the sink may look at them on another thread, and later.
  virtual void release_places(std::vector<object_place> held) { release(ids_of(held)); }

  /// Releases the space of objects that were reserved and not published.
  virtual void abandon(std::vector<object_id> reserved) = 0;

 protected:
  /// Returns the ids of the present objects.
  static std::vector<object_id> ids_of(std::span<const object_place> places) {
    std::vector<object_id> ids;
    for (const object_place& place : places)
      if (place.present())
        ids.push_back(place.id);
    return ids;
  }
};
using release_sink_ptr = std::shared_ptr<release_sink>;

/// Published objects that must not leave their tier. Created by the tier; the hold ends with its last copy,
/// on any thread, by a call to the tier's sink. Used by one thread at a time.
class object_hold {
 public:
  /// The sink releases this many places or more, off the caller's thread.
  static constexpr size_t many_places = 512;

  /// Holds nothing yet; `append` attaches it to a tier.
  object_hold() = default;
  /// `places` are already held. Without a sink another owner holds them, and nothing is released.
  object_hold(release_sink_ptr tier, std::vector<object_place> places)
      : tier_(std::move(tier)), places_(std::move(places)) {}
  object_hold(const object_hold&) = delete;
  object_hold& operator=(const object_hold&) = delete;
  ~object_hold();

  /// The places, parallel to the requested keys.
  const std::vector<object_place>& places() const { return places_; }

  /// Releases everything from `count` on; missing places before that count as absent.
  void keep_first(size_t count);

  /// Does the same in parts of at most `places_at_most`, released from the end. Returns true if another part is left.
  bool keep_first(size_t count, size_t places_at_most);

  /// Announces that `places` places will be appended, so that they are not moved in between.
  void reserve(size_t places) { places_.reserve(places); }

  /// Takes over the places that `more`, of the same tier, holds, starting at place `first`. Precondition:
  /// nothing is held there yet.
  void append(size_t first, object_hold&& more);

  /// Releases the places for which `keeps` (parallel) is false.
  void keep_only(const std::vector<bool>& keeps) { keep_only(keeps, 0, places_.size()); }
  /// Does the same for `count` places from `first` on.
  void keep_only(const std::vector<bool>& keeps, size_t first, size_t count);

 private:
  void release(size_t begin);
  release_sink_ptr tier_;
  std::vector<object_place> places_;
};
using hold_ptr = std::shared_ptr<object_hold>;

/// Makes a hold of places that `whole`, such as a hold, keeps in their tier: all places of `whole` stay held
/// as long as this part.
hold_ptr part_of(keep_alive whole, std::vector<object_place> places);
/// Makes a hold of the places [begin, end) of a hold.
hold_ptr part_of(const hold_ptr& whole, size_t begin, size_t end);

// Space in a tier for objects that are being written and not yet visible.

/// Space for objects that their owner is writing; objects not published when the last copy ends, on any
/// thread, are released. Every writer of the extents keeps a copy until its last byte is written.
class object_reservation {
 public:
  object_reservation(release_sink_ptr tier, std::vector<object_id> ids)
      : tier_(std::move(tier)), ids_(std::move(ids)) {}
  object_reservation(const object_reservation&) = delete;
  object_reservation& operator=(const object_reservation&) = delete;
  ~object_reservation() {
    if (tier_ && !ids_.empty())
      tier_->abandon(std::move(ids_));
  }

  /// The tier has published so many of the objects. If these are all, the end of the reservation sends nothing.
  /// Writers, which may be on other threads, only keep their copies.
  void note_published(size_t objects) {
    if (objects == ids_.size())
      ids_.clear();
  }

 private:
  release_sink_ptr tier_;
  std::vector<object_id> ids_;
};
using reservation_ptr = std::shared_ptr<object_reservation>;

// Objects found in one tier, held there.

/// The objects of a chain that the tier has. Its places are parallel to the chain's objects.
struct tier_hold {
  tier_kind tier = nowhere;
  hold_ptr held; ///< never null
};

/// One for each tier that has any of the objects, fastest first.
using tier_holds = std::vector<tier_hold>;

/// Returns null if nothing is held in that tier.
inline hold_ptr held_in(const tier_holds& all, tier_kind tier) {
  auto entry = std::find_if(all.begin(), all.end(), [&](const tier_hold& one) { return one.tier == tier; });
  return entry == all.end() ? nullptr : entry->held;
}

} // namespace terrace

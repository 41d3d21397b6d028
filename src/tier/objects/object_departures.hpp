// The objects that leave a tier: victims of the policy, what a removed segment contains, and everything in a tier that
// only stages. If a tier below gets them, they are written first.
//
// An object that is being written because it leaves is `demoting`: it is found like any other one, and a hold, or an
// object that continues its prefix, makes it `published` again, and it stays.
//
// The policy names victims without knowing which objects are held: leases on many objects that nobody wants to evict would
// cost it two notes for each. An object that it names and that has to stay is pinned there (tier_objects::pin) until its last
// hold ends.
#pragma once

#include "tier/objects/demotion.hpp"
#include "tier/objects/tier_objects.hpp"
#include "tier/policy/second_use.hpp"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace terrace {

/// Part of a residency. Pure; used by one thread at a time.
class object_departures {
 public:
  explicit object_departures(tier_objects& objects) : objects_(objects) {}

  // ---- victims ----

  /// Removes victims from `named` that have to stay, and those above them in their chains, because suffixes leave before
  /// prefixes. The policy is told of the former. Returns true if any was removed: the policy can name others.
  bool keep_held(victim_answer& named);

  /// Returns the extents of those proposed victims that can be evicted now, and their indices.
  struct offer {
    std::vector<extent> extents;
    std::vector<size_t> victims;
  };
  offer offered(const std::vector<entry_key>& victims) const;

  /// Evicts the proposed victims that can be evicted. `refused` counts those that were held or gone.
  struct eviction {
    std::vector<extent> freed;
    size_t refused = 0;
  };
  eviction evict(const std::vector<entry_key>& victims);

  /// Makes the victims that can be evicted now `demoting`. Returns their ids, parallel to the victims; 0 for
  /// the others.
  std::vector<object_id> begin_demotion(const std::vector<entry_key>& victims);
  /// Evicts those victims that are still `demoting`; `ids` is the answer of `begin_demotion`.
  eviction evict_demoted(const std::vector<entry_key>& victims, const std::vector<object_id>& ids);
  /// Keeps those that are still `demoting`.
  void keep(const std::vector<object_id>& ids);

  // ---- objects that cannot stay ----

  /// Evicts the objects in `range` as soon as they are not held, now or later.
  void retire(extent range);
  /// From now on evicts every object as soon as it is not held: bytes only pass through the tier.
  void only_stage() { stages_ = true; }
  bool stages() const { return stages_; }
  /// Returns the extents freed in these ways since the last call.
  std::vector<extent> take_left() { return std::exchange(left_, {}); }

  /// From now on these are written to a tier below before they leave.
  void write_first() { writes_first_ = true; }
  /// Objects to be written before they leave: they are `demoting`.
  std::vector<object_id> take_leaving() { return std::exchange(leaving_, {}); }
  /// These objects have been written, or cannot be: those that are still `demoting` leave.
  void leave_now(const std::vector<object_id>& ids);

  // ---- writes to a tier below ----

  /// Describes published objects for a write; ids that are unknown or 0 are skipped.
  std::vector<demoted_object> describe(const std::vector<object_id>& ids) const;
  /// The memory of these objects is being read: it is not freed before `residency::release`.
  void begin_write(const std::vector<object_place>& places);
  /// Returns published objects of the next slots, for a walk over all of them; `next` begins with 0.
  std::vector<object_id> published_from(uint32_t& next, size_t count_max) const;

  /// The facts that a later write needs. Nothing is kept before `origins::keep`.
  terrace::origins& origins() { return origins_; }
  second_use& uses() { return uses_; }

  // ---- for the residency ----

  /// An object is being published: those whose prefix it continues stay, because suffixes leave before prefixes.
  void published(object_id id, entry_key parent);
  /// Call if a `demoting` object got a hold.
  void stays(object_id id);
  /// The object has no hold. Returns true if it has left; false: it stays, at least for now.
  bool leave(object_id id);

  uint64_t evictions = 0; ///< objects that have left

 private:
  extent drop(object_id id, note_kind why);
  bool may_leave(const resident* object) const {
    return object != nullptr && object->holds() == 0 && object->state() == object_state::published;
  }

  tier_objects& objects_;
  terrace::origins origins_;
  second_use uses_;
  std::vector<extent> retired_, left_;
  std::vector<object_id> leaving_;
  bool stages_ = false;
  bool writes_first_ = false;
};

} // namespace terrace

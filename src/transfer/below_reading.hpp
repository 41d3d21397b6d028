// The objects of a window that host memory lacks and tiers below have: which tier each is read from, what was read, and
// what may be published.
//
// Pure: a load asks the tiers and movers, and passes their answers to this class. In order: `take_space`, `read` and
// `take_outcomes` of each part, `confirmation` and `take_confirmed` of each part, `publication`. Used by one thread at a
// time. Indices of objects are those in the window.
#pragma once

#include "memory/segmented_arena.hpp"
#include "tier/objects/confirm.hpp"
#include "tier/objects/object_notices.hpp"
#include "tier/objects/publish.hpp"
#include "tier/objects/tier_hold.hpp"
#include "tier/space/acquire.hpp"
#include "transfer/mover_messages.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace terrace {

class below_reading {
 public:
  /// `objects`: of the window. `below`: what the tiers below hold of them, fastest first; parallel to the objects.
  below_reading(batch_ptr objects, tier_holds below)
      : objects_(std::move(objects)), below_(std::move(below)) {}

  /// True if a tier below has the object.
  bool has(size_t object) const { return source_of(object) != below_.size(); }

  /// The space in host memory, and what it has by now. Divides the reserved objects among the tiers.
  void take_space(acquire_answer acquired);
  const acquire_answer& acquired() const { return acquired_; }
  /// The first object that a tier below has, and that was evicted from host memory meanwhile; SIZE_MAX: none.
  size_t first_left() const { return first_left_; }
  bool others_write() const { return acquired_.any(acquired_state::pending); } ///< some objects

  /// The objects to be read from one tier, or those that were.
  struct part {
    tier_kind tier = tier_kind::none;
    hold_ptr held;
    std::vector<size_t> objects;
  };
  const std::vector<part>& parts() const { return parts_; }
  bool empty() const;                  ///< no object is left in any part
  std::vector<size_t> objects() const; ///< of all parts, part by part

  /// Into the reserved space. `memory`: the arena of host memory.
  read_request read(const part& from, const space_ptr& in, const context_ptr& context,
                    const segmented_arena& memory) const;

  struct unread {
    std::vector<size_t> objects;
    discard_notice damaged; ///< to the tier they were read from
    detach_notice stalled;  ///< to the host tier: others need not wait until the kernel returns the memory
  };
  /// Removes from the part what could not be read. `outcomes`: parallel to the objects of `read`.
  unread take_outcomes(size_t part, const std::vector<move_outcome>& outcomes);

  /// Are the objects still published? Those cleared from their tier meanwhile are not brought back.
  confirm_request confirmation(const part& of) const;
  void take_confirmed(size_t part, const std::vector<bool>& present);

  /// Of `objects()`.
  publish_request publication() const;

 private:
  /// The position of the fastest tier below that has the object; their number if none has.
  size_t source_of(size_t object) const;

  batch_ptr objects_;
  tier_holds below_;
  acquire_answer acquired_;
  std::vector<part> parts_;
  size_t first_left_ = SIZE_MAX;
};

} // namespace terrace

// The clear of one tier: a walk over its objects, part by part, and then, in a durable tier, over its journals.
//
// Pure. Used by one thread at a time.
#pragma once

#include "tier/messages.hpp"
#include "tier/objects/index_keeping.hpp"
#include "tier/objects/residency.hpp"

#include <utility>

namespace terrace {

class tier_clear {
 public:
  explicit tier_clear(const clear_request& request)
      : fingerprint_(request.fingerprint), walk_{request.space, 0, {}} {}

  /// Removes a part of the objects; other requests are served in between. Returns false after the last part:
  /// then the keeper of a durable tier's index must be told at once.
  bool step(residency& objects) {
    if (!std::exchange(begun_, true))
      objects.begin_clear(walk_.space);
    bool more = objects.clear_step(walk_);
    if (!more)
      objects.end_clear(walk_.space);
    return more;
  }
  /// Returns the extents freed by the last step.
  std::vector<extent> take_freed() { return std::move(walk_.sum.freed); }

  /// Returns what was removed: the answer of a tier that does not survive restarts.
  clear_answer removed() const { return {{}, walk_.sum.objects, walk_.sum.bytes, {}}; }

  /// Returns the message for the keeper of a durable tier's index: the removed objects must not come back.
  forget_request forget(const residency& objects) const {
    return {walk_.space, objects.epoch(), fingerprint_};
  }
  /// The keeper has answered. Returns the answer of the tier.
  clear_answer forgotten(residency& objects, const forget_answer& answer) const {
    objects.begin_epoch(answer.epoch);
    clear_answer all = removed();
    all.failure = answer.failure;
    if (answer.missed != volume_id{})
      all.missed = pending_clear{{}, answer.missed, answer.epoch};
    return all;
  }

 private:
  std::optional<space_fingerprint> fingerprint_;
  residency::clear_walk walk_;
  bool begun_ = false;
};

} // namespace terrace

// The clear of one tier: a walk over its objects, part by part, and then, in a durable tier, over its journals.
//
// Pure. Used by one thread at a time.
#pragma once

#include "tier/messages.hpp"
#include "tier/objects/index_keeping.hpp"
#include "tier/objects/residency.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

namespace terrace {

// The order in which the tiers of a group are cleared, and the sum of their answers.
//
// The tiers are cleared from the fastest to the slowest, and then the fastest again. A transfer reserves its
// destination first and then asks its source whether the objects are still published (`confirm_request`), and a clear
// removes reserved objects as well. What still comes up from a slower tier, before that is cleared, the second clear of the
// fastest removes; and it goes down to none, because the fastest tier confirms nothing of the space until the clear is over
// (`clear_request::in_progress`). So no concurrent transfer brings back what was cleared. If a tier joined meanwhile, all
// tiers are asked again, because the new one may have received objects that the first tier still had. Whoever removes some
// objects from all tiers (`remove_request`) asks them in this order, too. Pure.

class clear_order {
 public:
  /// The position of the tier to ask now that there are `tiers` (at least one); nullopt: all are cleared.
  std::optional<size_t> next(size_t tiers) {
    if (asked_ == round()) {
      if (tiers_ == tiers)
        return std::nullopt;
      tiers_ = tiers;
      asked_ = 0;
      in_progress_ =
          std::make_shared<char>(); // whose second visit of the fastest tier is the last one of this round
    }
    return asked_++ % tiers_;
  }

  void add(const clear_answer& one) {
    sum_.objects += one.objects;
    sum_.bytes += one.bytes;
    if (one.missed)
      sum_.missed = one.missed;
    if (one.failure.code != errc::ok)
      sum_.failure = one.failure;
  }

  /// Returns the clear that must be recorded for the paths of the volume that are left out, or could not
  /// write it down; nullopt: none. `space` is the fingerprint of the cleared space.
  std::optional<pending_clear> unrecorded(const std::optional<space_fingerprint>& space) const {
    auto missed = sum_.missed;
    if (missed)
      missed->space = space;
    return missed;
  }
  /// The clear was recorded, or recording failed. Success resolves a failure of the paths; otherwise the
  /// first failure stays.
  void recorded(const error& failure) {
    if (failure.code == errc::ok || sum_.failure.code == errc::ok)
      sum_.failure = failure;
  }
  const clear_answer& sum() const { return sum_; }

  /// Returns what the request to the tier at this position carries: the fastest tier learns that the clear goes on.
  std::shared_ptr<const void> in_progress(size_t position) const {
    return position == 0 ? in_progress_ : nullptr;
  }

 private:
  size_t round() const { return tiers_ > 1 ? tiers_ + 1 : tiers_; } ///< questions in a round

  size_t tiers_ = 0; ///< number of tiers when the present round began
  size_t asked_ = 0; ///< tiers asked in this round
  clear_answer sum_;
  std::shared_ptr<const void> in_progress_ = std::make_shared<char>();
};

class tier_clear {
 public:
  explicit tier_clear(const clear_request& request)
      : fingerprint_(request.fingerprint),
        by_other_(request.by_other), walk_{.space = request.space,
                                           .published_only = request.published_only,
                                           .in_progress = request.in_progress} {}

  /// Removes a part of the objects; other requests are served in between. Returns false after the last part:
  /// then the keeper of the tier's index may have to be told (`is_told`, `forget`).
  bool step(residency& objects) { return objects.clear_step(walk_); }
  /// Returns the extents freed by the last step.
  std::vector<extent> take_freed() { return std::move(walk_.freed); }

  /// The keeper of the tier's index is told.
  bool is_told(residency& objects) const { return objects.durable() != nullptr && !walk_.published_only; }
  /// Returns what was removed: the answer if the keeper is not told.
  clear_answer removed() const { return {{}, walk_.objects, walk_.bytes, {}}; }

  /// Returns the message for the keeper of a durable tier's index, to be sent at once: the removed objects must not come
  /// back. Until then checks do not compare them.
  forget_request forget(residency& objects) const {
    objects.recount().end_clear(walk_.space);
    return {walk_.space, objects.durable()->epoch(), fingerprint_, by_other_};
  }
  /// The keeper has answered. Returns the answer of the tier.
  clear_answer forgotten(residency& objects, const forget_answer& answer) const {
    objects.durable()->begin_epoch(answer.epoch);
    clear_answer all = removed();
    all.failure = answer.failure;
    if (answer.missed != volume_id{})
      all.missed = pending_clear{{}, answer.missed, answer.epoch};
    return all;
  }

 private:
  std::optional<space_fingerprint> fingerprint_;
  bool by_other_;
  residency::clear_walk walk_;
};

} // namespace terrace

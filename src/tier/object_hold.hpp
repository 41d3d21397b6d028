// What keeps published objects in their tier.
#pragma once

#include "tier/object_place.hpp"
#include "tier/release_sink.hpp"

#include <cstddef>
#include <memory>
#include <vector>

namespace terrace {

/// Published objects that must not leave their tier. Made by the tier; the hold ends with its last copy, on whatever thread, by
/// a call of the tier's sink. One thread at a time uses it.
class object_hold {
 public:
  /// Holds nothing yet; `append` makes it one of a tier.
  object_hold() = default;
  /// `places` are held already. Without a sink somebody else holds them, and nothing is given back.
  object_hold(release_sink_ptr tier, std::vector<object_place> places)
      : tier_(std::move(tier)), places_(std::move(places)) {}
  object_hold(const object_hold&) = delete;
  object_hold& operator=(const object_hold&) = delete;
  ~object_hold();

  /// Parallel to the keys that were asked for.
  const std::vector<object_place>& places() const { return places_; }

  /// Lets everything from `count` on go; what is missing up to there counts as absent.
  void keep_first(size_t count);

  /// Takes over what `more`, of the same tier, holds, from place `first` on. Precondition: nothing is held there yet.
  void append(size_t first, object_hold&& more);

  /// Lets those places go that `keeps` (parallel to them) does not keep.
  void keep_only(const std::vector<bool>& keeps);

 private:
  void release(size_t begin);
  release_sink_ptr tier_;
  std::vector<object_place> places_;
};
using hold_ptr = std::shared_ptr<object_hold>;

} // namespace terrace

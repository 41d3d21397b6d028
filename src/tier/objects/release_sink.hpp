// The place where the handles of a tier release what they own.
#pragma once

#include "index/object_id.hpp"
#include "tier/objects/object_place.hpp"

#include <memory>
#include <span>
#include <vector>

namespace terrace {

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

} // namespace terrace

// Where the handles of a tier give back what they own.
#pragma once

#include "index/object_id.hpp"

#include <memory>
#include <vector>

namespace terrace {

/// The tier behind its handles (`object_hold`, `object_reservation`). The last copy of a handle may end on any thread, so every
/// call may come from any thread, and at the same time as others; it neither blocks nor throws, and the tier applies it
/// later. Calls from one thread are applied in their order. Handles keep the sink alive; after the tier's end the calls do
/// nothing.
class release_sink {
 public:
  virtual ~release_sink() = default;

  /// Ends one hold of each of these objects.
  virtual void release(std::vector<object_id> held) = 0;

  /// Gives back the space of those that were reserved and are not published.
  virtual void abandon(std::vector<object_id> reserved) = 0;
};
using release_sink_ptr = std::shared_ptr<release_sink>;

} // namespace terrace

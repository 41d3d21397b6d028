// Space in a tier for objects that are being written and not yet visible.
#pragma once

#include "tier/objects/release_sink.hpp"

#include <memory>
#include <utility>
#include <vector>

namespace terrace {

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

 private:
  release_sink_ptr tier_;
  std::vector<object_id> ids_;
};
using reservation_ptr = std::shared_ptr<object_reservation>;

} // namespace terrace

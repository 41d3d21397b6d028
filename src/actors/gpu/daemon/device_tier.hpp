// A group's view of its tier in memory of a device: whether it serves, and which regions are on the same
// device.
#pragma once

#include "actors/gpu/daemon/device_actor.hpp"
#include "tier/tier_config.hpp"

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <string>

namespace terrace::actors {

/// The tier's mover sets it, any thread reads it.
class device_tier_service final : public tier_availability {
 public:
  bool reads() const override { return serves_.load(std::memory_order_acquire); }
  bool writes() const override { return reads(); }
  std::string reason() const override;
  std::string notice() const override;

  /// Whether a region is in memory of the tier's device.
  bool is_near(const device_memory& region) const {
    return region_of(region).device().id() == device_.load();
  }

  /// Whether loads into a region may read the tier: on its device, or on another one that has not been
  /// refused.
  bool reaches(const device_memory& region) const;
  void refuses(const device_actor& device);

  void opened(const device_actor& device) { device_ = device.id(); }
  void serves();
  /// `why`: empty if no process is expected to be there.
  void stops(std::string why);

 private:
  std::atomic<bool> serves_{false};
  std::atomic<caf::actor_id> device_{caf::invalid_actor_id};
  mutable std::mutex mutex_;
  std::string why_;
  std::set<caf::actor_id> refused_; ///< devices that cannot read the tier's memory
};

/// Shared by the users of the tier.
struct device_tier {
  gpu_tier_actor mover;
  std::shared_ptr<const device_tier_service> service;
  bool peers = false; ///< other devices may read it

  bool serves(const device_memory* region) const {
    return region != nullptr && service->reads() && service->is_near(*region);
  }
  /// Whether loads into the region may come from the tier, by a peer copy if it is on another device.
  bool reaches(const device_memory* region) const {
    return region != nullptr && service->reads() &&
           (service->is_near(*region) || (peers && service->reaches(*region)));
  }
};

} // namespace terrace::actors

// GPU TIER: a tier of a trust group whose arena is in memory of one device, and its mover.
//
// The arena is memory of the device's process. It is allocated when the process has started for the first
// region of a client, keeps the process from then on, and is lost with it. Then the tier is emptied, and
// begins again with the next process. Until the first client there is none, and the tier is out of service.
//
// Objects come into it when a load into a region of its device has found them in host memory
// (actors/transfer/load_actor.cpp). Between host memory and the arena they pass through staging memory like
// everything else; copies into regions of the device stay on it.
#pragma once

#include "actors/gpu/daemon/device_actor.hpp"
#include "metrics/tier_probe.hpp"
#include "tier/tier_config.hpp"

#include <caf/fwd.hpp>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>

namespace terrace::actors {

// What users of the tier see of it: whether it serves, and which regions are on the same device.

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

  bool serves(const device_memory* region) const {
    return region != nullptr && service->reads() && service->is_near(*region);
  }
  /// Whether loads into the region may come from the tier, by a peer copy if it is on another device.
  bool reaches(const device_memory* region) const {
    return region != nullptr && service->reads() && (service->is_near(*region) || service->reaches(*region));
  }
};

struct gpu_tier_arguments {
  std::string group;  ///< name for the log
  std::string device; ///< name of the device
  uint64_t bytes = 0; ///< bytes of the arena
  gpu_registry_actor devices;
  std::shared_ptr<device_tier_service> service;
  std::shared_ptr<metrics::tier_probe> probe;
  std::function<void(const std::string&)> log, warn;
};

/// Spawns the tier. It waits for `serve_tier_notice` before it asks for memory.
gpu_tier_actor spawn_gpu_tier(caf::actor_system& system, gpu_tier_arguments arguments);

} // namespace terrace::actors

// GPU TIER: a tier of a trust group whose arena is in memory of one device, and its mover.
//
// The arena is memory of the device's process: it is allocated when that has started for the first region of a client, keeps
// it from then on, and is lost with it. Then the tier is emptied, and begins again with the next process. Until the first
// client there is none, and the tier is out of service.
//
// Objects come into it when a load into a region of its device has found them in host memory (transfer/load_actor.cpp).
// Between host memory and the arena they pass staging memory as all else does; into regions of the device they are copied
// there.
#pragma once

#include "actors/gpu/daemon/device_tier.hpp"
#include "metrics/tier_probe.hpp"

#include <caf/fwd.hpp>

#include <functional>
#include <memory>
#include <string>

namespace terrace::actors {

struct gpu_tier_arguments {
  std::string group;  ///< for the log
  std::string device; ///< its name
  uint64_t bytes = 0; ///< of the arena
  devices_actor devices;
  std::shared_ptr<device_tier_service> service;
  std::shared_ptr<metrics::tier_probe> probe;
  std::function<void(const std::string&)> log, warn;
};

/// It waits for `serve_tier_notice` before it asks for memory.
gpu_tier_actor spawn_gpu_tier(caf::actor_system& system, gpu_tier_arguments arguments);

} // namespace terrace::actors

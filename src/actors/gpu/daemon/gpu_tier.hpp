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

#include "actors/gpu/daemon/device_tier.hpp"
#include "metrics/tier_probe.hpp"

#include <caf/fwd.hpp>

#include <functional>
#include <memory>
#include <string>

namespace terrace::actors {

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

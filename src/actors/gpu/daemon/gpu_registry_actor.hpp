// DEVICES: the devices in which clients have registered memory, by name.
#pragma once

#include "actors/gpu/daemon/device_actor.hpp"

namespace terrace::actors {

struct devices_arguments {
  bool enabled = true;
  /// Arguments for each device; the probe is made here, and the record is one of `records`.
  device_arguments device;
  std::shared_ptr<gpu::direct_records> records = std::make_shared<gpu::direct_records>();
  std::shared_ptr<metrics::device_board> board = std::make_shared<metrics::device_board>();
  std::function<runtime::home()> place;
};

gpu_registry_actor spawn_devices(caf::actor_system& system, devices_arguments arguments);

} // namespace terrace::actors

// DEVICE: one GPU (or its substitute in host memory) in which clients have registered memory. It owns the
// GPU's process.
//
// The process is started for the first region of a client and ended after the last; an arena of a tier counts
// as a region. Copies go through staging memory that both map: arenas are sealed, so no other process may
// write into them (docs/decisions/086). A copy is cut into slices, one for a slot of staging memory; slices
// of different connections take turns. A copier copies a load's slice into its slot, and the device copies it
// from there; a store's slice goes the other way round.
//
// If the process does not answer within the deadline, or ends, its requests are answered `gone` and it is
// killed. Its regions stay until it has ended, and `end_region_request` is answered then. The next
// registration starts another process.
#pragma once

#include "actors/interfaces.hpp"
#include "actors/transfer/copier_actor.hpp"
#include "gpu/process/direct_record.hpp"
#include "memory/teardown.hpp"
#include "metrics/device_probe.hpp"
#include "runtime/home.hpp"
#include "transfer/unread_files.hpp"

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

namespace terrace::actors {

struct device_arguments {
  uint64_t staging_bytes = 64 << 20;          ///< staging memory of each device's process
  std::chrono::milliseconds deadline{30'000}; ///< limit for each answer of the process
  std::shared_ptr<copier_pool> copiers;
  /// Memory of each device into which files are read; 0: none are.
  uint64_t direct_bytes = 0;
  std::shared_ptr<gpu::direct_record> record;   ///< record of these reads; outlives the device's actor
  teardown_ptr teardown;                        ///< releases staging memory; null: the device does
  std::shared_ptr<metrics::device_probe> probe; ///< carries the device's name
  std::function<void(const std::string&)> log, warn;
  bool detached = true; ///< false in tests that start processes on their own thread
};

/// State of a device that reads files itself. Its actor sets it, any thread reads it.
struct direct_reads {
  explicit direct_reads(uint64_t most) : object_bytes_max(most) {}
  unread_files unread;
  std::atomic<bool> possible{true}; ///< false while the process gets ready for it, and if it was refused
  const uint64_t object_bytes_max;  ///< limit of an extent
};

/// A region, as connections and copies hold it. The device is told of its end.
class device_region final : public device_memory {
 public:
  device_region(device_actor device, uint64_t id, uint64_t process, bool peer, uint32_t events,
                std::shared_ptr<const direct_reads> direct)
      : device_memory(events), device_(std::move(device)), id_(id), process_(process), peer_(peer),
        direct_(std::move(direct)) {}
  ~device_region() override;
  device_region(const device_region&) = delete;
  device_region& operator=(const device_region&) = delete;

  const device_actor& device() const { return device_; }
  uint64_t id() const { return id_; }
  uint64_t process() const { return process_; } ///< number of the process that maps it
  bool peer() const { return peer_; }           ///< the region is memory of another device
  /// Largest extent that the device may read into the region itself; 0: none.
  uint64_t direct_bytes_max() const { return direct_ && direct_->possible ? direct_->object_bytes_max : 0; }
  /// Precondition: the device reads files, or did.
  const unread_files& unread() const { return direct_->unread; }

 private:
  device_actor device_;
  uint64_t id_;
  uint64_t process_;
  bool peer_;
  std::shared_ptr<const direct_reads> direct_; ///< null: the device reads no files
};

/// Returns the region; all device memory of the daemon is such a region.
inline const device_region& region_of(const device_memory& memory) {
  return static_cast<const device_region&>(memory);
}

device_actor spawn_device(caf::actor_system& system, const runtime::home& home, device_arguments arguments);

// DEVICES: the devices in which clients have registered memory, by name.

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

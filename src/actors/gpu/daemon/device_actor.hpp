// DEVICE: one GPU (or its substitute in host memory) that clients have registered memory of. Owns its process.
//
// The process is started for the first region of a client and ended after the last, an arena of a tier included. Copies go through staging memory that both map:
// arenas are sealed, so no other process may write into them (docs/decisions/086). A copy is cut into slices, one
// for a slot of staging memory; slices of different connections take turns. A load's slice is copied into its slot by a
// copier and from there by the device; a store's the other way round.
//
// If the process does not answer within the deadline, or ends, its requests are answered `gone` and it is killed. Its regions
// stay until it has ended, and `end_region_request` is answered then. The next registration starts another one.
#pragma once

#include "actors/interfaces.hpp"
#include "actors/transfer/copier_pool.hpp"
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
  uint64_t staging_bytes = 64 << 20;          ///< of each device's process
  std::chrono::milliseconds deadline{30'000}; ///< of each answer of the process
  std::shared_ptr<copier_pool> copiers;
  uint64_t direct_bytes = 0;                    ///< of each device, into which files are read; 0: none are
  std::shared_ptr<gpu::direct_record> record;   ///< of that; outlives the device's actor
  teardown_ptr teardown;                        ///< releases staging memory; null: the device does
  std::shared_ptr<metrics::device_probe> probe; ///< has the device's name
  std::function<void(const std::string&)> log, warn;
};

/// What is known of a device that reads files itself. Set by its actor, read on any thread.
struct direct_reads {
  explicit direct_reads(uint64_t most) : object_bytes_max(most) {}
  unread_files unread;
  std::atomic<bool> possible{true}; ///< not while the process gets ready for it, nor if that was refused
  const uint64_t object_bytes_max;  ///< of an extent
};

/// A region, as connections and copies have it. Its end tells the device.
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
  bool peer() const { return peer_; }           ///< it is memory of another device
  /// Of extents that the device may read into the region itself; 0: none.
  uint64_t direct_bytes_max() const { return direct_ && direct_->possible ? direct_->object_bytes_max : 0; }
  /// Precondition: it reads some, or did.
  const unread_files& unread() const { return direct_->unread; }

 private:
  device_actor device_;
  uint64_t id_;
  uint64_t process_;
  bool peer_;
  std::shared_ptr<const direct_reads> direct_; ///< null: it reads none
};

/// All device memory of the daemon is such a region.
inline const device_region& region_of(const device_memory& memory) {
  return static_cast<const device_region&>(memory);
}

device_actor spawn_device(caf::actor_system& system, const runtime::home& home, device_arguments arguments);

} // namespace terrace::actors

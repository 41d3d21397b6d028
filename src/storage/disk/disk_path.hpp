// One path of a disk tier: its queue of operations, whether the path is in service, and what status and the log say
// about it.
//
// It decides whether the device is in service (path_health.hpp), separately for reads and writes, and publishes this in
// `disk_service`. Out of service, it refuses requests immediately. After a pause it retries: reads by reading the
// superblock, which must be that of its volume; writes with one write of the next request.
//
// An operation that does not complete in time also takes the device out of service. Its request is answered without it,
// the kernel is asked to cancel it, and the device is not retried before all such operations complete.
#pragma once

#include "metrics/disk_probe.hpp"
#include "metrics/tier_probe.hpp"
#include "storage/disk/disk_queue.hpp"
#include "storage/disk/disk_service.hpp"
#include "storage/disk/path_health.hpp"
#include "storage/extent_file.hpp"
#include "tier/search/read_meter.hpp"
#include "transfer/device_share.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace terrace {

/// The ring as a path uses it. The answer to every call except the last comes later, through a method of the path.
class path_output {
 public:
  virtual ~path_output() = default;
  virtual void submit(uint64_t tag, disk_queue::transfer moving) = 0; ///< -> `completed`
  virtual void cancel(uint64_t tag) = 0;                              ///< if the kernel can; -> `completed`
  virtual void pause(disk_direction direction, std::chrono::milliseconds how_long) = 0; ///< -> `pause_over`
  virtual void read_superblock() = 0;             ///< -> `superblock_read`
  virtual void warn(const std::string& line) = 0; ///< writes a line to the log
};

struct disk_path_arguments {
  std::shared_ptr<const extent_file> file;
  io_limits limits;
  health_options health;
  std::shared_ptr<metrics::disk_probe> probe;
  std::shared_ptr<metrics::tier_probe> tier_probe;
  std::shared_ptr<disk_service> service;
  size_t path = 0;                       ///< index of the file among the service's paths
  std::shared_ptr<device_share> share{}; ///< null: no other trust group uses its device
  std::shared_ptr<read_meter> meter{};   ///< the tier's meter, told of every read; null: none
};

/// Pure: the disk actor has the ring and the timers, and time is an argument. Used by one thread at a time.
class disk_path {
 public:
  using time_point = disk_queue::time_point;

  /// `output` must outlive the path.
  disk_path(disk_path_arguments with, path_output& output);
  disk_path(const disk_path&) = delete; // callbacks of its queue refer to it
  disk_path& operator=(const disk_path&) = delete;

  /// The answer comes when each operation has completed or stalled; at once with `busy` if the path is out of service.
  void add(const disk_request& request, disk_queue::reply answer, time_point now);

  // ---- completions ----

  /// `result`: bytes, or -errno.
  void completed(uint64_t tag, int32_t result, time_point now);
  void pause_over(disk_direction direction);
  /// Both copies of the superblock were read, or as many bytes of them as there are.
  void superblock_read(int32_t result, std::span<const std::byte, 2 * superblock_bytes> both, time_point now);

  /// Call at the ticks of `watch`, as long as `watch` asks for them.
  void tick(time_point now);
  const stall_detector& watch() const { return health_.watch(); }

  /// An operation of the path's journal has stalled, or has completed after all.
  void journal_stalled(bool hangs, time_point now);

  // ---- the file ----

  /// The attributes of the file when it was opened. Without this call the file is not watched.
  void opened(file_attributes attributes);
  /// The kernel is about to look up the file by its name. Every call is followed by `looked`.
  void looking() { with_.probe->looking(true); }
  /// Both copies of the superblock were read between two looks. `result`: bytes, or -errno.
  void begins(int32_t result, std::span<const std::byte, 2 * superblock_bytes> both);
  /// The result of the look-up: 0 and the file's attributes, or an errno.
  void looked(int error_number, const file_attributes& seen);

 private:
  struct in_kernel {
    disk_direction direction = disk_direction::read;
    time_point at;
  };

  void submit();
  io_room room() { return with_.share ? with_.share->room() : io_room{}; }
  void tell_meter();
  void publish();
  void degrade(disk_direction direction);
  void end_trial(disk_direction direction, int error_number);
  void stalled(uint64_t tag);
  void came_back(uint64_t tag, disk_direction direction);

  disk_path_arguments with_;
  path_output& output_;
  disk_queue queue_;
  path_health health_;
  file_watch watched_file_;
  std::vector<in_kernel> in_kernel_; ///< by tag
  time_point now_{};                 ///< time of the call in progress
  uint64_t told_to_read_ = 0;        ///< bytes of which the meter was told
};

} // namespace terrace

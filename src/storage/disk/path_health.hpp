// Decides whether a path of a disk tier is in service, for reads and for writes, and when it is retried.
//
// After a pause reads are retried by reading the superblock, which must be that of the path, and writes with
// one write of the next request. Neither is retried while the kernel has stalled operations of that
// direction. Pure: the disk actor reports events and has the timers. Used by one thread at a time.
#pragma once

#include "storage/disk/disk_messages.hpp"
#include "storage/superblock.hpp"
#include "transfer/device_health.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace terrace {

// Tells whether the name of a path still shows the file that was opened. Pure: the disk actor asks the kernel
// for the file's attributes from time to time and passes the answer here.

struct file_attributes {
  uint32_t device_major = 0;
  uint32_t device_minor = 0;
  uint64_t inode = 0;
  uint64_t bytes = 0;
};

enum class file_damage : uint8_t { none, deleted, replaced, truncated, overwritten };

class file_watch {
 public:
  /// `opened`: the file's attributes when it was opened.
  explicit file_watch(std::string path = {}, const file_attributes& opened = {})
      : path_(std::move(path)), opened_(opened) {}

  enum class news : uint8_t {
    none,
    again,  ///< the same as the last look found, but it was cleared since
    changed ///< differs from the last look
  };
  /// The look-up of the name gave 0 and the attributes, or an errno. Errors other than a missing file say nothing.
  news look(int error_number, const file_attributes& seen);

  /// What the file begins with is read between looks: whether it has the path's superblock. The next look tells it.
  void begins(bool with_superblock) { overwritten_ = !with_superblock; }

  /// The file was verified in another way. A later `look` may find damage again.
  void clear() { now_ = file_damage::none; }

  file_damage now() const { return now_; }
  std::string reason() const; ///< empty if nothing is wrong

 private:
  std::string path_;
  file_attributes opened_;
  file_damage now_ = file_damage::none;
  file_damage found_ = file_damage::none; ///< found by the last look
  uint64_t bytes_ = 0;                    ///< size of the file when it was found truncated
  bool overwritten_ = false;
};

class path_health {
 public:
  using time_point = device_health::time_point;

  /// `file` is its name in texts.
  path_health(std::string file, const health_options& options);

  bool healthy(disk_direction direction) const { return of(direction).health.healthy(); }
  bool reads() const { return healthy(disk_direction::read); }
  /// A path that cannot be read is not written to, either.
  bool writes() const {
    return reads() && of(disk_direction::write).health.now() != device_health::state::degraded;
  }
  /// Says why the path is degraded; empty if it is not.
  std::string reason() const;
  /// Precondition: the path is degraded in this direction.
  std::string reason(disk_direction direction) const;
  std::chrono::milliseconds pause(disk_direction direction) const { return of(direction).health.pause(); }

  struct admission {
    bool granted = false;
    bool trial = false; ///< its outcome decides whether the path is back: `end_trial`
  };
  /// Decides about a new request.
  admission admit(disk_direction direction);

  // ---- operations of requests. True: the path is degraded from now on, and `pause` begins ----

  void started(uint64_t tag, disk_direction direction) {
    watch_.started(tag, static_cast<size_t>(direction));
  }
  /// True if the operation was stalled: its request was answered long ago, and its result does not count.
  bool ended(uint64_t tag) { return watch_.ended(tag); }
  /// `result`: bytes, or -errno; 0 bytes is an error.
  bool completed(disk_direction direction, int32_t result, time_point now);
  /// Returns the operations that have stalled with this tick of a timer; pass each to `stalled`.
  std::vector<uint64_t> tick() { return watch_.tick(); }
  bool stalled(disk_direction direction, time_point now) { return of(direction).health.stalled(now); }
  /// An operation of the path's journal has stalled, or has completed after all. Counts like a stalled write.
  bool journal_stalled(bool now_stalled, time_point now);
  const stall_detector& watch() const { return watch_; }

  /// The error for waiting operations that will not be tried any more; 0 if they will.
  int error_of_waiting(disk_direction direction) const;

  // ---- the way back ----

  /// The pause is over. Returns false if the trial waits for stalled operations (`awaits_stalled`). Otherwise
  /// it has begun: reads are tried by reading the superblock, writes with the next request.
  bool begin_trial(disk_direction direction);
  /// True after `begin_trial` returned false: call it again when an operation of this direction has ended.
  bool awaits_stalled(disk_direction direction) const { return of(direction).awaits_stalled; }
  /// The trial has ended. Returns true if the path is back. Otherwise another `pause` begins.
  bool end_trial(disk_direction direction, int error_number, time_point now);

 private:
  struct one_direction {
    device_health health;
    bool in_trial = false;       ///< a request, or a read of the superblock, decides whether the path is back
    bool awaits_stalled = false; ///< the pause is over, and the trial waits for stalled operations
  };

  one_direction& of(disk_direction direction) { return directions_[static_cast<size_t>(direction)]; }
  const one_direction& of(disk_direction direction) const {
    return directions_[static_cast<size_t>(direction)];
  }
  /// The number of operations in this direction, including the journal's, that the kernel has not completed.
  size_t stalled_count(disk_direction direction) const;

  std::string file_;
  health_options options_;
  stall_detector watch_{ticks_of_patience};
  bool journal_stalled_ = false;
  std::array<one_direction, 2> directions_;
};

/// Judges a read of both copies of the superblock with this result (bytes, or -errno). Returns 0 if the superblock is
/// that of the path, otherwise the error. A file that was truncated and extended again is a different one.
int error_of_trial(int32_t result, std::span<const std::byte, 2 * superblock_bytes> both,
                   const volume_id& volume, uint32_t path_index);

} // namespace terrace

// Whether a device goes on to read disks itself, after what has failed. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace terrace::gpu {

/// Processes are told apart by numbers, none of which is 0. What an earlier one tells late does not count.
class direct_record {
 public:
  /// Reads of a process that failed: after as many, something is wrong with reading in this way.
  static constexpr size_t failures_max = 16;
  /// Processes that ended, or had to be killed, while they read. The next one reads no disk, as long as the daemon lives: each such end
  /// takes the regions of all clients with it.
  static constexpr size_t losses_max = 2;

  /// This process gets ready to read.
  void begin(uint64_t process) {
    process_ = process;
    failures_ = 0;
    lost_ = false;
  }
  /// Returns how many they are in this process, with this one; 0: it is an earlier one.
  size_t failed(uint64_t process) { return process == process_ ? ++failures_ : 0; }
  /// The process is lost while it reads. May be told more than once.
  void lost(uint64_t process) {
    if (process == process_ && !std::exchange(lost_, true))
      ++losses_;
  }

  size_t losses() const { return losses_; }
  bool given_up() const { return losses_ >= losses_max; }

 private:
  uint64_t process_ = 0; ///< the latest one
  size_t failures_ = 0;  ///< of it
  bool lost_ = false;
  size_t losses_ = 0;
};

} // namespace terrace::gpu

// Decides whether a device goes on reading disks itself after failures.
#pragma once

#include "gpu/device.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>

namespace terrace::gpu {

// Divides the objects of a request into the batches that a device reads. Pure.

/// Smaller batches cost more than they gain.
constexpr uint64_t disk_batch_bytes_min = 8 << 20;

/// Small enough that the parts of a request are read, verified and copied at the same time.
constexpr uint64_t disk_batch_bytes(uint64_t request_bytes, uint64_t slot_bytes) {
  return std::min(slot_bytes, std::max(request_bytes / (2 * disk_reader::slots), disk_batch_bytes_min));
}

/// Returns the end of the batch that begins with object `begin`. It has at most `bytes_max`, but at least one
/// object, which must fit in a slot.
inline size_t disk_batch_end(std::span<const uint64_t> object_bytes, size_t begin, uint64_t bytes_max) {
  size_t end = begin;
  for (uint64_t bytes = 0; end < object_bytes.size() && end - begin < disk_reader::extents_max; ++end) {
    bytes += object_bytes[end];
    if (end != begin && bytes > bytes_max)
      break;
  }
  return end;
}

/// Processes have numbers, none of which is 0. Late reports of an earlier process do not count. Safe on all threads.
class direct_record {
 public:
  /// The number of failed batches at which reading in this way counts as broken for a process. Batches that
  /// were read clear failures, so a disk that fails once in a while does not reach it.
  static constexpr size_t failures_max = 16;
  static constexpr uint64_t reads_per_failure = 64;
  /// The number of lost processes from which on the next process reads no disk as long as the daemon lives,
  /// because each loss takes the regions of all clients with it. A process counts as lost if it ended, or had
  /// to be killed, while the library was open in it or being opened. Whether it was reading at that moment
  /// does not matter, because the library has threads and memory of its own there.
  static constexpr size_t losses_max = 2;
  static constexpr uint64_t reads_per_loss = 4096;

  /// The process gets ready to read.
  void begin(uint64_t process) {
    std::lock_guard lock(mutex_);
    process_ = process;
    held_ = 0;
    lost_ = false;
  }
  /// A batch was read, and its objects are as expected.
  void read(uint64_t process) {
    std::lock_guard lock(mutex_);
    if (process != process_)
      return;
    held_ -= std::min<uint64_t>(held_, 1);
    if (losses_ != 0 && ++reads_ % reads_per_loss == 0)
      --losses_;
  }
  /// A batch failed. Returns how many failures now count against this process; 0: the report is of an earlier process.
  size_t failed(uint64_t process) {
    std::lock_guard lock(mutex_);
    if (process != process_)
      return 0;
    held_ += reads_per_failure;
    return (held_ + reads_per_failure - 1) / reads_per_failure;
  }
  /// The process is lost. May be called more than once.
  void lost(uint64_t process) {
    std::lock_guard lock(mutex_);
    if (process != process_ || std::exchange(lost_, true))
      return;
    ++losses_;
    reads_ = 0;
  }

  size_t losses() const {
    std::lock_guard lock(mutex_);
    return losses_;
  }
  bool given_up() const { return losses() >= losses_max; }

 private:
  mutable std::mutex mutex_;
  uint64_t process_ = 0; ///< the latest process
  uint64_t held_ = 0;    ///< reads that would clear the failures of this process
  bool lost_ = false;
  size_t losses_ = 0;
  uint64_t reads_ = 0; ///< batches read since the last loss
};

/// The records of devices, by their names. Safe on all threads.
class direct_records {
 public:
  std::shared_ptr<direct_record> of(const std::string& device) {
    std::lock_guard lock(mutex_);
    auto& record = all_[device];
    if (!record)
      record = std::make_shared<direct_record>();
    return record;
  }
  /// The device is forgotten. Its losses stay, in case it comes back.
  void leave(const std::string& device) {
    std::lock_guard lock(mutex_);
    if (auto found = all_.find(device); found != all_.end() && found->second->losses() == 0)
      all_.erase(found);
  }
  size_t size() const {
    std::lock_guard lock(mutex_);
    return all_.size();
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<direct_record>> all_;
};

} // namespace terrace::gpu
